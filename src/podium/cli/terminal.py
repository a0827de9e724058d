"""What verbs share at a terminal: the console, JSON, tables, questions to the user, the question, the trace store.

It imports little, so that a verb which runs no plan starts at once.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table

from podium.errors import UsageError
from podium.files.locations import default_store_path
from podium.store import TraceStore
from podium.types import Question


def open_console(*, stderr: bool = False) -> Console:
    """The console on which drawings are printed: colours on a terminal, plain text of 120 columns in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 120
    return console


def print_json(document: Any) -> None:
    """Print a document as one line of JSON: models, dataclasses, times and plain values, or a text that is JSON.

    A text is printed in UTF-8, whatever the encoding of the terminal.
    """
    if isinstance(document, str):
        print(document, file=json_output(), flush=True)
    else:
        print(json.dumps(document, default=to_jsonable_python), flush=True)


def json_output() -> TextIO:
    """Standard output for JSON, which is UTF-8 whatever the encoding of the terminal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def plain_table(*columns: str) -> Table:
    """A table with these columns and no lines. Columns that begin with > hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    return table


def confirm(question: str) -> bool:
    """Whether the user says yes; without a terminal the answer is no. The question goes to standard error."""
    if not sys.stdin.isatty():
        return False
    open_console(stderr=True).print(f"{question} [y/N] ", end="", soft_wrap=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def require_yes(question: str, refusal: str) -> None:
    """Ask the user. Without a yes, the refusal is raised as a `UsageError`."""
    if not confirm(question):
        unasked = "" if sys.stdin.isatty() else " To go on without being asked, add --yes."
        raise UsageError(f"{refusal}{unasked}")


def read_question(text: str) -> Question:
    """The question, read from standard input if `text` is "-"."""
    where = ""
    try:
        if text.strip() == "-":
            where = " on standard input"
            text = sys.stdin.read()
        text.encode()  # Where the locale is C, Python reads bytes that are no text as half characters.
    except UnicodeError:
        raise UsageError(f"The question{where} is not UTF-8 text; convert it, as with iconv.") from None
    if not text.strip():
        raise UsageError('The question is empty; write it in quotes, as in: podium ask "What is 6 x 7?"')
    return Question(text=text.strip())


def open_trace_store(path: Path | None, *, create: bool) -> TraceStore:
    """The store of traces at `path`, or at its default path."""
    return TraceStore(path or default_store_path(), create=create)
