"""Filters of traces, and the SQL that finds these traces, written once for SQLite and PostgreSQL.

This module builds statements and reads their rows; the stores run them.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

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
    """Where the next page begins; None: this is the last. A page that is not the last may still have fewer traces than
    were asked for, or none."""
    total: int | None
    """Traces of all pages. Only the first page has it; None also if they are too many to count."""
    damaged: int = 0
    """Traces of this page that are left out, since somebody changed their rows in the database."""


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
_COUNTED, _COUNTED_FILTERED = 100_000, 10_000
"""Traces that are counted at most: without filters or by owner alone, and with other filters."""
SCANNED = 10_000
"""Traces that one page reads at most to find those that pass filters without an index."""
_NEWEST_FIRST = "ORDER BY started DESC, id DESC LIMIT"

Statement = tuple[str, tuple[Any, ...]]
Leading = Literal["outcome", "status", "owner", "worker", "planner"]


def leading(filters: Filters) -> Leading | None:
    """The filter whose index is read; None: the index of all traces is. All indexes are in the order of the start."""
    if filters.outcome not in (None, "none"):
        return "outcome"
    if filters.status not in (None, "ok"):
        return "status"
    found: tuple[Leading, ...] = ("owner", "worker", "planner")
    return next((name for name in found if getattr(filters, name) is not None), None)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the two databases."""

    name: str
    """Of the table."""
    costs: str
    """Of the table of what the questions cost."""
    spent: str
    """What has the sums of that table by day, key, planner and worker."""
    paid: str
    """The condition that a row of the costs belongs to a trace."""
    tables: Mapping[Leading | None, str]
    """The table to search, with a hint at its index, by the filter that `leading` names."""
    mark: Callable[[int], str]
    """The placeholder of the value with this number, from 1."""
    worker: Callable[[str, bool], tuple[str, Any]]
    """The condition that a worker with this name had a step, with {} for the value, and the value. True: the table is
    that of the workers."""
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

        If `end_of_scan` is a statement too, some may be missing: the page reads only the traces before that end.

        Raises:
            UsageError: the cursor or the limit cannot be used.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise UsageError(f"limit={limit}: one page has from 1 to {MAX_PAGE} traces.")
        values = _Values(self)
        scan, rest = self._scan(filters, cursor, values), _all(self._rest(filters, values))
        if not rest:
            return f"SELECT {LISTED} {scan} {_NEWEST_FIRST} {limit + 1}", values.all
        # Without an order of its own, the outer SELECT keeps that of the inner one, and ends at its limit.
        scanned = f"SELECT {LISTED}, searched {scan} {_NEWEST_FIRST} {SCANNED}"
        return f"SELECT {LISTED} FROM ({scanned}) AS scanned{rest} LIMIT {limit + 1}", values.all

    def end_of_scan(self, filters: Filters, cursor: str | None) -> Statement | None:
        """A row of id and start: the last trace that the page reads, if there may be others after it.

        None: an index answers all filters, and so the page lacks none.
        """
        values = _Values(self)
        scan = self._scan(filters, cursor, values)
        scanned = values.all
        if not self._rest(filters, values):
            return None
        return f"SELECT id, started {scan} {_NEWEST_FIRST} 1 OFFSET {SCANNED - 1}", scanned

    def count(self, filters: Filters) -> Statement:
        """How many pass the filters; NULL, if they are too many to count."""
        values = _Values(self)
        scan, rest = self._scan(filters, None, values), self._rest(filters, values)
        if not rest:
            most = _COUNTED if filters == Filters(owner=filters.owner) else _COUNTED_FILTERED
            source = f"FROM {self.name}" if filters == Filters() else scan
            counted = (
                f"SELECT nullif(count(*), {most + 1}) FROM (SELECT 1 {source} LIMIT {most + 1}) AS passing"
            )
            return counted, values.all
        passing = f"count(CASE WHEN {' AND '.join(rest)} THEN 1 END)"
        scanned = f"SELECT {LISTED}, searched {scan} LIMIT {SCANNED + 1}"
        counted = f"SELECT CASE WHEN count(*) <= {SCANNED} THEN {passing} END FROM ({scanned}) AS scanned"
        return counted, values.all

    def every(self, filters: Filters, limit: int) -> Statement:
        """Rows for summaries, newest first, however long it takes to find them."""
        values = _Values(self)
        where = _all([*self._indexed(filters, values), *self._rest(filters, values)])
        return (
            f"SELECT {LISTED} FROM {self.tables[leading(filters)]}{where} {_NEWEST_FIRST} {limit}",
            values.all,
        )

    def documents(self, filters: Filters, after: tuple[float, str] | None, limit: int) -> Statement:
        """Rows of start, id and document, oldest first, after the trace `after`."""
        values = _Values(self)
        conditions = [*self._indexed(filters, values), *self._rest(filters, values)]
        if after is not None:
            conditions.append(f"(started, id) > ({values.mark(after[0])}, {values.mark(after[1])})")
        return (
            f"SELECT started, id, document FROM {self.tables[leading(filters)]}{_all(conditions)} "
            f"ORDER BY started, id LIMIT {limit}"
        ), values.all

    def newest(self, count: int, filters: Filters = Filters()) -> Statement:
        """Rows of one document, newest first."""
        values = _Values(self)
        where = _all([*self._indexed(filters, values), *self._rest(filters, values)])
        return (
            f"SELECT document FROM {self.tables[leading(filters)]}{where} {_NEWEST_FIRST} {int(count)}",
            values.all,
        )

    def beginning(self, prefix: str, owner: str | None) -> Statement:
        """Rows of id and document, at most 4, by id."""
        values = _Values(self)
        where = [f"id >= {values.mark(prefix)}", f"id < {values.mark(prefix + chr(0x10FFFF))}"]
        where += self._of(owner, values)
        return f"SELECT id, document FROM {self.name}{_all(where)} ORDER BY id LIMIT 4", values.all

    def delete(self, id: str, owner: str | None, status: TraceStatus | None = None) -> Statement:
        """A row for the trace that was deleted; with `status`, only if it has this status."""
        values = _Values(self)
        where = [f"id = {values.mark(plain(id))}"]
        if status is not None:
            where.append(f"status = {values.mark(status)}")
        where += self._of(owner, values)
        return f"DELETE FROM {self.name}{_all(where)} RETURNING id", values.all

    def judge(self, row: TraceRow, owner: str | None) -> Statement:
        """A row for the trace whose outcome was written; none if it was deleted or replaced meanwhile."""
        values = _Values(self)
        changed = f"document = {values.mark(row.document)}, outcome = {values.mark(row.outcome)}"
        where = [
            f"id = {values.mark(row.id)}",
            f"status = {values.mark(row.status)}",
            *self._of(owner, values),
        ]
        return f"UPDATE {self.name} SET {changed}{_all(where)} RETURNING id", values.all

    def summary(self, row: Sequence[Any]) -> TraceSummary | None:
        """Of a row of `page`; None: it is damaged."""
        id_, started, planner, status, question, calls, cost_usd, seconds, workers, owner, outcome = row
        try:
            at = datetime.fromtimestamp(started, UTC)
            named = tuple(self.workers(workers))
            sound = (
                all(isinstance(text, str) for text in (id_, planner, question, owner or "", *named))
                and all(math.isfinite(number) for number in (started, calls, cost_usd, seconds))
                and status in get_args(TraceStatus)
                and outcome in (None, *get_args(Verdict))
            )
        except (TypeError, ValueError, OverflowError, OSError):
            sound = False
        if not sound:
            return None
        return TraceSummary(
            id_, at, planner, status, question, calls, cost_usd, seconds, named, owner, outcome
        )

    def _scan(self, filters: Filters, cursor: str | None, values: _Values) -> str:
        """FROM and WHERE for the traces before the cursor that the index has."""
        where = self._indexed(filters, values)
        if cursor is not None:
            started, id_ = read_cursor(cursor)
            where.append(f"(started, id) < ({values.mark(started)}, {values.mark(id_)})")
        return f"FROM {self.tables[leading(filters)]}{_all(where)}"

    def _indexed(self, filters: Filters, values: _Values) -> list[str]:
        """The conditions that the index answers."""
        first = leading(filters)
        where = [] if first is None else self._condition(first, filters, values, leads=True)
        if filters.since is not None:
            where.append(f"started >= {values.mark(filters.since.timestamp())}")
        if filters.until is not None:
            where.append(f"started < {values.mark(filters.until.timestamp())}")
        return where

    def _rest(self, filters: Filters, values: _Values) -> list[str]:
        """The other conditions."""
        first = leading(filters)
        where = []
        for name in get_args(Leading):
            if name != first and getattr(filters, name) is not None:
                where += self._condition(name, filters, values, leads=False)
        if filters.min_cost is not None:
            where.append(f"cost_usd >= {values.mark(filters.min_cost)}")
        if filters.max_cost is not None:
            where.append(f"cost_usd <= {values.mark(filters.max_cost)}")
        if filters.q:
            where.append(self.contains.format(values.mark(to_searched(filters.q))))
        return where

    def _condition(self, name: Leading, filters: Filters, values: _Values, *, leads: bool) -> list[str]:
        value = getattr(filters, name)
        if name == "outcome" and value == "none":
            return ["outcome IS NULL"]
        if name == "worker":
            condition, given = self.worker(plain(value), leads)
            return [condition.format(values.mark(given))]
        equal = [f"{name} = {values.mark(plain(value))}"]
        # The second condition tells SQLite that its partial index has all of them.
        return [*equal, "status <> 'ok'"] if name == "status" and leads else equal

    def _of(self, owner: str | None, values: _Values) -> list[str]:
        return [] if owner is None else [f"owner = {values.mark(plain(owner))}"]


class _Values:
    """The values of a statement, by their numbers."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._values: list[Any] = []

    @property
    def all(self) -> tuple[Any, ...]:
        return tuple(self._values)

    def mark(self, value: Any) -> str:
        """The placeholder of a value."""
        self._values.append(value)
        return self._dialect.mark(len(self._values))


def _all(conditions: Sequence[str]) -> str:
    """The WHERE clause; nothing without conditions."""
    return " WHERE " + " AND ".join(conditions) if conditions else ""


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
