"""Filters of traces, and the SQL that finds these traces, written once for SQLite and PostgreSQL.

This module builds statements and reads their rows; the stores run them.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from podium.errors import UsageError
from podium.trace.model import TraceStatus, Verdict
from podium.trace.serialization import TraceRow, plain, to_searched

MAX_PAGE = 200
"""Traces that one page may have."""

OutcomeFilter = Verdict | Literal["none"]
"""A verdict, or "none": nobody has judged the answer."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which traces to find: those that meet all conditions. None: no condition."""

    since: datetime | None = None
    """Started then or later."""
    until: datetime | None = None
    """Started before."""
    planner: str | None = None
    worker: str | None = None
    """A worker that answered a step or failed to."""
    status: TraceStatus | None = None
    min_cost: float | None = None
    """Dollars."""
    max_cost: float | None = None
    q: str | None = None
    """Text of the question, in its first or its last 1,000 characters. The case of letters does not matter."""
    owner: str | None = None
    """The name of a key."""
    outcome: OutcomeFilter | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    traces: tuple[TraceSummary, ...]
    """Newest first."""
    next: str | None
    """Where the next page begins; None: this is the last."""
    total: int | None
    """Traces of all pages. Only the first page has it; None also if they are too many to count."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One line of a list."""

    id: str
    started: datetime
    """UTC."""
    planner: str
    status: TraceStatus
    question: str
    """The first 200 characters."""
    calls: int
    cost_usd: float
    seconds: float
    workers: tuple[str, ...] = ()
    """Names of those that answered or failed to; each once, in the order of the steps."""
    owner: str | None = None
    """Name of the key that the request used."""
    outcome: Verdict | None = None
    """None: nobody has judged the answer."""


