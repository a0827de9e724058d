"""The budget of retries of a worker: when all calls fail, trying each of them again makes matters worse."""

from __future__ import annotations

import math

from podium.executor.window import Window

_MINUTE_S = 60.0
_FREE = 10


class RetryBudget:
    """Of the last minute: `share` retries for each call, and a few that are free."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._calls = Window(math.inf, _MINUTE_S)
        self._retries = Window(math.inf, _MINUTE_S)

    def called(self, now: float) -> None:
        """A call was made for the first time."""
        self._calls.add(1, now)

    def take(self, now: float) -> bool:
        """Whether one more retry may be made; if so, it is counted."""
        if self._retries.total(now) >= _FREE + self._share * self._calls.total(now):
            return False
        self._retries.add(1, now)
        return True
