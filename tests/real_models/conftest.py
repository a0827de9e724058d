"""Published models behind llama.cpp's own server, on loopback.

`make setup-dev` puts SmolLM2-135M-Instruct into the virtual environment. `PODIUM_MODELS` names a folder with the larger
models, for the tests that `runs/real-models.sh` runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from free_port import free_port
from model_files import MODELS

sys.path.append(str(Path(__file__).parents[2] / "runs"))

from published_models import served


@pytest.fixture(scope="session")
def endpoint() -> Iterator[Callable[[str], str]]:
    """`endpoint("smol")` is the address of a server of that model; each model is loaded once.

    With one thread: several wait for each other at each layer, which takes minutes on cores that other tests use.
    """
    urls: dict[str, str] = {}
    with ExitStack() as servers:

        def start(name: str) -> str:
            if name not in urls:
                urls[name] = servers.enter_context(
                    served(MODELS / f"{name}.gguf", free_port(), name, slots=2, threads=1)
                )
            return urls[name]

        yield start