LISTED = "id, started, planner, status, question, calls, cost_usd, seconds, workers, owner, outcome"
_COUNTED, _COUNTED_FILTERED = 250_000, 10_000
"""Traces that are counted at most: without filters or by owner alone, and with other filters."""

Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the two databases."""

    name: str
    """Of the table."""
    costs: str
    """Of the table of what the questions cost."""
    table: Callable[[Filters], str]
    """The table to search, with a hint at its index."""
    mark: Callable[[int], str]
    """The placeholder of the value with this number, from 1."""
    has_worker: str
    """The condition that the column `workers` names the value {}."""
    worker: Callable[[str], Any]
    """The value of a worker's name."""
    contains: str
    """The condition that the column `searched` contains the value {}."""
    workers: Callable[[Any], Sequence[str]]
    """The names in the column `workers`."""
    now: str
    """Seconds since 1970, by the clock of the database."""
    lock: str
    """At the end of a SELECT: locks its rows until the transaction ends."""
    skip_locked: str
    """The same, without rows that others have locked."""

    def adapt(self, statement: str) -> str:
        """A statement for this database. It is written with $1, $2, ..., and with {now}, {lock} and {skip_locked}."""
        filled = statement.format(now=self.now, lock=self.lock, skip_locked=self.skip_locked)
        return filled if self.mark(1) == "$1" else filled.replace("$", "?")

    def page(self, filters: Filters, cursor: str | None, limit: int) -> Statement:
        """Rows for summaries, newest first: one more than `limit` if there are more.

        Raises:
            UsageError: the cursor or the limit cannot be used.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise UsageError(f"limit={limit}: one page has from 1 to {MAX_PAGE} traces.")
        where = self._where(filters)
        if cursor is not None:
            where.before(*read_cursor(cursor))
        return where.statement(
            f"SELECT {LISTED} FROM {self.table(filters)}{{}} ORDER BY started DESC, id DESC LIMIT {limit + 1}"
        )

    def count(self, filters: Filters) -> Statement:
        """How many pass the filters; NULL, if they are too many to count."""
        most = _COUNTED if filters == Filters(owner=filters.owner) else _COUNTED_FILTERED
        table = self.name if filters == Filters() else self.table(filters)
        return self._where(filters).statement(
            f"SELECT nullif(count(*), {most + 1}) FROM (SELECT 1 FROM {table}{{}} LIMIT {most + 1}) AS passing"
        )

    def documents(self, filters: Filters, after: tuple[float, str] | None, limit: int) -> Statement:
        """Rows of start, id and document, oldest first, after the trace `after`."""
        where = self._where(filters)
        if after is not None:
            where.after(*after)
        return where.statement(
            f"SELECT started, id, document FROM {self.table(filters)}{{}} ORDER BY started, id LIMIT {limit}"
        )

    def newest(self, count: int) -> Statement:
        """Rows of one document, newest first."""
        table = self.table(Filters())
        return f"SELECT document FROM {table} ORDER BY started DESC, id DESC LIMIT {int(count)}", ()

    def beginning(self, prefix: str, owner: str | None) -> Statement:
        """Rows of id and document, at most 4, by id."""
        where = _Where(self)
        where.add("id >= {}", prefix)
        where.add("id < {}", prefix + chr(0x10FFFF))
        if owner is not None:
            where.add("owner = {}", plain(owner))
        return where.statement(f"SELECT id, document FROM {self.name}{{}} ORDER BY id LIMIT 4")

    def delete(self, id: str, owner: str | None, status: TraceStatus | None = None) -> Statement:
        """A row for the trace that was deleted; with `status`, only if it has this status."""
        where = _Where(self)
        where.add("id = {}", plain(id))
        if status is not None:
            where.add("status = {}", status)
        if owner is not None:
            where.add("owner = {}", plain(owner))
        return where.statement(f"DELETE FROM {self.name}{{}} RETURNING id")

    def judge(self, row: TraceRow, owner: str | None) -> Statement:
        """A row for the trace whose outcome was written; none if it was deleted or replaced meanwhile."""
        where = _Where(self)
        changed = f"document = {where.mark(row.document)}, outcome = {where.mark(row.outcome)}"
        where.add("id = {}", row.id)
        where.add("status = {}", row.status)
        if owner is not None:
            where.add("owner = {}", plain(owner))
        return where.statement(f"UPDATE {self.name} SET {changed}{{}} RETURNING id")

    def summary(self, row: Sequence[Any]) -> TraceSummary:
        """Of a row of `page`."""
        id_, started, planner, status, question, calls, cost_usd, seconds, workers, owner, outcome = row
        at = datetime.fromtimestamp(started, UTC)
        named = tuple(self.workers(workers))
        return TraceSummary(
            id_, at, planner, status, question, calls, cost_usd, seconds, named, owner, outcome
        )

    def _where(self, filters: Filters) -> _Where:
        where = _Where(self)
        if filters.owner is not None:
            where.add("owner = {}", plain(filters.owner))
        if filters.since is not None:
            where.add("started >= {}", filters.since.timestamp())
        if filters.until is not None:
            where.add("started < {}", filters.until.timestamp())
        if filters.planner is not None:
            where.add("planner = {}", plain(filters.planner))
        if filters.status is not None:
            where.add("status = {}", filters.status)
            if filters.status != "ok":
                where.add_fixed(
                    "status <> 'ok'"
                )  # Tells the database that its partial index has all of them.
        if filters.min_cost is not None:
            where.add("cost_usd >= {}", filters.min_cost)
        if filters.max_cost is not None:
            where.add("cost_usd <= {}", filters.max_cost)
        if filters.worker is not None:
            where.add(self.has_worker, self.worker(plain(filters.worker)))
        if filters.outcome == "none":
            where.add_fixed("outcome IS NULL")
        elif filters.outcome is not None:
            where.add("outcome = {}", filters.outcome)
        if filters.q:
            where.add(self.contains, to_searched(filters.q))
        return where


class _Where:
    """Conditions and their values."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._conditions: list[str] = []
        self._values: list[Any] = []

    def add(self, condition: str, value: Any) -> None:
        """`condition` with {} where the value stands."""
        self._conditions.append(condition.format(self.mark(value)))

    def add_fixed(self, condition: str) -> None:
        """`condition`, without a value."""
        self._conditions.append(condition)

    def before(self, started: float, id_: str) -> None:
        """Older than a trace."""
        self._conditions.append(f"(started, id) < ({self.mark(started)}, {self.mark(id_)})")

    def after(self, started: float, id_: str) -> None:
        """Newer than a trace."""
        self._conditions.append(f"(started, id) > ({self.mark(started)}, {self.mark(id_)})")

    def statement(self, form: str) -> Statement:
        """`form` with {} where the conditions go."""
        where = " WHERE " + " AND ".join(self._conditions) if self._conditions else ""
        return form.format(where), tuple(self._values)

    def mark(self, value: Any) -> str:
        """The placeholder of a value. Values are marked in the order in which they stand in the statement."""
        self._values.append(value)
        return self._dialect.mark(len(self._values))


def write_cursor(started: float, id_: str) -> str:
    """The cursor of the page after this trace."""
    return urlsafe_b64encode(json.dumps([started, id_]).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[float, str]:
    """The trace after which the page begins.

    Raises:
        UsageError: it was not written by `write_cursor`.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        match json.loads(urlsafe_b64decode(padded.encode("ascii"))):
            case [float() | int() as started, str() as id_] if math.isfinite(started):
                return float(started), plain(id_)
    except (ValueError, OverflowError, RecursionError):
        pass
    raise UsageError(
        f"{cursor[:40]!r} is not a cursor of a list of traces; begin again without one, or give `next` of the page "
        "before."
    )
