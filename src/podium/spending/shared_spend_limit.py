"""The budget of a run or of a day (UTC), which many questions and processes share in an SQLite file, the state file.

The limit is hard: a reservation and a settlement are one SQL statement each, so no two processes spend the same dollar.
The reservations of a killed process stay, because the provider may bill its calls. A statement takes some microseconds
on the event loop. If another process has locked the file, the event loop is not blocked: a call waits for its
reservation, and a settlement is written a moment later. If a settlement cannot be written, its answer is returned all
the same, and the next reservation writes it first, or fails.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from podium.errors import StoreError, UsageError
from podium.files.locations import default_store_path
from podium.files.sqlite import BUSY_TIMEOUT_S, IN_MEMORY, SQLiteSchema, is_busy, retry_while_busy
from podium.spending.spend_limit import NANO_PER_USD, Balance, SpendLimitError, to_nano
from podium.types import MAX_USD

_LOG = logging.getLogger("podium.spending")
DAY_BUDGET = "PODIUM_DAY_BUDGET_USD"
"""The environment variable with the dollars of a day, for all processes that share a state file."""
STATE = SQLiteSchema(
    "state file",
    application_id=0x506F4453,  # "PoDS"
    version=2,
    tables=(
        "CREATE TABLE IF NOT EXISTS spending ("
        "name TEXT, day TEXT, spent INTEGER, reserved INTEGER, PRIMARY KEY (name, day)) WITHOUT ROWID",
    ),
    way_out="move it away or set PODIUM_STORE to another folder",
    synchronous="NORMAL",  # Written before and after each call that is paid for.
)
_ROW = "WHERE name = ? AND day = ?"
_RESERVE = f"UPDATE spending SET reserved = reserved + ? {_ROW} AND spent + reserved + ? <= ? RETURNING spent, reserved"
_SETTLE = f"UPDATE spending SET reserved = reserved - ?, spent = spent + ? {_ROW} RETURNING spent, reserved"
_RETRY_S = 0.02
"""Seconds until a locked file is tried again."""


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class _Settlement(NamedTuple):
    """Dollars, in billionths, that are released and counted as paid."""

    reserved: int
    paid: int
    day: str | None
    """The day of the reservation. None if there was none: then the day of writing counts."""


class SharedSpendLimit:
    """A `SpendLimit` for all processes that open the same file under the same name.

    Args:
        path: the SQLite file. It is made if it is missing. If it is None, the limit is kept in memory, for this process
            alone.
        name: "run" counts for as long as the file exists, and "day" starts again each day.
        limit_usd: the most dollars. Processes that open the same file may have different limits.

    Raises:
        UsageError: the limit is not an amount of dollars, or the file cannot be used.
    """

    def __init__(
        self,
        path: Path | None,
        name: Literal["run", "day"],
        limit_usd: float,
        *,
        today: Callable[[], str] = _today,
    ) -> None:
        if not 0 <= limit_usd <= MAX_USD:
            raise UsageError(f"A {name} may not have a budget of ${limit_usd:g}: give dollars from 0 on.")
        way_out = (
            "raise the run's budget" if name == "run" else "raise the day's budget or wait for tomorrow (UTC)"
        )
        self.path = path
        self.name = name
        self.limit_usd = limit_usd
        self.refusal: str | None = None
        self._balance = Balance(to_nano(limit_usd), f"the {name}'s ${limit_usd:g}", way_out)
        self._settled = asyncio.Event()
        """Set when this process has settled a call; then another event takes its place, since a limit may serve several
        event loops, one after the other."""
        self._today = today
        self._day: str | None = None
        """The day to which the known sums of spent and reserved dollars belong."""
        self._days: dict[int, deque[str]] = {}
        """The days on which this process has reserved each amount, oldest first."""
        self._unwritten: deque[_Settlement] = deque()
        """Settlements that are not written yet, oldest first."""
        self._failure: StoreError | None = None
        """Why the oldest settlement could not be written. None if all are written or wait for a locked file."""
        self._retrying = False
        """Whether a timer will write the settlements in a moment."""
        self._busy_since: float | None = None
        """Since when, on the monotonic clock, another process has locked the file. None if it is not locked."""
        self._file = STATE.open(IN_MEMORY if path is None else path)
        self._file.execute("PRAGMA busy_timeout = 0")

    @property
    def exhausted(self) -> bool:
        return self._balance.exhausted

    def reserve(self, usd: float) -> None:
        """Reserve `usd`, as `SpendLimit.reserve` does. A call that costs nothing writes nothing."""
        self._retry_failed()
        balance, amount = self._balance, to_nano(usd)
        try:
            day = self._open_day()
            if not amount:
                if balance.exhausted:
                    raise SpendLimitError(balance.refusal(usd), self)
                return
            row = self._execute(_RESERVE, (amount, self.name, day, amount, balance.limit))
            if row is None:
                self._read_sums(day)
                raise SpendLimitError(balance.refusal(usd), self)
        except _BusyError as error:
            raise SpendLimitError(str(error), self) from error
        self._days.setdefault(amount, deque()).append(day)
        balance.reserved_here += amount
        balance.spent, balance.reserved = row

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Release the oldest reservation of this sum and count what was paid, on the day of the reservation. A payment
        without a reservation counts today."""
        reserved, paid = to_nano(reserved_usd), to_nano(paid_usd)
        if not reserved and not paid:
            return
        day = None
        if reserved:
            day = self._days[reserved].popleft()
            if not self._days[reserved]:
                del self._days[reserved]
        self._unwritten.append(_Settlement(reserved, paid, day))
        self._write_settlements()

    def _write_settlements(self) -> None:
        """Write the settlements in order. If the file is locked and an event loop runs, try again a moment later."""
        while self._unwritten:
            reserved, paid, day = self._unwritten[0]
            try:
                day = self._open_day() if day is None else day
                row = self._execute(_SETTLE, (reserved, paid, self.name, day))
            except _BusyError:
                if not self._retrying:
                    self._retrying = True
                    asyncio.get_running_loop().call_later(_RETRY_S, self._write_later)
                return
            except StoreError as error:
                if self._failure is None:
                    _LOG.error("$%.6f that were paid are not recorded: %s", paid / NANO_PER_USD, error)
                self._failure = error
                self._wake()  # Otherwise waiting calls would wait for a settlement that never comes.
                return
            self._unwritten.popleft()
            self._failure = None
            if row is not None and day == self._day:
                self._balance.spent, self._balance.reserved = row
            self._balance.reserved_here -= reserved
            self._wake()

    def _wake(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()

    def _retry_failed(self) -> None:
        """Write settlements that could not be written, or raise the `StoreError` of the oldest."""
        if self._failure is not None:
            self._write_settlements()
        if self._failure is not None:
            raise self._failure

    def _write_later(self) -> None:
        self._retrying = False
        self._write_settlements()

    async def wait_for_room(self, usd: float) -> bool:
        may_fit = self._busy_since is not None or self._balance.may_fit_later(to_nano(usd))
        if may_fit:
            await self._wait_until_settled()
        return may_fit

    async def wait_until_unreserved(self) -> None:
        """Wait until this process has no call in flight that may cost something.

        Raises:
            StoreError: a settlement cannot be written; its reservation stays reserved.
        """
        while self._balance.reserved_here:
            self._retry_failed()
            if self._balance.reserved_here:
                await self._wait_until_settled()

    async def _wait_until_settled(self) -> None:
        """Wait until this process has settled a call. While the file is locked, wait only for a moment."""
        if self._busy_since is not None:
            await asyncio.sleep(_RETRY_S)
        else:
            await self._settled.wait()

    @property
    def spent_usd(self) -> float:
        """Dollars that all processes have spent."""
        self._read_sums(self._open_day())
        return self._balance.spent / NANO_PER_USD

    @property
    def reserved_usd(self) -> float:
        """Dollars that all processes have reserved for calls in flight. Reservations of killed processes stay."""
        self._read_sums(self._open_day())
        return self._balance.reserved / NANO_PER_USD

    def close(self) -> None:
        """Write the last settlements and close the file. Calling twice is fine.

        Raises:
            StoreError: a settlement cannot be written; its reservation stays reserved.
        """
        try:
            if self._unwritten:
                self._file.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_TIMEOUT_S)}")
                self._write_settlements()
            if self._unwritten:
                raise self._failure or StoreError(
                    f"Another process has locked {self.path}: the latest settlements are not written to it."
                )
        finally:
            self._unwritten.clear()
            self._file.close()

    def _open_day(self) -> str:
        """Today's name. Its row is inserted when the day begins."""
        day = self._today() if self.name == "day" else ""
        if day != self._day:
            self._execute("INSERT OR IGNORE INTO spending VALUES (?, ?, 0, 0)", (self.name, day))
            self._day = day
            self._read_sums(day)
        return day

    def _read_sums(self, day: str) -> None:
        row = self._execute(f"SELECT spent, reserved FROM spending {_ROW}", (self.name, day))
        if row is not None:
            self._balance.spent, self._balance.reserved = row

    def _execute(self, statement: str, values: tuple[int | str, ...]) -> tuple[int, int] | None:
        """Run a statement and return its row, if it has one. Wait for a locked file, but never on an event loop.

        Raises:
            _BusyError: the file is locked, and an event loop runs.
            StoreError: the statement cannot be run, or the file has been locked for too long.
        """
        on_event_loop = _in_event_loop()

        def run() -> list[tuple[int, int]]:
            return self._file.execute(statement, values).fetchall()

        try:
            rows = run() if on_event_loop else retry_while_busy(run, _RETRY_S)
        except sqlite3.Error as error:
            now = time.monotonic()
            self._busy_since = (self._busy_since or now) if on_event_loop and is_busy(error) else None
            sentence = f"The spending of the {self.name} in {self.path} cannot be updated ({error})."
            if self._busy_since is None or now - self._busy_since > BUSY_TIMEOUT_S:
                self._busy_since = None
                raise StoreError(sentence) from error
            raise _BusyError(sentence) from error
        self._busy_since = None
        return rows[0] if rows else None


