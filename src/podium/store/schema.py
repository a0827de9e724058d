"""The tables of a store of traces, for SQLite and PostgreSQL alike.

A trace has a row of `DOCUMENTS` with the whole trace, a narrow row of `TRACES` with what lists and filters read, a row
of `WORKERS` for each worker, and rows of `COSTS`. `serialization` makes the rows, and `trace_rows` writes them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.types import TypeEngine

from podium.store.database import Tables

_METADATA = MetaData()
_ID = Text().with_variant(Text(collation="C"), "postgresql")
"""The type of an id. The search for the beginning of an id must compare code points."""


def _table(name: str, *columns: Column | Index) -> Table:  # type: ignore[type-arg]
    """A table that SQLite keeps in the order of its key, so that the newest traces are close together."""
    return Table(name, _METADATA, *columns, sqlite_with_rowid=False)


def _columns(kind: type[TypeEngine[Any]], names: str, *, key: bool = False) -> list[Column[Any]]:
    return [Column(name, kind, primary_key=key) for name in names.split()]


def _started(*, key: bool = True) -> Column[float]:
    return Column("started", Double, primary_key=key)


DOCUMENTS = Table(
    "podium_documents",
    _METADATA,
    Column("id", _ID, primary_key=True),
    _started(key=False),
    Column("document", Text),
)
TRACES = _table(
    "traces",
    _started(),
    Column("id", _ID, primary_key=True),
    *_columns(Text, "planner status question"),
    Column("calls", BigInteger),
    *_columns(Double, "cost_usd seconds"),
    *_columns(Text, "owner workers searched outcome"),
    Index("podium_traces_of", "owner", "started", "id", info={"dialect": "postgresql"}),
    # This index has what filters read, so SQLite need not look up each trace. PostgreSQL bounds an index's width.
    Index(
        "podium_traces_of", "owner", "started", "id", "status", "planner", "cost_usd", "outcome", "workers",
        info={"dialect": "sqlite"},
    ),
    Index("podium_traces_planned", "planner", "started", "id"),
    Index(
        "podium_traces_troubled", "status", "started", "id",
        sqlite_where=text("status <> 'ok'"), postgresql_where=text("status <> 'ok'"),
    ),
    Index(
        "podium_traces_judged", "outcome", "started", "id",
        sqlite_where=text("outcome IS NOT NULL"), postgresql_where=text("outcome IS NOT NULL"),
    ),
)  # fmt: skip
"""`workers` is a list in JSON."""
WORKERS = _table(
    "podium_worked", Column("worker", Text, primary_key=True), _started(), Column("id", _ID, primary_key=True)
)
COSTS = _table(
    "podium_costs",
    _started(),
    Column("id", _ID, primary_key=True),
    Column("worker", Text, primary_key=True),
    *_columns(Text, "day owner planner"),
    *_columns(BigInteger, "calls unpriced tokens"),
    *_columns(Double, "usd unpaid_usd saved_usd"),
)
"""The costs of each worker of a trace, and of its plans."""
DAILY_COSTS = _table(
    "podium_spent",
    *_columns(Text, "day owner planner worker", key=True),
    *_columns(BigInteger, "questions calls unpriced tokens"),
    *_columns(Double, "usd unpaid_usd saved_usd"),
)
"""The sums of `COSTS`. In both, the owner "" stands for no key."""
BACKGROUND = _table(
    "podium_background",
    Column("id", Text, primary_key=True),
    *_columns(Text, "owner document holder"),
    Column("heartbeat", Double),
    *_columns(Integer, "begun cancelled"),
)
WAY_OUT = "give another with --store"
TRACE_TABLES = Tables(
    "trace store", application_id=0x506F4469, version=1, metadata=_METADATA, way_out=WAY_OUT
)  # "PoDi"
