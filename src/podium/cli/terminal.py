"""What every verb opens: the console, the question, the trace store.

It imports little, so that a verb which runs no plan starts at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from podium.errors import UsageError
from podium.sqlite_files import default_path
from podium.trace.store import TraceStore
from podium.types import Question


def open_console(*, stderr: bool = False) -> Console:
    """Where drawings are printed: colours on a terminal, plain text of 120 columns in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 120
    return console


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal's standard error, moved by a call with (what is done, how many, of how many)."""
    from rich.progress import (  # noqa: PLC0415 - only where something is drawn
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = open_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        line = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(line, description=what, completed=done, total=total)


def agrees(question: str) -> bool:
    """Whether the user says yes; without a terminal nobody does. The question goes to standard error."""
    if not sys.stdin.isatty():
        return False
    open_console(stderr=True).print(f"{question} [y/N] ", end="", soft_wrap=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def read_question(text: str) -> Question:
    """The question, read from standard input if `text` is "-".

    Raises:
        UsageError: it is empty, or cannot be decoded.
    """
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
    """The store of traces at `path`; None: at its default path."""
    return TraceStore(path or default_path(), create=create)
