"""The response cache: looks up, asks once, keeps before it gives back. What the executor calls.

Used from event loops, one or several, one after another or in threads. A look or a write takes some microseconds and
is not awaited; only another process that holds the file is waited for, and then the event loop goes on.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from podium.database import BUSY_TIMEOUT_S
from podium.errors import StoreError, WorkerError
from podium.workers.base import Reply, Request, Worker
from podium.workers.response_cache import table
from podium.workers.response_cache.cache_key import CacheKey
from podium.workers.response_cache.nearest import CANDIDATES, difference, nearest
from podium.workers.response_cache.reply import as_kept, read_reply, write_reply
from podium.workers.response_cache.table import WorkerSummary

T = TypeVar("T")

_PAUSE_S = 0.02
_BLOCKING_MS = 5
"""Of waiting for others inside one statement: no event loop should stand still for longer."""


class ResponseCache:
    """Replies of workers, by all that can change them.

    Args:
        path: the SQLite file. It and its folders are made if they are missing.
        replay: nothing is asked or written: what is not in the file is a `WorkerError` of kind "unrecorded".
        create: whether a missing file is made; never in replay.

    Raises:
        UsageError: the file is missing and not to be made, cannot be opened, or is not a response cache.
    """

    def __init__(self, path: Path | str, *, replay: bool = False, create: bool = True) -> None:
        self.path = Path(path)
        self.replay = replay
        self._db = table.open_table(self.path, read_only=replay, create=create)
        self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")
        self._turns: dict[tuple[asyncio.AbstractEventLoop, bytes], _Turn] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    async def reply(self, worker: Worker, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """The kept reply of `worker` to `request`; else what `ask` gives, kept before it is given back.

        Identical calls in flight are made once: whoever comes second waits, and finds the reply kept. If the first one
        fails or is cancelled, the next one asks. Errors are not kept.

        Args:
            worker: one without an identity is asked each time.
            ask: makes the call, with retries and limits and all.

        Raises:
            WorkerError: in replay, the file has no such reply.
            StoreError: the file cannot be read or written.
        """
        identity = worker.identity
        if identity is None:
            return await ask()
        asked = CacheKey.of(worker.profile.name, identity, request)
        key = asked.key
        kept = await self._find(key)
        if kept is None and self.replay:
            raise WorkerError(self._missing(asked), kind="unrecorded")
        if kept is None:
            async with self._turn(key):
                kept = await self._find(key)
                if kept is None:
                    began = time.perf_counter()
                    reply = await ask()
                    written = write_reply(reply, request.mark, time.perf_counter() - began)
                    usd = reply.price(worker.profile)
                    other = await self._keep(asked, key, written, usd)
                    return reply if other is None else as_kept(reply, read_reply(other, request.mark))
        return read_reply(kept, request.mark)

    @property
    def count(self) -> int:
        """Replies that are kept."""
        return self._said(lambda: table.count(self._db), "read")

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        files = (self.path.with_name(self.path.name + end) for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def workers(self) -> tuple[WorkerSummary, ...]:
        """What is kept of each worker."""
        return self._said(lambda: table.summaries(self._db), "read")

    def forget(self, older_than: datetime | None = None) -> int:
        """Delete the replies that were kept before `older_than`, None: all; returns how many.

        Raises:
            StoreError: the file cannot be written, or another process holds it for half a minute.
        """
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_TIMEOUT_S)}")
        try:
            return self._said(lambda: table.forget(self._db, older_than), "written")
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")

    def close(self) -> None:
        """Let go of the file. Calling twice is fine."""
        self._db.close()

    async def _find(self, key: bytes) -> bytes | None:
        return await self._patiently(lambda: table.find(self._db, key), "read")

    async def _keep(self, asked: CacheKey, key: bytes, written: bytes, usd: float) -> bytes | None:
        """Keep a reply; where another process was first, its own is what is kept, and is returned."""
        if await self._patiently(lambda: table.insert(self._db, asked, key, written, usd), "written"):
            return None
        return await self._find(key)

    @asynccontextmanager
    async def _turn(self, key: bytes) -> AsyncGenerator[None]:
        """One at a time for each key and event loop."""
        place = (asyncio.get_running_loop(), key)
        turn = self._turns.setdefault(place, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[place]

    async def _patiently(self, work: Callable[[], T], verb: str) -> T:
        """Do `work`, as soon as no other process is in its way."""
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return work()
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise self._failure(error, verb) from error
            try:
                await asyncio.sleep(_PAUSE_S)
            except asyncio.CancelledError:
                # Whoever goes away here has paid, and nobody comes back to keep what he paid for.
                with suppress(sqlite3.Error):
                    work()
                raise

    def _said(self, work: Callable[[], T], verb: str) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise self._failure(error, verb) from error

    def _failure(self, error: sqlite3.Error, verb: str) -> StoreError:
        way_out = ""
        if _is_busy(error):
            way_out = "; another process holds it: let it end, or give each its own file"
        elif _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            way_out = "; make room on the disk, or give another file"
        elif _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            way_out = "; move it away, or give another file"
        return StoreError(f"The response cache {self.path} cannot be {verb} ({error}){way_out}.")

    def _missing(self, asked: CacheKey) -> str:
        """The sentence of a miss in replay."""
        asked = CacheKey.unpacked(asked.worker, asked.packed)  # As the others come: of JSON's own types.
        like = self._said(
            lambda: nearest(asked, table.alike(self._db, asked.worker, asked.length, CANDIDATES)), "read"
        )
        if like is None:
            found = "it is empty"
        else:
            whom = "" if like.worker == asked.worker else f", to {like.worker!r},"
            found = f"the nearest recorded request{whom} {difference(asked, like)}"
        return (
            f"{self.path} has no reply of {asked.worker!r} to this request: {found}; "
            "record it by running once without replay."
        )


@dataclass(slots=True)
class _Turn:
    """Who asks for a key."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0
    """By those who ask and those who wait."""


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    """The primary code: the low byte. Errors that SQLite has not made have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
