"""Prints in plain lines how far a run is, from its first minute on. A terminal and a file get the same lines.

An iteration of a language model may take minutes, so a thread prints the progress within an iteration.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

_FIRST_S, _EVERY_S = 20.0, 60.0
"""Seconds until the first line, and between further lines."""


class Progress:
    """Prints every minute, while its block lasts, how much of a run is done.

    Args:
        say: prints one line. It is called from a thread too.
        noun: what is counted, such as "examples".
        total: how many there are, over all starts of the run. 0 if the number is not known yet.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        noun: str,
        total: int = 0,
        first_s: float = _FIRST_S,
        every_s: float = _EVERY_S,
    ) -> None:
        self.say, self._noun, self.total = say, noun, total
        self._first_s, self._every_s = first_s, every_s
        self._phase = ""
        self._done = self._before = self._tokens = 0
        self.loss: float | None = None
        """The loss of the newest step of the optimiser. None before the first step."""
        self._began = self._opened = time.monotonic()
        self._within_s: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._report, name="podium-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def phase(self, name: str, done: int = 0) -> None:
        """Name what the run does now, for the next line. At least `done` units are done, since some may be skipped."""
        self._phase, self._done = name, max(self._done, done)

    def begin(self, done: int, within_s: float | None = None) -> None:
        """Start counting at `done`, the units that an earlier start of the run has finished.

        Args:
            within_s: seconds after which the run ends, however much is left. None if it has no such limit.
        """
        self._done = self._before = done
        self._began = time.monotonic()
        self._within_s = within_s

    def advance(self, count: int, tokens: int) -> None:
        """Count finished units and their tokens."""
        self._done = min(self._done + count, self.total or self._done + count)
        self._tokens += tokens

    def record_loss(self, loss: float) -> None:
        """Take the loss of the newest step of the optimiser. The first and the last step are printed at once."""
        first, self.loss = self.loss is None, loss
        if first or self._done == self.total:
            self.say(self.line())

    def line(self) -> str:
        """A line that says how far the run is."""
        now = time.monotonic()
        gone, fresh = now - self._began, self._done - self._before
        if not fresh:
            return f"{self._phase or 'starting'}, {format_duration(now - self._opened)} gone"
        left = max(gone, 1e-9) / fresh * (self.total - self._done)
        if self._within_s is not None:
            left = max(0.0, min(left, self._within_s - gone))
        parts = [
            f"{self._done:,} of {self.total:,} {self._noun}",
            f"{self._tokens / max(gone, 1e-9):,.0f} tokens a second",
            *([] if self.loss is None else [f"loss {self.loss:.4g}"]),
            f"{format_duration(now - self._opened)} gone",
            f"{format_duration(left)} left",
        ]
        return ", ".join([self._phase] * bool(self._phase) + parts)

    def _report(self) -> None:
        wait = self._first_s
        while not self._over.wait(wait):
            self.say(self.line())
            wait = self._every_s


def format_duration(seconds: float) -> str:
    """Minutes and seconds, such as "2:05"."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
