"""Responses that are made in the background: who is making each, and the parts that are done.

Two tables in the database of a trace store. A server makes a response while it has its lease, and writes nothing for it
once another server has taken it. A finished response is a trace; its rows stay for an hour, for clients that still read
its events. Documents are JSON, which this module does not read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.errors import LostLeaseError

Rows = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""Runs a statement with its values, and returns its rows: `AsyncTraceStore.rows`."""
KEPT_S = 3600.0
"""Seconds for which the rows of a finished response are kept."""
MOST_LEASE_S = 86_400.0
"""Seconds of a lease at most."""
BACKGROUND_TABLES = (
    """CREATE TABLE IF NOT EXISTS podium_background (
        id text PRIMARY KEY, owner text, caller text, created double precision NOT NULL, document text NOT NULL,
        holder text NOT NULL, lease double precision NOT NULL, cancelled integer NOT NULL, ended double precision
    )""",
    """CREATE TABLE IF NOT EXISTS podium_background_entries (
        id text, number integer, kind text NOT NULL, document text NOT NULL, PRIMARY KEY (id, number)
    )""",
)
_YEAR_9999 = 253_370_764_800.0
DELETE_BACKGROUND = (
    "DELETE FROM podium_background WHERE id = $1",
    "DELETE FROM podium_background_entries WHERE id = $1",
)
_COLUMNS = "id, owner, caller, created, document, holder, cancelled, ended"
_ADD = f"""
INSERT INTO podium_background (id, owner, caller, created, document, holder, lease, cancelled)
VALUES ($1, $2, $3, {{now}}, $4, $5, {{now}} + $6, 0) RETURNING {_COLUMNS}"""
# No lease is longer than a day: a later date is damaged, and would keep the response from every server for ever.
_UNHELD = f"ended IS NULL AND (lease < {{now}} OR lease > {{now}} + {MOST_LEASE_S})"
_FREE = f"SELECT id FROM podium_background WHERE {_UNHELD} LIMIT 1"
_TAKE = f"""
UPDATE podium_background SET holder = $1, lease = {{now}} + $2 WHERE id = (
    SELECT id FROM podium_background WHERE {_UNHELD} ORDER BY created LIMIT 1 {{skip_locked}}
) RETURNING {_COLUMNS}"""
_RENEW = """
UPDATE podium_background SET lease = {now} + $2 WHERE holder = $1 AND ended IS NULL RETURNING id, cancelled"""
_RELEASE = (
    "UPDATE podium_background SET lease = 0, holder = '' WHERE id = $1 AND holder = $2 AND ended IS NULL"
)
_END = """
UPDATE podium_background SET ended = {now} WHERE id = $1 AND holder = $2 AND ended IS NULL RETURNING id"""
_CANCEL = "UPDATE podium_background SET cancelled = 1 WHERE id = $1 AND ended IS NULL"
# The lock makes a server that takes the response wait for this entry, and so read it.
_APPEND = """
WITH held AS (SELECT id FROM podium_background WHERE id = $1 AND holder = $2 {lock})
INSERT INTO podium_background_entries (id, number, kind, document)
SELECT id, CAST($3 AS integer), CAST($4 AS text), CAST($5 AS text) FROM held RETURNING number"""
_ENTRIES = "SELECT number, kind, document FROM podium_background_entries WHERE id = $1 AND number >= $2 ORDER BY number"
_OVER = "ended < {now} - $1 OR ended > {now} + $1"
_SWEEP = (
    f"DELETE FROM podium_background_entries WHERE id IN (SELECT id FROM podium_background WHERE {_OVER})",
    f"DELETE FROM podium_background WHERE {_OVER}",
)


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
class Entry:
    """A part of a response, as a server kept it."""

    number: int
    """From 0."""
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
        row = _row(await self._rows(_ADD, id, owner, caller, document, holder, lease_s))
        assert row is not None
        return row

    async def take(self, holder: str, lease_s: float) -> BackgroundRow | None:
        """Take the oldest response whose lease is over; None: there is none."""
        if not await self._rows(_FREE):
            return None  # Without this look, an idle server would lock the file.
        return _row(await self._rows(_TAKE, holder, lease_s))

    async def renew(self, holder: str, lease_s: float) -> dict[str, bool]:
        """Renew all leases of a server. Returns its responses, and whether each is to be cancelled."""
        return {id: bool(cancelled) for id, cancelled in await self._rows(_RENEW, holder, lease_s)}

    async def release(self, id: str, holder: str) -> None:
        """Give a response up, so that another server may take it at once."""
        await self._rows(_RELEASE, id, holder)

    async def append(self, id: str, holder: str, entry: Entry) -> None:
        """Add an entry.

        Raises:
            LostLeaseError: `holder` no longer has the response; nothing was added.
        """
        if not await self._rows(_APPEND, id, holder, entry.number, entry.kind, entry.document):
            raise LostLeaseError(f"The response {id} is no longer this server's.", retryable=False)

    async def entries(self, id: str, start: int = 0) -> list[Entry]:
        """The entries from number `start` on."""
        return [Entry(*row) for row in await self._rows(_ENTRIES, id, start)]

    async def cancel(self, id: str) -> None:
        """Ask the server that makes a response to cancel it."""
        await self._rows(_CANCEL, id)

    async def end(self, id: str, holder: str) -> bool:
        """Mark a response as finished. False: `holder` no longer has it."""
        return bool(await self._rows(_END, id, holder))

    async def delete(self, id: str) -> None:
        """Delete a response. The server that makes it stops, and keeps no trace."""
        for statement in DELETE_BACKGROUND:
            await self._rows(statement, id)

    async def sweep(self) -> None:
        """Delete the rows of responses that were finished an hour ago."""
        for statement in _SWEEP:
            await self._rows(statement, KEPT_S)

    async def find(self, id: str, owner: str | None = None) -> BackgroundRow | None:
        """The response with this id, only of `owner`, if given."""
        found = _row(await self._rows(f"SELECT {_COLUMNS} FROM podium_background WHERE id = $1", id))
        return found if found is not None and owner in (None, found.owner) else None


def _row(rows: Sequence[Sequence[Any]]) -> BackgroundRow | None:
    if not rows:
        return None
    id_, owner, caller, created, document, holder, cancelled, ended = rows[0]
    if not isinstance(created, float | int) or not 0 <= created < _YEAR_9999:
        created = 0.0
    return BackgroundRow(id_, owner, caller, created, document, holder, bool(cancelled), ended)
