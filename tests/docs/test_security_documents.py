"""The threat model names tests that exist, and every line names one or says that nothing holds it."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from shown_commands import ROOT

NAMED = re.compile(r"`((?:lab/|research/)?tests/[\w/]+\.py)::(\w+)`")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


@cache
def functions_of(file: str) -> set[str]:
    """The names of the functions of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("named", sorted(set(NAMED.findall(SECURITY))), ids="::".join)
def test_every_test_that_is_named_exists(named: tuple[str, str]) -> None:
    file, function = named
    assert function.startswith("test_")
    assert (ROOT / file).is_file()
    assert function in functions_of(file)


def test_every_threat_names_a_test_or_says_that_nothing_holds_it() -> None:
    lines = [line for line in SECURITY.splitlines() if line.startswith("|") and not line.startswith("|---")]
    lines = [line for line in lines if not line.endswith("| held by |")]
    assert len(lines) > 50
    for line in lines:
        last = line.strip("|").split("|")[-1]
        assert NAMED.search(last) or "nothing holds th" in last, line
