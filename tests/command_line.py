"""The command line, run in the process of a test. The fixtures `podium` of several folders use it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from podium.cli import run


@dataclass(frozen=True)
class Outcome:
    """A command that has ended."""

    status: int
    out: str
    err: str


Podium = Callable[..., Outcome]


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
