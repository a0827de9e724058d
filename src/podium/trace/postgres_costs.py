"""The table of a PostgreSQL store that has what each question cost, and how it is filled.

`costs` makes its rows, `spend` sums them. A trace that is deleted takes its rows along.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from podium.trace.model import Trace
from podium.trace.serialization import TraceRow, to_row

if TYPE_CHECKING:
    import asyncpg

COST_TABLES = (
    """CREATE TABLE IF NOT EXISTS podium_costs (
        trace text COLLATE "C" NOT NULL REFERENCES podium_traces ON DELETE CASCADE, day text COLLATE "C" NOT NULL,
        owner text, planner text NOT NULL, worker text NOT NULL, calls bigint NOT NULL, unpriced bigint NOT NULL,
        tokens bigint NOT NULL, usd double precision NOT NULL, unpaid_usd double precision NOT NULL,
        saved_usd double precision NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS podium_costs_of_trace ON podium_costs (trace)",
    "CREATE INDEX IF NOT EXISTS podium_costs_of_day ON podium_costs (day)",
)
_ADD = "INSERT INTO podium_costs VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_BATCH = 200
"""Traces that an upgrade reads at once."""


async def replace_costs(connection: asyncpg.Connection[Any], rows: Iterable[TraceRow]) -> None:
    """Write the costs of `rows`, whose traces are there, in place of earlier ones."""
    latest = {row.id: row for row in rows}
    await connection.execute("DELETE FROM podium_costs WHERE trace = ANY($1)", list(latest))
    await connection.executemany(
        _ADD,
        [
            (
                row.id,
                datetime.fromtimestamp(row.started, UTC).date().isoformat(),
                row.owner,
                row.planner,
                *cost,
            )
            for row in latest.values()
            for cost in row.costs
        ],
    )


async def add_missing_costs(connection: asyncpg.Connection[Any]) -> None:
    """Fill the table of a database that had none, from the whole traces. It reads each of them once."""
    after = ""
    while True:
        found = await connection.fetch(
            "SELECT id, document FROM podium_traces WHERE id > $1 ORDER BY id LIMIT $2", after, _BATCH
        )
        if not found:
            return
        after = found[-1]["id"]
        await replace_costs(connection, [row for one in found for row in _row(one["document"])])


def _row(document: str) -> list[TraceRow]:
    try:
        return [to_row(Trace.model_validate_json(document))]
    except ValidationError:  # A damaged trace stays listed, as before.
        return []
