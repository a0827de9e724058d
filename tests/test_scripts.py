"""The scripts of runs/, research/runs/ and benchmarks/ import names that exist. Nobody runs them after each change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

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
def test_what_a_script_imports_exists(script: Path) -> None:
    assert [f"{module}.{name}" for module, name in _imports(script) if not _has(module, name)] == []


def _has(module: str, name: str) -> bool:
    """Whether a module has what is imported from it, which may be a module of its own."""
    opened = import_module(module)
    return hasattr(opened, name) or (
        hasattr(opened, "__path__") and find_spec(f"{module}.{name}") is not None
    )
