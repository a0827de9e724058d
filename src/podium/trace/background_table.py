"""Responses that are made in the background: who is making each, and the parts that are done.

Two tables of a trace store's database. A server makes a response while it has its lease, and writes nothing for it
once another server has taken it. A finished response is a trace; its rows stay for an hour, for clients that still read
its events. Documents are JSON, which this module does not read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, and_, delete, insert, literal, or_, select, update

from podium.errors import LostLeaseError
from podium.trace.engine import now
from podium.trace.schema import BACKGROUND, ENTRIES

Rows = Callable[[Executable], Awaitable[Sequence[Sequence[Any]]]]
"""Runs a statement, and returns its rows: `AsyncTraceStore.rows`."""
KEPT_S = 3600.0
"""Seconds for which the rows of a finished response are kept."""
MOST_LEASE_S = 86_400.0
"""Seconds of a lease at most."""
_YEAR_9999 = 253_370_764_800.0
_B, _E = BACKGROUND.c, ENTRIES.c
_COLUMNS = (_B.id, _B.owner, _B.caller, _B.created, _B.document, _B.holder, _B.cancelled, _B.ended)
# No lease is longer than a day: a later date is damaged, and would keep the response from every server for ever.
_UNHELD = and_(_B.ended.is_(None), or_(_B.lease < now(), _B.lease > now() + MOST_LEASE_S))


@dataclass(frozen=True, slots=True)
class BackgroundRow:
    """One response."""

    id: str
    """That of its trace."""
    owner: str | None
    """The name of the key that asked; None: no key was needed."""
    caller: str | None
    """The id of that key."""
    created: float
    """Seconds since 1970; 0 if the table has no date there."""
    document: str
    """The request."""
    holder: str
    """The server that makes it; "": none does."""
    cancelled: bool
    """Whether its caller wants it cancelled."""
    ended: float | None
    """When it was finished, in seconds since 1970; None: it is not."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """A part of a response, as a server kept it."""

    number: int
    """The event's number, from 0."""
    kind: str
    document: str


class BackgroundTable:
    """The responses in the database of a trace store.

    Args:
        rows: runs a statement there.

    Raises:
        StoreError: the database cannot be used.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def add(
        self, id: str, *, owner: str | None, caller: str | None, document: str, holder: str, lease_s: float
    ) -> BackgroundRow:
        """Add a response. `holder` makes it; with "" and no lease, the next server that has room takes it."""
        added = insert(BACKGROUND).values(
            id=id, owner=owner, caller=caller, created=now(), document=document, holder=holder,
            lease=now() + lease_s, cancelled=0,
        )  # fmt: skip
        row = _row(await self._rows(added.returning(*_COLUMNS)))
        assert row is not None
        return row

    async def take(self, holder: str, lease_s: float) -> BackgroundRow | None:
        """Take the oldest response whose lease is over; None: there is none."""
        free = select(_B.id).where(_UNHELD)
        if not await self._rows(free.limit(1)):
            return None  # Without this look, an idle server would lock the file.
        oldest = free.order_by(_B.created).limit(1).with_for_update(skip_locked=True).scalar_subquery()
        taken = update(BACKGROUND).where(_B.id == oldest).values(holder=holder, lease=now() + lease_s)
        return _row(await self._rows(taken.returning(*_COLUMNS)))

    async def renew(self, holder: str, lease_s: float) -> dict[str, bool]:
        """Renew all leases of a server. Returns its responses, and whether each is to be cancelled."""
        mine = update(BACKGROUND).where(_B.holder == holder, _B.ended.is_(None))
        rows = await self._rows(mine.values(lease=now() + lease_s).returning(_B.id, _B.cancelled))
        return {id: bool(cancelled) for id, cancelled in rows}

    async def release(self, id: str, holder: str) -> None:
        """Give a response up, so that another server may take it at once."""
        held = update(BACKGROUND).where(_B.id == id, _B.holder == holder, _B.ended.is_(None))
        await self._rows(held.values(lease=0, holder=""))

    async def append(self, id: str, holder: str, entry: EventRow) -> None:
        """Add an entry.

        Raises:
            LostLeaseError: `holder` no longer has the response; nothing was added.
        """
        # The lock makes a server that takes the response wait for this entry, and so read it.
        held = select(_B.id).where(_B.id == id, _B.holder == holder).with_for_update().cte("held")
        values = select(held.c.id, literal(entry.number), literal(entry.kind), literal(entry.document))
        added = insert(ENTRIES).from_select(["id", "number", "kind", "document"], values)
        if not await self._rows(added.returning(_E.number)):
            raise LostLeaseError(f"The response {id} is no longer this server's.", retryable=False)

    async def entries(self, id: str, start: int = 0) -> list[EventRow]:
        """The entries from number `start` on."""
        found = select(_E.number, _E.kind, _E.document).where(_E.id == id, _E.number >= start)
        return [EventRow(*row) for row in await self._rows(found.order_by(_E.number))]

    async def cancel(self, id: str) -> None:
        """Ask the server that makes a response to cancel it."""
        await self._rows(update(BACKGROUND).where(_B.id == id, _B.ended.is_(None)).values(cancelled=1))

    async def end(self, id: str, holder: str) -> bool:
        """Mark a response as finished. False: `holder` no longer has it."""
        held = update(BACKGROUND).where(_B.id == id, _B.holder == holder, _B.ended.is_(None))
        return bool(await self._rows(held.values(ended=now()).returning(_B.id)))

    async def delete(self, id: str) -> None:
        """Delete a response. The server that makes it stops, and keeps no trace."""
        await self._rows(delete(BACKGROUND).where(_B.id == id))
        await self._rows(delete(ENTRIES).where(_E.id == id))

    async def sweep(self) -> None:
        """Delete the rows of responses that were finished an hour ago."""
        over = or_(_B.ended < now() - KEPT_S, _B.ended > now() + KEPT_S)
        await self._rows(delete(ENTRIES).where(_E.id.in_(select(_B.id).where(over))))
        await self._rows(delete(BACKGROUND).where(over))

    async def find(self, id: str, owner: str | None = None) -> BackgroundRow | None:
        """The response with this id, only of `owner`, if given."""
        found = _row(await self._rows(select(*_COLUMNS).where(_B.id == id)))
        return found if found is not None and owner in (None, found.owner) else None


def _row(rows: Sequence[Sequence[Any]]) -> BackgroundRow | None:
    if not rows:
        return None
    id_, owner, caller, created, document, holder, cancelled, ended = rows[0]
    if not isinstance(created, float | int) or not 0 <= created < _YEAR_9999:
        created = 0.0
    return BackgroundRow(id_, owner, caller, created, document, holder, bool(cancelled), ended)
