"""The table of an SQLite store that has what each question cost, and how it is filled.

`costs` makes its rows, `spend` sums them. A trace that is deleted takes its rows along.
"""

from __future__ import annotations

import json
import sqlite3

from pydantic import ValidationError

from podium.trace.costs import Cost, costs_of
from podium.trace.model import Trace
from podium.trace.serialization import plain

COST_TABLES = (
    "CREATE TABLE IF NOT EXISTS costs (trace TEXT, day TEXT, owner TEXT, planner TEXT, worker TEXT, calls INTEGER, "
    "unpriced INTEGER, tokens INTEGER, usd REAL, unpaid_usd REAL, saved_usd REAL)",
    # Deletions need the first index; sums read the second alone.
    "CREATE INDEX IF NOT EXISTS costs_of_trace ON costs (trace)",
    "CREATE INDEX IF NOT EXISTS costs_of_day ON costs (day, owner, planner, worker, calls, unpriced, tokens, usd, "
    "unpaid_usd, saved_usd)",
    "CREATE TRIGGER IF NOT EXISTS costs_deleted AFTER DELETE ON traces "
    "BEGIN DELETE FROM costs WHERE trace = old.id; END",
)
_FIGURES = ", ".join(f"json_extract(cost.value, '$[{place}]')" for place in range(len(Cost._fields)))


def add_costs(connection: sqlite3.Connection, table: str, costs: str) -> None:
    """Add the costs of all traces of `table`.

    Args:
        costs: an SQL expression over a row `one` of the table: the trace's costs, as lists in JSON.
    """
    connection.execute(
        f"INSERT INTO main.costs SELECT one.id, date(one.started, 'unixepoch'), one.owner, one.planner, {_FIGURES} "
        f"FROM {table} AS one, json_each({costs}) AS cost"
    )


def add_missing_costs(connection: sqlite3.Connection) -> None:
    """Fill the table of a file that had none, from the whole traces. It reads each of them once."""
    for statement in COST_TABLES:
        connection.execute(statement)
    connection.execute("DELETE FROM main.costs")
    connection.create_function("podium_costs", 1, _costs, deterministic=True)
    add_costs(connection, "traces", "podium_costs(one.document)")


def _costs(document: str) -> str:
    try:
        costs = costs_of(Trace.model_validate_json(document))
    except ValidationError:  # A damaged trace stays listed, as before.
        costs = ()
    return json.dumps([cost._replace(worker=plain(cost.worker)) for cost in costs])
