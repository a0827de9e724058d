"""The table of responses that are being made in the background, in a trace store's database.

A response is a task of the server that accepted it, which sends heartbeats. The response's row has the trace that the
response gets if the server is killed. A finished response is a trace and has no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, insert, or_, select, update

from podium.store.database import SqlNow
from podium.store.schema import BACKGROUND, DOCUMENTS
from podium.store.trace_store import TraceStore
from podium.trace.model import Trace
from podium.trace.serialization import DamagedTraceError, read_document, to_json
from podium.types import Question

ALIVE_S = 30.0
"""A server is assumed to work on its responses until this many seconds after its last heartbeat."""
SERVER_ENDED = (
    "The server that worked on this response ended before it was finished: ask again. With a response cache, no answer "
    "that it kept is paid for twice."
)
_B = BACKGROUND.c


@dataclass(frozen=True, slots=True)
class BackgroundRow:
    """One response that is being made."""

    trace: Trace
    """The trace that the response gets if its server ends."""
    begun: bool
    """Whether the response is being made. If not, it waits for its turn."""


class BackgroundTable:
    """The responses that are being made, in the database of a trace store.

    Raises:
        StoreError: the database cannot be used.
    """

    def __init__(self, store: TraceStore) -> None:
        self._store = store

    async def add(self, trace: Trace, holder: str) -> None:
        """Add a response, which the server `holder` makes. The response becomes `trace` if that server ends."""
        values = {"id": trace.id, "owner": trace.owner, "document": to_json(trace), "holder": holder}
        row = insert(BACKGROUND).values(**values, heartbeat=SqlNow(), begun=0, cancelled=0)
        await self._store.database.run(row)

    async def begin(self, id: str) -> None:
        """Record that a response's turn has come."""
        await self._store.database.run(update(BACKGROUND).where(_B.id == id).values(begun=1))

    async def heartbeat(self, holder: str) -> dict[str, bool]:
        """Record a heartbeat of a server. Returns its responses, and whether each must be cancelled."""
        mine = update(BACKGROUND).where(_B.holder == holder).values(heartbeat=SqlNow())
        rows = await self._store.database.run(mine.returning(_B.id, _B.cancelled))
        return {id: bool(cancelled) for id, cancelled in rows}

    async def cancel(self, id: str) -> None:
        """Ask the server that makes a response to cancel it."""
        await self._store.database.run(update(BACKGROUND).where(_B.id == id).values(cancelled=1))

    async def end(self, id: str, holder: str) -> bool:
        """Remove a response whose trace is stored. Returns False if `holder` has lost the response."""
        mine = delete(BACKGROUND).where(_B.id == id, _B.holder == holder)
        return bool(await self._store.database.run(mine.returning(_B.id)))

    async def delete(self, id: str) -> None:
        """Delete a response. The server that makes it stops, and keeps no trace."""
        await self._store.database.run(delete(BACKGROUND).where(_B.id == id))

    async def find(self, id: str, owner: str | None = None) -> BackgroundRow | None:
        """The response with this id and, if given, this owner. None unless it is being made. If its server has ended,
        its trace is stored instead."""
        columns = (_B.owner, _B.document, _B.begun, _is_lost().label("lost"))
        while rows := await self._store.database.run(select(*columns).where(_B.id == id)):
            of, document, begun, lost = rows[0]
            if owner not in (None, of):
                return None
            if not lost:
                return BackgroundRow(_trace(id, of, document), bool(begun))
            await self.end_lost()  # Another server may be ending it already: then the row is lost no more.
        return None

    async def end_lost(self) -> None:
        """Store the traces of the responses whose servers have ended."""
        # If the server that held the response only stood still, it can no longer store another trace.
        mine = uuid4().hex
        # Without this read, an idle server would lock the file.
        lost = select(_B.id).where(_is_lost()).limit(1)
        while rows := await self._store.database.run(lost):
            taken = update(BACKGROUND).where(_B.id == rows[0][0], _is_lost())
            taken = taken.values(holder=mine, heartbeat=SqlNow())
            for id, owner, document in await self._store.database.run(
                taken.returning(_B.id, _B.owner, _B.document)
            ):
                if not await self._store.database.run(select(DOCUMENTS.c.id).where(DOCUMENTS.c.id == id)):
                    self._store.add(_trace(id, owner, document))
                    await self._store.to_thread(self._store.flush)
                await self.end(id, mine)


def _is_lost() -> ColumnElement[bool]:
    """Whether a response's server sent no heartbeat for too long. A heartbeat in the future is damaged, and would
    otherwise keep the response in progress for ever."""
    return or_(_B.heartbeat.is_(None), _B.heartbeat < SqlNow() - ALIVE_S, _B.heartbeat > SqlNow() + ALIVE_S)


def _trace(id: str, owner: str | None, document: str) -> Trace:
    """The trace in a document. For a damaged document, a trace with only the required fields."""
    try:
        trace = read_document(document)
    except DamagedTraceError:
        trace = Trace(
            id=id, question=Question(text=""), pool=(), planner="", seed="", status="failed", error=SERVER_ENDED,
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"), seconds=0.0,
        )  # fmt: skip
    return trace.model_copy(update={"id": id, "owner": owner})
