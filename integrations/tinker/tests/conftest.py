from pathlib import Path

import pytest
from tinker_cookbook.renderers import Renderer, get_renderer
from tinker_cookbook.tokenizer_utils import get_tokenizer

from scripted_team import Sums, write_calculators, write_sums
from tiny_policy import write_policy

PLAN = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
OTHER = 'model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small tokenizer."""
    return str(write_policy(tmp_path_factory.mktemp("model") / "policy"))


@pytest.fixture
def ground(tmp_path: Path) -> dict[str, str]:
    """The settings `tasks` and `pool` of a session: a table of sums, and the scripted team."""
    tasks = write_sums(tmp_path / "sums.jsonl", 4, ("train",))
    pool = write_calculators(tmp_path / "team.toml", list(Sums("train", size=4)))
    return {"tasks": str(tasks), "pool": str(pool)}


@pytest.fixture(scope="session")
def renderer(model: str) -> Renderer:
    return get_renderer("role_colon", get_tokenizer(model))
