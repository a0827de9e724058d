from pathlib import Path

import pytest
from tinker_cookbook.renderers import Renderer, get_renderer
from tinker_cookbook.tokenizer_utils import get_tokenizer

import podium

PLAN = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
OTHER = 'model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"


@pytest.fixture(scope="session")
def model() -> str:
    """The folder of a tokenizer that ships with Podium."""
    return str(Path(podium.__file__).parent / "assets" / "conductor")


@pytest.fixture(scope="session")
def renderer(model: str) -> Renderer:
    return get_renderer("role_colon", get_tokenizer(model))
