"""Filters of traces, and the statements that find these traces.

This module builds statements and reads their rows; `trace_store` runs them.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, FiniteFloat, TypeAdapter
from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    case,
    func,
    literal,
    literal_column,
    select,
    text,
    tuple_,
)
from sqlalchemy.sql import visitors

from podium.errors import UsageError
from podium.store.database import SqlContains
from podium.store.schema import COSTS, DOCUMENTS, TRACES, WORKERS
from podium.trace.model import OutcomeVerdict, TraceStatus
from podium.trace.serialization import searchable, storable
from podium.types import FrozenModel

MAX_PAGE = 200

OutcomeFilter = OutcomeVerdict | Literal["none"]
"""A verdict, or "none" for answers that were not judged."""


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class TraceQuery(FrozenModel):
    """The conditions that a user sets. A trace must meet all; None sets no condition."""

    since: Annotated[datetime, AfterValidator(_in_utc)] | None = Field(
        None, description="Started then or later; UTC if no zone is given."
    )
    until: Annotated[datetime, AfterValidator(_in_utc)] | None = Field(None, description="Started before.")
    planner: str | None = None
    worker: str | None = Field(None, description="A worker that answered a step, or failed to.")
    status: TraceStatus | None = None
    min_cost: float | None = Field(None, ge=0, allow_inf_nan=False, description="Dollars.")
    max_cost: float | None = Field(None, ge=0, allow_inf_nan=False)
    outcome: OutcomeFilter | None = Field(
        None, description="What users said about the answer; none: nothing yet."
    )
    q: str | None = Field(
        None, description="Text in the first or the last 1,000 characters of the question, in any case."
    )


class TraceFilters(TraceQuery):
    """A query, and whose traces it may find."""

    owner: str | None = None
    """The name of the key that the request used."""


ALL_TRACES = TraceFilters()


@dataclass(frozen=True, slots=True)
class TracePage:
    """One page of a list of traces."""

    traces: tuple[TraceSummary, ...]
    """The traces of the page, the newest first."""
    next: str | None
    """Where the next page begins. None if this is the last page, but other pages too may have few traces or none."""
    total: int | None
    """The number of traces on all pages. None if this is not the first page, or if there are too many to count."""
    damaged: int = 0
    """How many traces the page leaves out, because their rows in the database are damaged."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What a list shows of one trace."""

    id: str
    started: datetime
    """When the question was asked, in UTC."""
    planner: str
    status: TraceStatus
    question: str
    """The first 200 characters of the question."""
    calls: int
    cost_usd: FiniteFloat
    seconds: FiniteFloat
    workers: tuple[str, ...] = ()
    """Names of the workers that were called, each once, in the order of the steps."""
    owner: str | None = None
    """Name of the key that the request used."""
    outcome: OutcomeVerdict | None = None
    """How the answer was judged. None if it was not judged."""
    unpriced: bool = False
    """Whether the price of a call is not known, so that `cost_usd` leaves it out."""


_SUMMARIES = TypeAdapter(TraceSummary)
_NAMES = [field.name for field in fields(TraceSummary)]
_UNPRICED = (
    select(literal_column("1"))
    .where(COSTS.c.started == TRACES.c.started, COSTS.c.id == TRACES.c.id, COSTS.c.unpriced > 0)
    .exists()
)
SUMMARY_COLUMNS = [*(TRACES.c[name] for name in _NAMES[:-1]), _UNPRICED]
_MAX_COUNTED, _MAX_COUNTED_FILTERED = 100_000, 10_000
"""The most traces that are counted: without filters or only by owner, and with other filters."""
MAX_SCANNED = 10_000
"""The most traces that one page reads to find those that pass filters without an index."""

IndexedFilter = Literal["outcome", "status", "owner", "worker", "planner"]


