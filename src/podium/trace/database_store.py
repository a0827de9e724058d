"""What stores of traces in databases have in common: all but how a statement is run."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from podium.errors import UnknownTraceError, UsageError
from podium.trace.kept import Filters, Page
from podium.trace.model import Trace
from podium.trace.outbox import Outbox
from podium.trace.row import TraceRow, plain, to_row
from podium.trace.statements import Dialect, Statement, write_cursor

_AT_ONCE = 32
"""Traces of an export that are in memory together."""
_PATIENCE_S = 5.0
"""That a reader has for what was added before; then it sees what there is."""


class DatabaseStore(ABC):
    """A `Store` over one table; see there.

    Args:
        place: the store as messages name it.
        dialect: of its database.
        spill: the folder for traces that cannot be written in the end.
    """

    def __init__(self, place: str, dialect: Dialect, spill: Path, **bounds: Any) -> None:
        self.place = place
        self._dialect = dialect
        self._outbox = Outbox(self._write, place, spill=spill, **bounds)

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether servers on other machines may keep their traces in it too."""

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        return self._outbox.waiting

    @property
    def trouble(self) -> str | None:
        """Why traces cannot be written now."""
        return self._outbox.trouble

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing."""
        self._outbox.put(to_row(trace))

    async def get(self, prefix: str, owner: str | None = None) -> Trace:
        """The trace whose id begins so."""
        asked = plain(prefix)
        if not asked:
            raise UsageError("An empty trace id was given.")
        rows = await self._read(self._dialect.beginning(asked, owner))
        if not rows:
            raise UnknownTraceError(f"There is no trace whose id begins with {asked[:64]!r}.")
        if len(rows) > 1 and rows[0][0] != asked:
            some = ", ".join(row[0] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise UsageError(
                f"Several traces have an id that begins with {asked!r}: {some}; give more of it."
            )
        return Trace.model_validate_json(rows[0][1])

    async def page(self, filters: Filters, cursor: str | None = None, limit: int = 50) -> Page:
        """At most `limit` traces from `cursor` on."""
        rows = await self._read(self._dialect.page(filters, cursor, limit))
        there = rows[:limit]
        more = len(rows) > limit
        total: int | None = None
        if cursor is None:
            total = len(rows)
            if more:
                ((total,),) = await self._rows(self._dialect.count(filters))
        return Page(
            traces=tuple(self._dialect.summary(row) for row in there),
            next=write_cursor(there[-1][1], there[-1][0]) if more else None,
            total=total,
        )

    async def newest(self, count: int) -> tuple[Trace, ...]:
        """The newest traces."""
        rows = await self._read(self._dialect.newest(count))
        return tuple(Trace.model_validate_json(document) for (document,) in rows)

    async def delete(self, id: str, owner: str | None = None) -> bool:
        """Take a trace away."""
        return bool(await self._read(self._dialect.delete(id, owner)))

    async def export(self, filters: Filters) -> AsyncIterator[str]:
        """Lines of JSON, oldest first."""
        await self._settled()
        after: tuple[float, str] | None = None
        while True:
            rows = await self._rows(self._dialect.documents(filters, after, _AT_ONCE))
            for started, id_, document in rows:
                yield document
                after = (started, id_)
            if len(rows) < _AT_ONCE:
                return

    async def close(self) -> None:
        """Write what waits, then let go."""
        try:
            await asyncio.to_thread(self._outbox.close)
        finally:
            await asyncio.to_thread(self._let_go)

    async def _read(self, statement: Statement) -> Sequence[Sequence[Any]]:
        """The rows of a statement that sees what was added before."""
        await self._settled()
        return await self._rows(statement)

    async def _settled(self) -> None:
        flushed = self._outbox.flushed()
        if not flushed.done():
            await asyncio.wait([asyncio.wrap_future(flushed)], timeout=_PATIENCE_S)

    @abstractmethod
    async def _rows(self, statement: Statement) -> Sequence[Sequence[Any]]:
        """The rows that a statement answers.

        Raises:
            StoreError: the database cannot be read.
        """

    @abstractmethod
    def _write(self, rows: Sequence[TraceRow]) -> None:
        """Write rows, all or none; in the outbox's thread.

        Raises:
            StoreError: they could not be written.
        """

    @abstractmethod
    def _let_go(self) -> None:
        """Close what is open. Called again: nothing."""
