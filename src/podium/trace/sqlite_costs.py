"""The tables of an SQLite store that have what each question cost, with the sums by day, and how they are filled.

`costs` makes the rows, `spend` reads the sums. A trace that is deleted takes its rows along.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pydantic import ValidationError

from podium.trace.costs import SUMS_OF_COSTS, Cost, costs_of
from podium.trace.model import Trace
from podium.trace.serialization import TraceRow, plain

_COSTS = (
    "CREATE TABLE IF NOT EXISTS costs (trace TEXT, day TEXT, owner TEXT, planner TEXT, worker TEXT, calls INTEGER, "
    "unpriced INTEGER, tokens INTEGER, usd REAL, unpaid_usd REAL, saved_usd REAL, started REAL)"
)
_SPENT = (
    "CREATE TABLE IF NOT EXISTS spent (day TEXT, owner TEXT, planner TEXT, worker TEXT, questions INTEGER, "
    "calls INTEGER, unpriced INTEGER, tokens INTEGER, usd REAL, unpaid_usd REAL, saved_usd REAL)"
)
_KEY = "day, coalesce(owner, x'00'), planner, worker"
"""Of the sums. A blob stands for no owner, since each NULL would be another one."""
_SPENT_BY_DAY = f"CREATE UNIQUE INDEX IF NOT EXISTS spent_by_day ON spent ({_KEY})"
_OF_OLD = f"WHERE ({_KEY}) = (old.day, coalesce(old.owner, x'00'), old.planner, old.worker)"
_SUMMED = Cost._fields[1:]
COST_TABLES = (
    _COSTS,
    # For deletions and accuracies. The start keeps new rows together: in the order of random ids, each of them would
    # change another page of the file.
    "CREATE INDEX IF NOT EXISTS costs_of ON costs (started, trace)",
    _SPENT,
    _SPENT_BY_DAY,
    "CREATE TRIGGER IF NOT EXISTS costs_deleted AFTER DELETE ON traces "
    "BEGIN DELETE FROM costs WHERE started = old.started AND trace = old.id; END",
    "CREATE TRIGGER IF NOT EXISTS spent_less AFTER DELETE ON costs BEGIN "
    f"UPDATE spent SET questions = questions - 1, {', '.join(f'{name} = {name} - old.{name}' for name in _SUMMED)} "
    f"{_OF_OLD}; DELETE FROM spent {_OF_OLD} AND questions = 0; END",
)
_ADD = (
    f"INSERT INTO costs (trace, started, day, owner, planner, {', '.join(Cost._fields)}) "
    f"VALUES (?1, ?2, date(?2, 'unixepoch'), {', '.join(f'?{number}' for number in range(3, 5 + len(Cost._fields)))})"
)
_SUM = (
    f"INSERT INTO spent SELECT {SUMS_OF_COSTS} FROM costs WHERE rowid > ? GROUP BY day, owner, planner, worker "
    f"ON CONFLICT ({_KEY}) DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in ("questions", *_SUMMED))
)
"""Adds the costs after a row to the sums."""


def add_costs(connection: sqlite3.Connection, rows: Iterable[TraceRow]) -> None:
    """Add the costs of traces that have none there, and add them to the sums."""
    ((last,),) = connection.execute("SELECT coalesce(max(rowid), 0) FROM costs")
    connection.executemany(
        _ADD, [(row.id, row.started, row.owner, row.planner, *cost) for row in rows for cost in row.costs]
    )
    connection.execute(_SUM, (last,))


def add_missing_costs(connection: sqlite3.Connection) -> None:
    """Fill the table of a file that had none, from the whole traces. It reads each of them once."""
    connection.execute(_COSTS)
    connection.execute("DELETE FROM costs")
    found = connection.execute("SELECT document, id, started, owner, planner FROM traces")
    connection.executemany(_ADD, ((*row, *cost) for document, *row in found for cost in _costs(document)))


def order_costs(connection: sqlite3.Connection) -> None:
    """Give the costs of a file from before format 5 the start of their trace."""
    for dropped in ("INDEX costs_of_trace", "INDEX costs_of_day", "TRIGGER costs_deleted"):
        connection.execute(f"DROP {dropped}")
    connection.execute("ALTER TABLE costs ADD COLUMN started REAL")
    connection.execute("UPDATE costs SET started = (SELECT started FROM traces WHERE id = trace)")


def sum_costs(connection: sqlite3.Connection) -> None:
    """Make the sums of a file from before format 6, whose index of the costs nothing reads any more."""
    connection.execute("DROP INDEX IF EXISTS costs_by_day")
    connection.execute(_SPENT)
    connection.execute(_SPENT_BY_DAY)
    connection.execute(_SUM, (0,))


def _costs(document: str) -> tuple[Cost, ...]:
    try:
        costs = costs_of(Trace.model_validate_json(document))
    except ValidationError:  # A damaged trace stays listed, as before.
        return ()
    return tuple(cost._replace(worker=plain(cost.worker)) for cost in costs)