class SelectBuilder:
    """Builds the SELECT statements that find the traces that pass some filters, by an index or in the whole table."""

    def __init__(self, filters: TraceFilters) -> None:
        self._filters = filters
        self.index = _driving_index(filters)
        """The filter whose index is read. None if the table itself is read."""
        by_worker = self.index == "worker"
        same = and_(WORKERS.c.started == TRACES.c.started, WORKERS.c.id == TRACES.c.id)
        self._table: FromClause = WORKERS if by_worker else TRACES
        self._source: FromClause = WORKERS.join(TRACES, same) if by_worker else TRACES
        self._others = self._other_conditions(TRACES.c)

    def page(self, cursor: str | None, limit: int) -> Select[Any]:
        """Selects rows for summaries, newest first, and one row more than `limit` if further traces pass. If
        `end_of_scan` returns a statement, some rows may be missing, since the page reads no traces after that end.

        Raises:
            UsageError: the cursor or the limit cannot be used.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise UsageError(f"limit={limit}: one page has from 1 to {MAX_PAGE} traces.")
        if not self._others:
            return self._newest_first(self._scan(SUMMARY_COLUMNS, cursor), limit + 1)
        # Of a trace that does not pass, only the columns of the filters are read.
        scanned = self._newest_first(self._scan(self._scanned_columns(), cursor), MAX_SCANNED).subquery(
            "scanned"
        )
        # There is no ORDER BY, since rows come in the order of the inner query, and reading ends at the limit.
        passing = select(scanned.c.started, scanned.c.id).where(*self._other_conditions(scanned.c))
        passing_page = passing.limit(_count(limit + 1)).subquery("found")
        same = and_(TRACES.c.started == passing_page.c.started, TRACES.c.id == passing_page.c.id)
        listed = select(*SUMMARY_COLUMNS).select_from(passing_page).join(TRACES, same)
        return listed.order_by(passing_page.c.started.desc(), passing_page.c.id.desc())

    def end_of_scan(self, cursor: str | None) -> Select[Any] | None:
        """Selects the id and start of the last trace that the page reads, if there may be further traces. None if an
        index answers all filters, so that no trace is missing from the page."""
        if not self._others:
            return None
        last = self._indexed([self._table.c.id, self._table.c.started], self._table, cursor)
        return self._newest_first(last, 1).offset(_count(MAX_SCANNED - 1))

    def count(self) -> Select[Any]:
        """Counts the traces that pass the filters. The count is NULL if there are too many."""
        if not self._others:
            only_owner = self._filters == TraceFilters(owner=self._filters.owner)
            most = _MAX_COUNTED if only_owner else _MAX_COUNTED_FILTERED
            passing = self._indexed([literal_column("1").label("one")], self._table)
            counted = passing.limit(_count(most + 1)).subquery("passing")
            return select(func.nullif(func.count(), most + 1)).select_from(counted)
        scanned = self._scan(self._scanned_columns()).limit(_count(MAX_SCANNED + 1)).subquery("scanned")
        passing_count = func.count(case((and_(*self._other_conditions(scanned.c)), 1)))
        return select(case((func.count() <= MAX_SCANNED, passing_count))).select_from(scanned)

    def documents(self, after: tuple[float, str] | None, limit: int) -> Select[Any]:
        """Selects start, id and document, oldest first, after the trace `after`."""
        columns = self._table.c
        statement = self._with_documents([columns.started, columns.id, DOCUMENTS.c.document])
        if after is not None:
            statement = statement.where(_sort_key(self._table) > _values(*after))
        return statement.order_by(columns.started, columns.id).limit(_count(limit))

    def newest_documents(self, count: int) -> Select[Any]:
        """Selects documents, newest first."""
        return self._newest_first(self._with_documents([DOCUMENTS.c.document]), count)

    def _scan(self, columns: Sequence[ColumnElement[Any]], cursor: str | None = None) -> Select[Any]:
        return self._indexed(columns, self._source, cursor)

    def _indexed(
        self, columns: Sequence[ColumnElement[Any]], source: FromClause, cursor: str | None = None
    ) -> Select[Any]:
        """The traces before the cursor that fulfil the conditions that the index answers."""
        filters, started = self._filters, self._table.c.started
        where: list[ColumnElement[bool]] = []
        if self.index == "worker":
            where.append(WORKERS.c.worker == storable(filters.worker or ""))
        elif self.index is not None:
            where.append(self._condition(self.index, TRACES.c))
        if self.index == "status":  # This tells the database that its partial index has all matching rows.
            where.append(text("status <> 'ok'"))  # type: ignore[arg-type]
        if filters.since is not None:
            where.append(started >= filters.since.timestamp())
        if filters.until is not None:
            where.append(started < filters.until.timestamp())
        if cursor is not None:
            where.append(_sort_key(self._table) < _values(*read_cursor(cursor)))
        return select(*columns).select_from(source).where(*where)

    def _with_documents(self, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
        source = self._source.join(DOCUMENTS, DOCUMENTS.c.id == TRACES.c.id)
        return self._indexed(columns, source).where(*self._others)

    def _newest_first(self, statement: Select[Any], limit: int) -> Select[Any]:
        ordered = statement.order_by(self._table.c.started.desc(), self._table.c.id.desc())
        return ordered.limit(_count(limit))

    def _other_conditions(self, columns: Any) -> list[ColumnElement[bool]]:
        """The conditions that the index does not answer, on the columns of a table or of a subquery."""
        filters = self._filters
        others = [name for name in get_args(IndexedFilter) if name != self.index]
        where = [self._condition(name, columns) for name in others if getattr(filters, name) is not None]
        if filters.min_cost is not None:
            where.append(columns.cost_usd >= filters.min_cost)
        if filters.max_cost is not None:
            where.append(columns.cost_usd <= filters.max_cost)
        if filters.q:
            where.append(SqlContains(columns.searched, searchable(filters.q)))
        return where

    def _scanned_columns(self) -> list[ColumnElement[Any]]:
        """Start, id, and the columns of the conditions that the index does not answer."""
        read = {part for condition in self._others for part in visitors.iterate(condition)}
        return [self._table.c.started, self._table.c.id, *(column for column in TRACES.c if column in read)]

    def _condition(self, name: IndexedFilter, columns: Any) -> ColumnElement[bool]:
        value = getattr(self._filters, name)
        if name == "outcome" and value == "none":
            return columns.outcome.is_(None)  # type: ignore[no-any-return]
        if name == "worker":
            return SqlContains(columns.workers, json.dumps(storable(value), ensure_ascii=False))
        return columns[name] == storable(value)  # type: ignore[no-any-return]


def _driving_index(filters: TraceFilters) -> IndexedFilter | None:
    if filters.outcome not in (None, "none"):
        return "outcome"
    if filters.status not in (None, "ok"):
        return "status"
    filters_in_order: tuple[IndexedFilter, ...] = ("owner", "worker", "planner")
    return next((name for name in filters_in_order if getattr(filters, name) is not None), None)


def prefix_statement(prefix: str, owner: str | None) -> Select[Any]:
    """Selects the id and document of at most 4 traces whose id begins with `prefix`, in the order of the ids."""
    columns = DOCUMENTS.c
    statement = select(columns.id, columns.document).where(
        columns.id >= prefix, columns.id < prefix + chr(0x10FFFF)
    )
    if owner is not None:
        statement = statement.join(TRACES, TRACES.c.id == columns.id).where(
            TRACES.c.started == columns.started, TRACES.c.owner == storable(owner)
        )
    return statement.order_by(columns.id).limit(4)


def read_summary(row: Sequence[Any]) -> TraceSummary | None:
    """The summary in a row of `SUMMARY_COLUMNS`. None if the row is damaged."""
    listed = dict(zip(_NAMES, row, strict=True))
    try:
        listed["started"] = datetime.fromtimestamp(listed["started"], UTC)
        listed["workers"] = json.loads(listed["workers"])
        return _SUMMARIES.validate_python(listed)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _sort_key(table: FromClause) -> ColumnElement[Any]:
    return tuple_(table.c.started, table.c.id)


def _values(started: float, id_: str) -> ColumnElement[Any]:
    return tuple_(literal(started), literal(id_))


def _count(number: int) -> ColumnElement[int]:
    """A limit that the database's query planner can read."""
    return literal_column(str(int(number)))


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
                return float(started), storable(id_)
    except (ValueError, OverflowError, RecursionError):
        pass
    raise UsageError(
        f"{cursor[:40]!r} is not a cursor of a list of traces; begin again without one, or give `next` of the page "
        "before."
    )
