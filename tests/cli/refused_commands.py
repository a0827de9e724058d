"""What every refused command has in common."""

from __future__ import annotations

from typing import Any


def one_sentence(outcome: Any) -> str:
    """What a refused command says: status 2, nothing on standard output, one line."""
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("podium: ")
    assert outcome.err.count("\n") == 1
    return str(outcome.err)
