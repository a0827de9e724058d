"""The table of an SQLite store that has what each question cost, and how it is filled.

`costs` makes its rows, `spend` sums them. A trace that is deleted takes its rows along.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pydantic import ValidationError

from podium.trace.costs import Cost, costs_of
from podium.trace.model import Trace
from podium.trace.serialization import TraceRow, plain

COST_TABLES = (
    "CREATE TABLE IF NOT EXISTS costs (trace TEXT, day TEXT, owner TEXT, planner TEXT, worker TEXT, calls INTEGER, "
    "unpriced INTEGER, tokens INTEGER, usd REAL, unpaid_usd REAL, saved_usd REAL, started REAL)",
    # Deletions and accuracies need the first index; sums read the second alone. The start keeps new rows together: in
    # the order of random ids or of dollars, each of them would change another page of the file.
    "CREATE INDEX IF NOT EXISTS costs_of ON costs (started, trace)",
    "CREATE INDEX IF NOT EXISTS costs_by_day ON costs (day, owner, planner, worker, started, calls, unpriced, tokens, "
    "usd, unpaid_usd, saved_usd)",
    "CREATE TRIGGER IF NOT EXISTS costs_deleted AFTER DELETE ON traces "
    "BEGIN DELETE FROM costs WHERE started = old.started AND trace = old.id; END",
)
_ADD = (
    f"INSERT INTO costs (trace, started, day, owner, planner, {', '.join(Cost._fields)}) "
    f"VALUES (?1, ?2, date(?2, 'unixepoch'), {', '.join(f'?{number}' for number in range(3, 5 + len(Cost._fields)))})"
)


def add_costs(connection: sqlite3.Connection, rows: Iterable[TraceRow]) -> None:
    """Add the costs of traces that have none there."""
    connection.executemany(
        _ADD, [(row.id, row.started, row.owner, row.planner, *cost) for row in rows for cost in row.costs]
    )


def add_missing_costs(connection: sqlite3.Connection) -> None:
    """Fill the table of a file that had none, from the whole traces. It reads each of them once."""
    connection.execute(COST_TABLES[0])
    connection.execute("DELETE FROM costs")
    found = connection.execute("SELECT document, id, started, owner, planner FROM traces")
    connection.executemany(_ADD, ((*row, *cost) for document, *row in found for cost in _costs(document)))


def order_costs(connection: sqlite3.Connection) -> None:
    """Give the costs of a file from before format 5 the start of their trace."""
    for dropped in ("INDEX costs_of_trace", "INDEX costs_of_day", "TRIGGER costs_deleted"):
        connection.execute(f"DROP {dropped}")
    connection.execute("ALTER TABLE costs ADD COLUMN started REAL")
    connection.execute("UPDATE costs SET started = (SELECT started FROM traces WHERE id = trace)")


def _costs(document: str) -> tuple[Cost, ...]:
    try:
        costs = costs_of(Trace.model_validate_json(document))
    except ValidationError:  # A damaged trace stays listed, as before.
        return ()
    return tuple(cost._replace(worker=plain(cost.worker)) for cost in costs)
