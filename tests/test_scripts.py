"""The scripts of runs/, research/runs/ and benchmarks/ import names that exist. Nobody runs them after each change."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

import podium

REPOSITORY = Path(__file__).parent.parent
SCRIPTS = [
    path
    for folder in ("runs", "lab/runs", "research/runs", "benchmarks")
    for path in sorted((REPOSITORY / folder).glob("*.py"))
]


def _imports(script: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of each `from podium... import ...`."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "podium":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_every_import_of_a_script_exists(script: Path) -> None:
    assert [f"{module}.{name}" for module, name in _imports(script) if not _has(module, name)] == []


def test_the_hubs_client_finds_published_models_where_no_hub_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "runs"))
    script = import_module("published_models")
    (tmp_path / "smol.gguf").write_text("weights")
    script.cache(tmp_path, tmp_path / "home")
    script.cache(tmp_path, tmp_path / "home")
    pool = tomllib.loads((Path(podium.__file__).parent / "assets" / "pools" / "small-open.toml").read_text())
    (named,) = (worker["file"] for worker in pool["worker"] if worker["name"] == "smol")
    owner, name, file = named.removeprefix("hub:").split("/")
    found = hf_hub_download(f"{owner}/{name}", file, cache_dir=tmp_path / "home/hub", local_files_only=True)
    assert Path(found).read_text() == "weights"
    assert {worker["sha256"] for worker in pool["worker"] if "sha256" in worker} == {
        model.sha256 for model in script.MODELS.values()
    }


@pytest.mark.parametrize("script", sorted((REPOSITORY / "runs").glob("*.sh")), ids=lambda script: script.name)
def test_pip_is_given_folders_of_the_repository_as_paths(script: Path) -> None:
    """`pip wheel research` would fetch a stranger's package of that name."""
    folders = {path.parent.name for path in REPOSITORY.glob("*/pyproject.toml")}
    commands = [line.split() for line in script.read_text().splitlines() if re.search(r"\bpip\b", line)]
    given = ((before, word) for words in commands for before, word in pairwise(words) if word in folders)
    assert [word for before, word in given if before != "-e"] == []


def _has(module: str, name: str) -> bool:
    """Whether a module has what is imported from it, which may be a module of its own."""
    opened = import_module(module)
    return hasattr(opened, name) or (
        hasattr(opened, "__path__") and find_spec(f"{module}.{name}") is not None
    )
