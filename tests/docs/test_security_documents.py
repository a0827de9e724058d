"""The threat model and the table of findings name tests and commits that exist, and every line has one or says so."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache

import pytest
from shown_commands import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
HOSTILE = (ROOT / "docs" / "results" / "hostile.md").read_text(encoding="utf-8")


@cache
def functions_of(file: str) -> set[str]:
    """The names of the functions of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("named", sorted(set(NAMED.findall(SECURITY + HOSTILE))), ids="::".join)
def test_every_test_that_is_named_exists(named: tuple[str, str]) -> None:
    file, function = named
    assert function.startswith("test_")
    assert (ROOT / file).is_file()
    assert function in functions_of(file)


def test_every_line_of_the_threat_model_names_a_test_or_says_that_nothing_holds_it() -> None:
    lines = [line for line in SECURITY.splitlines() if line.startswith("|") and not line.startswith("|---")]
    lines = [line for line in lines if not line.endswith("| held by |")]
    assert len(lines) > 50
    for line in lines:
        last = line.strip("|").split("|")[-1]
        assert NAMED.search(last) or "nothing holds th" in last, line


def test_every_finding_has_a_test_and_a_commit_of_this_repository() -> None:
    rows = re.findall(r"^\| (?:high|medium|low) \|.*\|$", HOSTILE, re.MULTILINE)
    assert len(rows) > 20
    whole = _has_history()
    for row in rows:
        *_, tests, commit = (cell.strip() for cell in row.strip("|").split("|"))
        assert NAMED.search(tests), row
        assert not whole or _git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, commit


def _has_history() -> bool:
    """Whether this is a repository with all its commits, and no archive or shallow clone."""
    return _git("rev-parse", "--is-shallow-repository").stdout == "false\n"


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
