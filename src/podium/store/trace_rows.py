"""Writes and removes the rows of traces, with the sums of what they cost, in an SQLite file or a PostgreSQL database.

`trace_store` reads them. All calls block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    delete,
    func,
    select,
    tuple_,
    update,
)

from podium.store.database import Database
from podium.store.schema import BACKGROUND, COSTS, DAILY_COSTS, DOCUMENTS, TRACES, WORKERS
from podium.trace.costs import Cost
from podium.trace.model import Trace, TraceStatus
from podium.trace.serialization import TraceRow, storable, to_row

_BATCH = 500
_SUMMED = Cost._fields[1:]


class TraceRows:
    """The rows of the traces in a database.

    Raises:
        StoreError: raised by each method if the database cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = database.insert(DAILY_COSTS)
        added = {name: DAILY_COSTS.c[name] + insert.excluded[name] for name in ("questions", *_SUMMED)}
        self._upsert = insert.on_conflict_do_update(index_elements=list(DAILY_COSTS.primary_key), set_=added)

    def write(self, rows: Iterable[TraceRow]) -> None:
        """Write all rows or none. A row replaces a row with the same id."""
        remaining = iter(rows)
        with self._database.transaction() as connection:
            while batch := list(islice(remaining, _BATCH)):
                self._write(connection, list({row.listed.id: row for row in batch}.values()))

    def _write(self, connection: Connection, rows: Sequence[TraceRow]) -> None:
        statement = select(DOCUMENTS.c.started, DOCUMENTS.c.id).where(
            DOCUMENTS.c.id.in_([row.listed.id for row in rows])
        )
        if replaced := connection.execute(statement).fetchall():
            self._remove(connection, [(started, id_) for started, id_ in replaced])
        documents, workers, costs = [], [], list[tuple[Any, ...]]()
        sums: dict[tuple[str, ...], list[float]] = {}
        for document, listed, names, costs_of_trace in rows:
            started, id_, planner, owner = listed.started, listed.id, listed.planner, listed.owner or ""
            documents.append((id_, started, document))
            workers += [(name, started, id_) for name in names]
            day = datetime.fromtimestamp(started, UTC).date().isoformat()
            for cost in costs_of_trace:
                costs.append((started, id_, cost.worker, day, owner, planner, *cost[1:]))
                added = sums.setdefault((day, owner, planner, cost.worker), [0] * (1 + len(_SUMMED)))
                for column, figure in enumerate((1, *cost[1:])):
                    added[column] += figure
        insert = self._database.insert_rows
        insert(connection, DOCUMENTS, documents)
        insert(connection, TRACES, [row.listed for row in rows])
        insert(connection, WORKERS, workers)
        insert(connection, COSTS, costs)
        self._add_sums(connection, sums.items())

    def _add_sums(
        self, connection: Connection, sums: Iterable[tuple[Sequence[str], Sequence[float]]]
    ) -> None:
        names = [column.name for column in DAILY_COSTS.c]
        values = [dict(zip(names, (*key, *figures), strict=True)) for key, figures in sums]
        if values:
            connection.execute(self._upsert, values)

    def _remove(self, connection: Connection, keys: Sequence[tuple[float, str]]) -> None:
        """Remove the traces with these keys (start, id), and all their rows in other tables."""
        group = [COSTS.c.day, COSTS.c.owner, COSTS.c.planner, COSTS.c.worker]
        sums = select(*group, func.count(), *(func.sum(COSTS.c[name]) for name in _SUMMED))
        removed = connection.execute(sums.where(_has_key(COSTS, keys)).group_by(*group)).fetchall()
        self._add_sums(connection, [(row[:4], [-figure for figure in row[4:]]) for row in removed])
        connection.execute(delete(DAILY_COSTS).where(DAILY_COSTS.c.questions <= 0))
        workers = select(TRACES.c.workers).where(_has_key(TRACES, keys))
        by_worker = _worked_by(connection.execute(workers).scalars().all(), len(keys))
        connection.execute(delete(WORKERS).where(*by_worker, _has_key(WORKERS, keys)))
        for table in (COSTS, TRACES):
            connection.execute(delete(table).where(_has_key(table, keys)))
        connection.execute(delete(DOCUMENTS).where(DOCUMENTS.c.id.in_([id_ for _, id_ in keys])))

    def delete(self, id: str, owner: str | None = None, status: TraceStatus | None = None) -> bool:
        """Delete the trace with exactly this id and, if given, this owner and status. Returns False if there is
        none."""
        id = storable(id)
        with self._database.transaction() as connection:
            stored = self._stored_row(connection, id)
            if stored is None or owner not in (None, stored.owner) or status not in (None, stored.status):
                return False
            self._remove(connection, [(stored.started, id)])
            connection.execute(delete(BACKGROUND).where(BACKGROUND.c.id == id))
        return True

    def set_outcome(self, trace: Trace, owner: str | None = None) -> bool:
        """Write the outcome of a trace. Returns False if it was deleted or replaced meanwhile, or has another owner."""
        row = to_row(trace)
        id_ = row.listed.id
        with self._database.transaction() as connection:
            stored = self._stored_row(connection, id_)
            if stored is None or stored.status != trace.status or owner not in (None, stored.owner):
                return False
            is_trace = _has_key(TRACES, [(stored.started, id_)])
            connection.execute(update(TRACES).where(is_trace).values(outcome=row.listed.outcome))
            is_document = DOCUMENTS.c.id == id_
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


def _has_key(table: Table, keys: Sequence[tuple[float, str]]) -> ColumnElement[bool]:
    """Whether a row of the table belongs to a trace with one of these keys (start, id)."""
    # SQLite reads all rows for the pairs alone.
    starts = table.c.started.in_(list(dict.fromkeys(started for started, _ in keys)))
    return and_(starts, tuple_(table.c.started, table.c.id).in_(keys))


def _worked_by(lists: Sequence[str], traces: int) -> list[ColumnElement[bool]]:
    """Whether a row of `WORKERS` is of a worker in these lists, so that its index can be read. No condition if the list
    of one of the traces is missing or damaged: then all rows are read."""
    try:
        workers = {str(worker) for listed in lists for worker in json.loads(listed)}
    except (TypeError, ValueError):
        return []
    return [WORKERS.c.worker.in_(sorted(workers))] if len(lists) == traces else []
