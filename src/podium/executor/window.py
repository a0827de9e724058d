"""A sum over the last seconds: what limits a minute are kept by."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Entry:
    """Something that was admitted."""

    at: float
    amount: float


class Window:
    """What was admitted in the last `seconds`, which never exceeds `limit`, wherever a window of that length begins.

    An entry larger than the limit is admitted when the window is empty: it cannot be made in parts.

    Args:
        limit: of the sum.
        seconds: length of the window.
    """

    def __init__(self, limit: float, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._total = 0.0

    def total(self, now: float) -> float:
        """The sum of what has not left the window."""
        while self._entries and self._entries[0].at <= now - self._seconds:
            self._total -= self._entries.popleft().amount
        if not self._entries:
            self._total = 0.0  # Sums of floats leave crumbs.
        return self._total

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` fits, if nothing else is admitted before; 0: it fits now."""
        room = self._limit - self.total(now)
        if amount <= room or not self._entries:
            return 0.0
        for entry in self._entries:
            room += entry.amount
            if amount <= room:
                break
        return max(0.0, entry.at + self._seconds - now)

    def add(self, amount: float, now: float) -> Entry:
        """Admit `amount`."""
        self.total(now)  # Forgets what has left: a worker may be called for weeks.
        entry = Entry(now, amount)
        self._entries.append(entry)
        self._total += amount
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Make an entry what it turned out to be; one that has left the window counts no more."""
        if self._entries and entry.at >= self._entries[0].at:
            self._total += amount - entry.amount
        entry.amount = amount
