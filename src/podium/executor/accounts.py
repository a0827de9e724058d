"""Dollars that many questions share: of a run, or of a day (UTC), in an SQLite file that outlives the process.

A hard limit: what a call may cost is reserved before it and settled after it, each in one statement, so that no two
processes spend the same dollar. What a killed process had reserved stays counted: the provider may bill it. A booking
takes some microseconds on the event loop. A kill loses none, a power cut may lose the latest.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from podium.errors import StoreError, UsageError
from podium.executor.state_file import STATE, default_state_path

DAY_BUDGET = "PODIUM_DAY_BUDGET_USD"
"""The environment variable with the dollars of a day, for all processes that share a state file."""
_ROW = "WHERE account = ? AND day = ?"
_HOLD = f"UPDATE spending SET held = held + ? {_ROW} AND spent + held + ? <= ? RETURNING spent, held"
_SETTLE = f"UPDATE spending SET held = held - ?, spent = spent + ? {_ROW} RETURNING spent, held"
_NANO = 10**9
UNLIMITED_USD = 1e9
"""The largest limit of an account."""


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class Account:
    """One limit in dollars, over all who open the same file and name.

    Args:
        path: the SQLite file, made if missing; None: in memory, for this process alone.
        name: "run": as long as the file is there; "day": of each day anew.
        limit_usd: dollars at most. Others may open the account with another limit; each keeps its own.
        today: the day's name now.

    Raises:
        UsageError: the limit is no amount, or the file cannot be used.
    """

    def __init__(
        self,
        path: Path | None,
        name: Literal["run", "day"],
        limit_usd: float,
        *,
        today: Callable[[], str] = _today,
    ) -> None:
        if not 0 <= limit_usd <= UNLIMITED_USD:
            raise UsageError(f"A {name} may not have a budget of ${limit_usd:g}: give dollars from 0 on.")
        self.path = path
        self.name = name
        self.limit_usd = limit_usd
        self.refusal: str | None = None
        """Why the latest call was refused that this account refused for good; None: none was."""
        # Whole billionths of a dollar: sums of floats leave crumbs, and these sums are kept for months.
        self._limit = _nano(limit_usd)
        self._today = today
        self._day: str | None = None
        self._spent = self._held = 0
        """Of `_day`, when this process last booked."""
        self._days: dict[int, deque[str]] = {}
        """For each amount that this process has reserved: the days on which it was reserved, oldest first."""
        self._own = 0
        """What this process has reserved."""
        self._waiting: list[asyncio.Future[None]] = []
        self._file = STATE.open(Path(":memory:") if path is None else path)

    def reserve(self, usd: float) -> str | None:
        """Reserve `usd`; or return the sentence that says which limit the call could break, and reserve nothing.

        A call that may cost nothing is refused only where the limit has been passed, and writes nothing.
        """
        amount, day = _nano(usd), self._open_day()
        if not amount:
            return self._sentence(usd) if self.exhausted else None
        row = self._book(_HOLD, (amount, self.name, day, amount, self._limit))
        if row is None:
            self._look(day)
            return self._sentence(usd)
        self._spent, self._held = row
        self._days.setdefault(amount, deque()).append(day)
        self._own += amount
        return None

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Release `reserved_usd`, as it was reserved, and book `paid_usd`, both on the day of the reservation.

        Of equal reservations the oldest is settled first. Without a reservation it is booked today.
        """
        held, paid = _nano(reserved_usd), _nano(paid_usd)
        if not held and not paid:
            return
        day = self._taken(held) if held else self._open_day()
        row = self._book(_SETTLE, (held, paid, self.name, day))
        if row is not None and day == self._day:
            self._spent, self._held = row
        self._own -= held
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def may_free(self, usd: float) -> bool:
        """Whether there could be room for `usd` once this process settles what it has reserved."""
        amount = _nano(usd)
        others = max(0, self._held - self._own)
        return self._own > 0 and self._spent + others + amount <= self._limit

    async def settled(self) -> None:
        """Wait until this process has settled something."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    async def quiet(self) -> None:
        """Wait until this process has nothing reserved."""
        while self._own:
            await self.settled()

    @property
    def exhausted(self) -> bool:
        """Whether more has been spent than the limit, as this process knows."""
        return self._spent > self._limit

    @property
    def spent_usd(self) -> float:
        """Dollars paid so far, by all."""
        self._look(self._open_day())
        return self._spent / _NANO

    @property
    def held_usd(self) -> float:
        """Dollars reserved for calls in flight, by all, those of killed processes included."""
        self._look(self._open_day())
        return self._held / _NANO

    def close(self) -> None:
        """Close the file. Calling twice is fine."""
        self._file.close()

    def _open_day(self) -> str:
        """The row of today, made when the day begins."""
        day = self._today() if self.name == "day" else ""
        if day != self._day:
            self._book("INSERT OR IGNORE INTO spending VALUES (?, ?, 0, 0)", (self.name, day))
            self._day = day
            self._look(day)
        return day

    def _look(self, day: str) -> None:
        row = self._book(f"SELECT spent, held FROM spending {_ROW}", (self.name, day))
        if row is not None:
            self._spent, self._held = row

    def _taken(self, amount: int) -> str:
        days = self._days[amount]
        day = days.popleft()
        if not days:
            del self._days[amount]
        return day

    def _book(self, statement: str, values: tuple[int | str, ...]) -> tuple[int, int] | None:
        try:
            found: list[tuple[int, int]] = self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(
                f"The spending of the {self.name} in {self.path} cannot be booked ({error})."
            ) from error
        return found[0] if found else None

    def _sentence(self, usd: float) -> str:
        way_out = (
            "raise the run's budget"
            if self.name == "run"
            else "raise the day's budget or wait for tomorrow (UTC)"
        )
        if self.exhausted:
            return (
                f"${self._spent / _NANO:.6f} of the {self.name}'s ${self.limit_usd:g} are spent: {way_out}."
            )
        left = max(0, self._limit - self._spent - self._held) / _NANO
        return (
            f"The call could cost ${usd:.6f}, and ${left:.6f} of the {self.name}'s ${self.limit_usd:g} are left "
            f"(${self._spent / _NANO:.6f} spent, ${self._held / _NANO:.6f} held for calls in flight): "
            f"{way_out}, or lower the worker's max_tokens."
        )


def open_day_account(limit_usd: float | None, environ: Mapping[str, str] = os.environ) -> Account | None:
    """The account of the day, in the default state file: of `limit_usd`, else of `$PODIUM_DAY_BUDGET_USD`.

    None: neither is given.

    Raises:
        UsageError: the limit is no amount, or the state file cannot be used.
    """
    given = environ.get(DAY_BUDGET, "").strip()
    if limit_usd is None and given:
        try:
            limit_usd = float(given)
        except ValueError:
            limit_usd = math.nan
        if not 0 <= limit_usd <= UNLIMITED_USD:
            raise UsageError(f"{DAY_BUDGET}={given}: give dollars from 0 on.")
    return None if limit_usd is None else Account(default_state_path(environ), "day", limit_usd)


def _nano(usd: float) -> int:
    return round(usd * _NANO)
