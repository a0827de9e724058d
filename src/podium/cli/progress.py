"""Says how far a long command has come, and how long the rest will take at the pace so far.

On a terminal it is a bar. Elsewhere a line goes to standard error every half minute, also while nothing is answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cli.printable import counted, printable, say, shorten
from podium.cli.terminal import open_console

if TYPE_CHECKING:
    from podium.evals.answer_files import ShowProgress
    from podium.evals.question_table import AskingProgress

_EVERY_S = 30.0
_LONGEST_ERROR = 300
"""Longer errors of workers are cut off after this many characters."""


class TimeLeft:
    """The seconds that the rest takes, estimated from the calls that ended since this start.

    Answers that were kept before count as done and took no time. With other work to do the estimate starts again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._first = self._done = self._total = 0

    def update(self, done: int, total: int) -> None:
        """So many of so many are done."""
        if total != self._total or done < self._done:
            self._began, self._first = self._clock(), done
        self._done, self._total = done, total

    @property
    def seconds(self) -> float | None:
        """The seconds that are likely left. None until something has ended."""
        ended = self._done - self._first
        return (self._clock() - self._began) / ended * (self._total - self._done) if ended else None

    def __str__(self) -> str:
        seconds = self.seconds
        if seconds is None:
            return "no estimate yet"
        if seconds < 60:
            return f"about {seconds:.0f} s left"
        return f"about {counted(round(seconds / 60), 'minute')} left"


@contextmanager
def show_progress(every_s: float = _EVERY_S) -> Iterator[ShowProgress]:
    """Show what the calls of the value say: where standard error is no terminal, every so many seconds."""
    left = TimeLeft()
    with _bar(left) if open_console(stderr=True).is_terminal else _lines(left, every_s) as draw:

        def show(what: str, done: int, total: int) -> None:
            left.update(done, total)
            draw(what, done, total)

        yield show


@contextmanager
def _bar(left: TimeLeft) -> Iterator[ShowProgress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - only here

    what, time_left = (
        TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[left]}")
    )
    columns = (what, BarColumn(), MofNCompleteColumn(), time_left)
    with Progress(*columns, console=open_console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, left="")
        yield lambda what, done, total: bar.update(
            line, description=printable(what), completed=done, total=total, left=str(left)
        )


@contextmanager
def _lines(left: TimeLeft, every_s: float) -> Iterator[ShowProgress]:
    ended, latest = threading.Event(), ""

    def draw(what: str, done: int, total: int) -> None:
        nonlocal latest
        latest = f"{what}: {done:,} of {total:,}"

    def print_lines() -> None:
        while not ended.wait(every_s):
            if latest:
                say(f"{latest}, {left}", stderr=True)

    printer = threading.Thread(target=print_lines, name="podium-progress", daemon=True)
    printer.start()
    try:
        yield draw
    finally:
        ended.set()
        printer.join()


def say_what_is_missing(progress: AskingProgress, *, stderr: bool = True) -> None:
    """Say which calls failed and why, and why asking stopped."""
    if progress.failed:
        say(f"{counted(progress.failed, 'call')} failed; the same command makes them again.", stderr=stderr)
    for worker, error in sorted(progress.errors.items()):
        reason = shorten(error.removeprefix(f"{worker}: "), _LONGEST_ERROR)
        say(f"{worker}: {reason}", stderr=stderr)
    if progress.refusal is not None:
        say(f"Stopped: {progress.refusal} Run the same command again to continue.", stderr=stderr)
