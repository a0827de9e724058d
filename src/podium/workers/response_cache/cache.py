"""The response cache: looks up a request; if it is not there, calls the worker, stores the reply and returns it.

`podium.calls` uses it from one or several event loops, also in threads. A read or write takes some microseconds and
blocks the event loop. While another process has locked the file, the event loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from podium.errors import StoreError, WorkerError
from podium.sqlite_files import BUSY_TIMEOUT_S, error_code, is_busy
from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.response_cache import table
from podium.workers.response_cache.entry import as_cached, read_reply, request_key, write_reply
from podium.workers.response_cache.table import WorkerSummary

T = TypeVar("T")
_LOG = logging.getLogger("podium.cache")

_PAUSE_S = 0.02
_BLOCKING_MS = 5
"""The longest wait for other processes within one statement, which blocks the event loop."""


class ResponseCache:
    """Replies of workers, by the key of their request.

    Args:
        path: the SQLite file. The file and its folders are created if they are missing.
        replay: whether replies come only from the file. Then no worker is called, nothing is written, and a request
            that is not in the file raises a `WorkerError` of kind "unrecorded".
        create: whether a missing file is created. In replay it never is.

    Raises:
        UsageError: the file is missing and may not be created, cannot be opened, or is not a response cache.
    """

    def __init__(self, path: Path | str, *, replay: bool = False, create: bool = True) -> None:
        self.path = Path(path)
        self.replay = replay
        self._db = table.open_table(self.path, read_only=replay, create=create)
        self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")
        self._locks: dict[tuple[asyncio.AbstractEventLoop, bytes], _KeyLock] = {}
        self._unwritten: dict[bytes, tuple[str, bytes, float]] = {}
        """Replies that were paid for and could not be written: worker, reply, dollars."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    async def get_or_call(
        self, worker: Worker, request: Request, call: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """The stored reply of `worker` to `request`. If there is none, the reply of `call`, which is stored first.

        Of identical requests at the same time only one is sent, and the others wait for its reply. If that request
        fails or is cancelled, the next one is sent. Errors are not stored.

        Args:
            worker: a worker without an identity is called each time.
            call: calls the worker, with retries and limits.

        Raises:
            WorkerError: in replay, the file has no such reply.
            StoreError: the file cannot be read, or an earlier reply cannot be written. Nothing was paid. A reply that
                was paid for is always returned, and if it cannot be written, the log says so.
        """
        identity = worker.identity
        if identity is None:
            return await call()
        name, key = worker.profile.name, request_key(identity, request)
        kept = await self._find(key)
        if kept is None and self.replay:
            raise WorkerError(self._missing(name), kind="unrecorded")
        if kept is None:
            async with self._locked(key):
                kept = await self._find(key)
                if kept is None:
                    for unwritten, values in list(self._unwritten.items()):
                        await self._keep(unwritten, *values)
                    began = time.perf_counter()
                    reply = await call()
                    written = write_reply(reply, request.fence_mark, time.perf_counter() - began)
                    self._unwritten[key] = name, written, reply.price(worker.profile)
                    try:
                        other = await self._keep(key, *self._unwritten[key])
                    except StoreError as error:
                        _LOG.error("A reply of %r is not kept yet: %s", name, error)
                        return reply
                    return reply if other is None else as_cached(reply, read_reply(other, request.fence_mark))
        return read_reply(kept, request.fence_mark)

    @property
    def count(self) -> int:
        """Number of stored replies."""
        return self._run(lambda: table.count(self._db), "read")

    @property
    def size(self) -> int:
        """The bytes of the cache on the disk."""
        files = (self.path.with_name(self.path.name + end) for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def workers(self) -> tuple[WorkerSummary, ...]:
        """A summary of the stored replies of each worker."""
        return self._run(lambda: table.summaries(self._db), "read")

    def forget(self, older_than: datetime | None = None) -> int:
        """Delete the replies that were stored before `older_than`. If that is None, delete all. Returns their number.

        Raises:
            StoreError: the file cannot be written, or another process locks it for half a minute.
        """
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_TIMEOUT_S)}")
        try:
            return self._run(lambda: table.forget(self._db, older_than), "written")
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")

    def close(self) -> None:
        """Write replies that could not be written before, if that is possible now, and close the file."""
        with suppress(sqlite3.Error):  # The file may be closed already.
            for key, (worker, written, usd) in self._unwritten.items():
                table.insert(self._db, worker, key, written, usd)
        self._unwritten.clear()
        self._db.close()

    async def _find(self, key: bytes) -> bytes | None:
        return await self._run_when_free(lambda: table.find(self._db, key), "read")

    async def _keep(self, key: bytes, worker: str, written: bytes, usd: float) -> bytes | None:
        """Store a reply. If another process has stored a reply before, keep that reply and return it."""
        new = await self._run_when_free(lambda: table.insert(self._db, worker, key, written, usd), "written")
        self._unwritten.pop(key, None)
        return None if new else await self._find(key)

    @asynccontextmanager
    async def _locked(self, key: bytes) -> AsyncGenerator[None]:
        """Hold the lock of this key in this event loop."""
        lock_key = (asyncio.get_running_loop(), key)
        lock = self._locks.setdefault(lock_key, _KeyLock())
        lock.users += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                del self._locks[lock_key]

    async def _run_when_free(self, work: Callable[[], T], verb: str) -> T:
        """Run `work`, and repeat it while another process has locked the file."""
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return work()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > until:
                    raise self._failure(error, verb) from error
            try:
                await asyncio.sleep(_PAUSE_S)
            except asyncio.CancelledError:
                # If `work` stores a reply, this is the last chance to store it, and the reply is paid for.
                with suppress(sqlite3.Error):
                    work()
                raise

    def _run(self, work: Callable[[], T], verb: str) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise self._failure(error, verb) from error

    def _failure(self, error: sqlite3.Error, verb: str) -> StoreError:
        way_out = ""
        if is_busy(error):
            way_out = "; another process has locked it: let it end, or give each its own file"
        elif error_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            way_out = "; make room on the disk, or give another file"
        elif error_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            way_out = "; move it away, or give another file"
        return StoreError(f"The response cache {self.path} cannot be {verb} ({error}){way_out}.")

    def _missing(self, worker: str) -> str:
        """The message for a request to `worker` that is missing in replay."""
        others = next((usage.replies for usage in self.workers if usage.worker == worker), 0)
        return (
            f"{self.path} has no reply of {worker!r} to this request, and {others} to others; "
            "record it by running once without replay."
        )


@dataclass(slots=True)
class _KeyLock:
    """A lock for one key of the cache."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    """How many calls hold the lock or wait for it."""
