"""Podium in a folder of the test's own, and its command line, run in the process of the test."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.cli import run


@dataclass(frozen=True)
class Outcome:
    """A command that has ended."""

    status: int
    out: str
    err: str


Podium = Callable[..., Outcome]


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it the working folder, where Podium's store and data are too."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PODIUM_STORE", str(folder / "kept" / "traces.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("COLUMNS", "100")


def run_command(
    tokens: Sequence[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    stdin: str | bytes = "",
) -> Outcome:
    """Run `podium TOKENS`, with `stdin` as its standard input."""
    raw = stdin if isinstance(stdin, bytes) else stdin.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
    capsys.readouterr()
    status = run(tokens)
    out, err = capsys.readouterr()
    return Outcome(status, out, err)