class _BusyError(StoreError):
    """Another process has locked the file at this moment."""


def default_state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`state.sqlite` in the folder of the default trace store. A store that is a database server has no folder, so then
    in the folder of the default file."""
    if "://" in environ.get("PODIUM_STORE", ""):
        environ = {name: value for name, value in environ.items() if name != "PODIUM_STORE"}
    return default_store_path(environ).with_name("state.sqlite")


def open_day_limit(
    limit_usd: float | None, environ: Mapping[str, str] = os.environ
) -> SharedSpendLimit | None:
    """Open the spend limit of the day in the default state file: `limit_usd`, else `$PODIUM_DAY_BUDGET_USD`. None if
    neither is given.

    Raises:
        UsageError: the limit is not an amount of dollars, or the state file cannot be used.
    """
    limit_usd = read_day_budget(environ) if limit_usd is None else limit_usd
    return None if limit_usd is None else SharedSpendLimit(default_state_path(environ), "day", limit_usd)


def read_day_budget(environ: Mapping[str, str] = os.environ) -> float | None:
    """The dollars of `$PODIUM_DAY_BUDGET_USD`. None if the variable is not set.

    Raises:
        UsageError: the variable is not an amount of dollars.
    """
    amount = environ.get(DAY_BUDGET, "").strip()
    if not amount:
        return None
    try:
        limit_usd = float(amount)
    except ValueError:
        limit_usd = math.nan
    if not 0 <= limit_usd <= MAX_USD:
        raise UsageError(f"{DAY_BUDGET}={amount}: give dollars from 0 on.")
    return limit_usd


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
