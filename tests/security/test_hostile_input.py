"""Options, files and standard input that no honest user writes: each command ends in one sentence and writes nothing.

Add a row for every new one that is found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import run_command
from scripted_team import write_team

POOL = """
[[worker]]
name = "{name}"
kind = "openai"
model = "a"
base_url = "http://127.0.0.1:9/v1"
price = {{ input = {price}, output = {price} }}
limits = {{ retries = 0, max_usd = {most} }}
"""
ASK = ["ask", "What is 2 + 2?", "--no-store", "--planner", "single"]
HOSTILE: dict[str, tuple[list[str], str]] = {
    "standard input that is no text": (["ask", "-"], "on standard input is not UTF-8 text"),
    "a question that is no text": (["ask", "caf\udce9?"], "The question is not UTF-8 text"),
    "a dear price": (
        [*ASK, "--pool", "dear.toml", "--day-budget-usd", "5"],
        "less than or equal to 1000000000",
    ),
    "a dear call": ([*ASK, "--pool", "dear_call.toml", "--day-budget-usd", "5"], "less than or equal to"),
    "a loop of links": ([*ASK, "--pool", "one"], "one"),
    "a loop of links above": ([*ASK, "--pool", "one/pool.toml"], "one/pool.toml"),
    "another database": (
        ["ask", "What is 2 + 2?", "--pool", "pool.toml", "--store", "mysql://me:hush-hush@host/db"],
        "mysql:// is not a trace store",
    ),
    "another database, read": (
        ["traces", "list", "--store", "postgresql://me:hush-hush@host/db"],
        "is the address of a database",
    ),
    "a name of two lines": ([*ASK, "--pool", "lines.toml"], "on one line"),
    "millions of samples": (
        ["ask", "2 + 2?", "--pool", "pool.toml", "--planner", "self-consistency:ada:99999999"],
        "1 to 1000 samples",
    ),
    "samples beyond numbers": (
        ["ask", "2 + 2?", "--pool", "pool.toml", "--planner", "self-consistency:ada:" + "9" * 5000],
        "samples",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the files that the table names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Path("dear.toml").write_text(POOL.format(name="a", price="1e308", most=1))
    Path("dear_call.toml").write_text(POOL.format(name="a", price=1, most="1e308"))
    Path("lines.toml").write_text(POOL.format(name="a\\nb", price=1, most=1))
    write_team(Path("pool.toml"))
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    return tmp_path


@pytest.mark.parametrize(("tokens", "says"), HOSTILE.values(), ids=HOSTILE)
def test_it_is_refused_in_one_sentence(
    folder: Path,
    tokens: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = sorted(folder.rglob("*"))
    outcome = run_command(tokens, capsys, monkeypatch, stdin=b"caf\xe9 \xff?")
    assert (outcome.status, outcome.out) == (2, ""), outcome
    assert outcome.err.startswith("podium: ")
    assert outcome.err.count("\n") == 1
    assert says in outcome.err
    assert "hush-hush" not in outcome.err
    assert [path for path in sorted(folder.rglob("*")) if path not in before and path.name != "data"] == []


def test_standard_input_in_a_locale_without_unicode_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io  # noqa: PLC0415
    import sys  # noqa: PLC0415

    from podium.cli import run  # noqa: PLC0415

    text = io.TextIOWrapper(io.BytesIO(b"caf\xe9?"), encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr(sys, "stdin", text)
    assert run(["ask", "-"]) == 2
    assert "on standard input is not UTF-8 text" in capsys.readouterr().err
