"""Reads, writes and deletes the traces of a store, in an SQLite file or a PostgreSQL database. All calls block.

`trace_store` and `async_store` queue traces for writing, for commands and for servers. Rows that somebody damaged in
the database are left out and counted, and all other rows are still found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    Table,
    and_,
    delete,
    func,
    select,
    tuple_,
    update,
)

from podium.errors import UnreadableTraceError, UsageError
from podium.store.database import Database
from podium.store.query import (
    ALL_TRACES,
    TraceFilters,
    TracePage,
    TraceStatements,
    prefix_statement,
    read_summary,
    write_cursor,
)
from podium.store.schema import BACKGROUND, COSTS, DOCUMENTS, SPENT, STORE, TRACES, WORKED
from podium.store.spend import SpendQuery, SpendReport
from podium.trace.costs import Cost
from podium.trace.model import Trace, TraceStatus
from podium.trace.serialization import DamagedTraceError, TraceRow, read_document, storable, to_row

_BEYOND = 1e308
_BATCH = 500
_SUMMED = Cost._fields[1:]


class TraceRepository:
    """The traces in a file or a database, which is made if it is missing; `read_only` as for `Database`.

    Raises:
        UsageError: the file or database cannot be opened, or is not a trace store.
        StoreError: raised by each method if the database cannot be used.
    """

    def __init__(self, location: str | Path, *, read_only: bool = False) -> None:
        self.database = Database(location, STORE, read_only=read_only)
        self._upsert = _upsert_sums(self.database)

    def write(self, rows: Iterable[TraceRow]) -> None:
        """Write all rows or none. A row replaces a row with the same id."""
        with self.database.transaction() as connection:
            for batch in _batched(rows):
                self._write(connection, list({row.id: row for row in batch}.values()))

    def _write(self, connection: Connection, rows: Sequence[TraceRow]) -> None:
        statement = select(DOCUMENTS.c.started, DOCUMENTS.c.id).where(
            DOCUMENTS.c.id.in_([row.id for row in rows])
        )
        if replaced := connection.execute(statement).fetchall():
            self._remove(connection, [(started, id_) for started, id_ in replaced])
        insert = self.database.insert_rows
        insert(connection, DOCUMENTS, [(row.id, row.started, row.document) for row in rows])
        insert(connection, TRACES, [row.listed for row in rows])
        insert(connection, WORKED, [(name, row.started, row.id) for row in rows for name in row.workers])
        costs: list[tuple[Any, ...]] = []
        sums: dict[tuple[str, ...], list[float]] = {}
        for row in rows:
            planner, owner = row.listed[2], row.listed[8] or ""
            day = datetime.fromtimestamp(row.started, UTC).date().isoformat()
            for cost in row.costs:
                costs.append((row.started, row.id, cost.worker, day, owner, planner, *cost[1:]))
                added = sums.setdefault((day, owner, planner, cost.worker), [0] * (1 + len(_SUMMED)))
                for column, figure in enumerate((1, *cost[1:])):
                    added[column] += figure
        insert(connection, COSTS, costs)
        self._add_sums(connection, sums.items())

    def _add_sums(
        self, connection: Connection, sums: Iterable[tuple[Sequence[str], Sequence[float]]]
    ) -> None:
        names = [column.name for column in SPENT.c]
        values = [dict(zip(names, (*key, *figures), strict=True)) for key, figures in sums]
        if values:
            connection.execute(self._upsert, values)

    def _remove(self, connection: Connection, keys: Sequence[tuple[float, str]]) -> None:
        """Remove the traces with these keys (start, id), and all their rows in other tables."""
        group = [COSTS.c.day, COSTS.c.owner, COSTS.c.planner, COSTS.c.worker]
        sums = select(*group, func.count(), *(func.sum(COSTS.c[name]) for name in _SUMMED))
        removed = connection.execute(sums.where(_has_key(COSTS, keys)).group_by(*group)).fetchall()
        self._add_sums(connection, [(row[:4], [-figure for figure in row[4:]]) for row in removed])
        connection.execute(delete(SPENT).where(SPENT.c.questions <= 0))
        workers = select(TRACES.c.workers).where(_has_key(TRACES, keys))
        by_worker = _worked_by(connection.execute(workers).scalars().all(), len(keys))
        connection.execute(delete(WORKED).where(*by_worker, _has_key(WORKED, keys)))
        for table in (COSTS, TRACES):
            connection.execute(delete(table).where(_has_key(table, keys)))
        connection.execute(delete(DOCUMENTS).where(DOCUMENTS.c.id.in_([id_ for _, id_ in keys])))

    def delete(self, id: str, owner: str | None = None, status: TraceStatus | None = None) -> bool:
        """Delete the trace with exactly this id and, if given, this owner and status. Returns False if there is
        none."""
        id = storable(id)
        with self.database.transaction() as connection:
            stored = self._stored_row(connection, id)
            if stored is None or owner not in (None, stored.owner) or status not in (None, stored.status):
                return False
            self._remove(connection, [(stored.started, id)])
            connection.execute(delete(BACKGROUND).where(BACKGROUND.c.id == id))
        return True

    def set_outcome(self, trace: Trace, owner: str | None = None) -> bool:
        """Write the outcome of a trace. Returns False if it was deleted or replaced meanwhile, or has another owner."""
        row = to_row(trace)
        with self.database.transaction() as connection:
            stored = self._stored_row(connection, row.id)
            if stored is None or stored.status != trace.status or owner not in (None, stored.owner):
                return False
            outcome = None if trace.outcome is None else trace.outcome.verdict
            is_trace = _has_key(TRACES, [(stored.started, row.id)])
            connection.execute(update(TRACES).where(is_trace).values(outcome=outcome))
            is_document = DOCUMENTS.c.id == row.id
            connection.execute(update(DOCUMENTS).where(is_document).values(document=row.document))
        return True

    def _stored_row(self, connection: Connection, id: str) -> Row[*tuple[Any, ...]] | None:
        statement = select(TRACES.c.started, TRACES.c.owner, TRACES.c.status)
        row = connection.execute(
            statement.join(DOCUMENTS, DOCUMENTS.c.started == TRACES.c.started).where(
                DOCUMENTS.c.id == id, TRACES.c.id == id
            )
        ).first()
        # The start in a damaged row may differ from its document's. To look only for the id reads all rows.
        return row or connection.execute(statement.where(TRACES.c.id == id)).first()

    def find_by_prefix(self, prefix: str, owner: str | None = None) -> Trace | None:
        """The trace with the id `prefix`, else the only trace whose id begins with `prefix`. None if there is none.

        Raises:
            UsageError: several traces have such an id.
            UnreadableTraceError: the trace is damaged.
        """
        wanted = storable(prefix)
        rows = self.database.read(prefix_statement(wanted, owner))
        if not rows:
            return None
        if len(rows) > 1 and rows[0][0] != wanted:
            found = ", ".join(row[0] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise UsageError(
                f"Several traces have an id that begins with {wanted!r}: {found}; give more of it."
            )
        try:
            return read_document(rows[0][1])
        except DamagedTraceError as error:
            raise UnreadableTraceError(
                f"The trace {rows[0][0]} is damaged: its document is not a trace{error}."
            ) from None

    def page(self, filters: TraceFilters, cursor: str | None, limit: int) -> TracePage:
        """One page of the traces that meet the conditions."""
        read, statements = self.database.read, TraceStatements(filters)
        rows = read(statements.page(cursor, limit))
        page_rows = rows[:limit]
        summaries = [read_summary(row) for row in page_rows]
        last = _key_of_first(page_rows[-1:]) if len(rows) > limit else None
        if last is None and (scan := statements.end_of_scan(cursor)) is not None:
            last = _key_of_first(read(scan))
            if last is not None and page_rows:  # The scan ends earlier now, if traces were added since.
                last = min(last, (page_rows[-1][1], page_rows[-1][0]))
        total: int | None = None
        if cursor is None and last is None:
            total = len(rows)
        elif cursor is None and len(rows) > limit:
            ((total,),) = read(statements.count())
        return TracePage(
            traces=tuple(summary for summary in summaries if summary is not None),
            next=None if last is None else write_cursor(*last),
            total=total,
            damaged=summaries.count(None),
        )

    def spend(self, query: SpendQuery) -> SpendReport:
        """What was spent in the days of `query`."""
        return SpendReport.read(query, self.database.read(query.sums()), self.database.read(query.outcomes()))

    def newest(self, count: int, filters: TraceFilters = ALL_TRACES) -> tuple[Trace, ...]:
        """The newest traces. Damaged rows among the newest `count` rows are left out."""
        traces = []
        for (document,) in self.database.read(TraceStatements(filters).newest_documents(count)):
            with suppress(DamagedTraceError):
                traces.append(read_document(document))
        return tuple(traces)


def _upsert_sums(database: Database) -> Executable:
    insert = database.insert(SPENT)
    added = {name: SPENT.c[name] + insert.excluded[name] for name in ("questions", *_SUMMED)}
    return insert.on_conflict_do_update(index_elements=list(SPENT.primary_key), set_=added)


def _has_key(table: Table, keys: Sequence[tuple[float, str]]) -> ColumnElement[bool]:
    """Whether a row of the table belongs to a trace with one of these keys (start, id)."""
    # SQLite reads all rows for the pairs alone.
    starts = table.c.started.in_(list(dict.fromkeys(started for started, _ in keys)))
    return and_(starts, tuple_(table.c.started, table.c.id).in_(keys))


def _worked_by(lists: Sequence[str], traces: int) -> list[ColumnElement[bool]]:
    """Whether a row of `WORKED` is of a worker in these lists, so that its index can be read. No condition if the list
    of one of the traces is missing or damaged: then all rows are read."""
    try:
        workers = {str(worker) for listed in lists for worker in json.loads(listed)}
    except (TypeError, ValueError):
        return []
    return [WORKED.c.worker.in_(sorted(workers))] if len(lists) == traces else []


def _key_of_first(rows: Sequence[Sequence[Any]]) -> tuple[float, str] | None:
    """The key (start, id) of the first row, which begins with id and start."""
    if not rows:
        return None
    id_, started = rows[0][:2]
    if not isinstance(started, float | int) or not math.isfinite(started):
        # The row is damaged. Both databases sort NULL below all numbers, and any other value above them.
        started = -_BEYOND if started is None else _BEYOND
    return started, id_


def _batched(rows: Iterable[TraceRow]) -> Iterator[list[TraceRow]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        yield batch
