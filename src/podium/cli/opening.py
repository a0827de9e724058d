"""Opens what most verbs need: the console, the question, the pool, the budget, the store of traces."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from podium.cli.options import BudgetOptions
from podium.errors import UsageError
from podium.trace.store import TraceStore, default_path
from podium.types import Budget, Question


def open_console(*, stderr: bool = False) -> Console:
    """Where drawings are printed: colours on a terminal, plain text of 120 columns in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 120
    return console


def read_question(text: str) -> Question:
    """The question, read from standard input if `text` is "-"."""
    if text.strip() == "-":
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise UsageError("The question on standard input is not UTF-8 text.") from error
    if not text.strip():
        raise UsageError('The question is empty; write it in quotes, as in: podium ask "What is 6 x 7?"')
    return Question(text=text.strip())


def open_store(path: Path | None, *, create: bool) -> TraceStore:
    """The store of traces at `path`; None: at its default place."""
    return TraceStore(path or default_path(), create=create)


def to_budget(options: BudgetOptions) -> Budget:
    """The limits that the options ask for."""
    given = {
        "rounds": options.rounds,
        "calls": options.budget_calls,
        "tokens": options.budget_tokens,
        "usd": options.budget_usd,
        "seconds": options.budget_seconds,
    }
    try:
        return Budget.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        option = "--rounds" if field == "rounds" else f"--budget-{field}"
        wanted = first["msg"].replace("Input should", "it should")
        raise UsageError(f"{option} {first['input']}: {wanted}.") from error
