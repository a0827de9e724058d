"""The response cache: keeps replies in an SQLite file, so that each request is paid for once (docs/caching.md).

A request's key is made of everything that can change the answer. Texts are cut into pieces at the question's random
mark, so that the same question with another mark has the same key, and a stored reply gets the mark of the question
that reads it. Replies never expire, but `ResponseCache.forget` deletes them. `podium.calls` uses the cache from one or
several event loops, also in threads. A statement takes some microseconds, commits by itself and blocks the event loop.
While another process has locked the file, the event loop goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from pydantic import BaseModel

from podium.errors import StoreError, UsageError, WorkerError
from podium.files.sqlite import BUSY_TIMEOUT_S, SQLiteSchema, error_code, is_busy
from podium.trace import Reply
from podium.workers.base import Request, Worker

_LOG = logging.getLogger("podium.cache")
_FORMAT = 1
"""A part of every key, so that replies of an older format are not found."""
_SCHEMA = SQLiteSchema(
    "response cache",
    application_id=0x506F4372,  # "PoCr"
    version=1,
    tables=(
        # Small columns come first, since a listing reads no further.
        """CREATE TABLE IF NOT EXISTS replies (
            id INTEGER PRIMARY KEY, key BLOB UNIQUE, worker TEXT, recorded REAL, usd REAL, reply BLOB
        )""",
        "CREATE INDEX IF NOT EXISTS by_worker ON replies (worker)",
    ),
    way_out="give another file",
    # A power cut may lose the last replies, but syncing each reply would delay all calls on slow disks.
    synchronous="NORMAL",
    incremental_vacuum=True,
)
_FIND = "SELECT reply FROM replies WHERE key = ?"
_INSERT = (
    "INSERT INTO replies (key, worker, recorded, usd, reply) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (key) DO NOTHING RETURNING id"
)
_DELETED_AT_ONCE = 500
"""How many replies one statement deletes, so that other processes do not wait long."""
_PAUSE_S = 0.02
_BLOCKING_MS = 5
"""The longest wait for other processes within one statement, which blocks the event loop."""
_WAYS_OUT = {
    sqlite3.SQLITE_BUSY: "; another process has locked it: let it end, or give each its own file",
    sqlite3.SQLITE_LOCKED: "; another process has locked it: let it end, or give each its own file",
    sqlite3.SQLITE_FULL: "; make room on the disk, or give another file",
    sqlite3.SQLITE_IOERR: "; make room on the disk, or give another file",
    sqlite3.SQLITE_CORRUPT: "; move it away, or give another file",
    sqlite3.SQLITE_NOTADB: "; move it away, or give another file",
}


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """The stored replies of one worker, in numbers."""

    worker: str
    """The worker's name in the pool that called it."""
    replies: int
    usd: float
    """The dollars that the replies cost when they were made."""
    oldest: datetime
    """When the oldest reply was stored, in UTC."""
    newest: datetime


class ResponseCache:
    """Replies of workers, by the key of their request.

    Args:
        path: the SQLite file. The file and its folders are created if they are missing.
        replay: whether replies come only from the file. Then no worker is called and nothing is written.
        create: whether a missing file is created. In replay it never is.

    Raises:
        UsageError: the file is missing and may not be created, cannot be opened, or is not a response cache.
    """

    def __init__(self, path: Path | str, *, replay: bool = False, create: bool = True) -> None:
        self.path = Path(path)
        self.replay = replay
        if (replay or not create) and not self.path.is_file():
            raise UsageError(
                f"There is no response cache at {path}; a run with this file and without replay creates it."
            )
        self._db = _SCHEMA.open(self.path, read_only=replay)
        self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")
        self._locks = WeakValueDictionary[tuple[asyncio.AbstractEventLoop, bytes], asyncio.Lock]()
        """The locks of the keys whose requests are being answered in an event loop. Their holders keep them alive."""
        self._unwritten: dict[bytes, tuple[Any, ...]] = {}
        """The rows of replies that were paid for and could not be written, by their key."""

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

        A worker without an identity is called each time.

        Raises:
            WorkerError: of kind "unrecorded" if the file has no such reply in replay.
            StoreError: the file cannot be read, or an earlier reply cannot be written. Nothing was paid. A reply that
                was paid for is always returned, and if it cannot be written, the log says so.
        """
        identity = worker.identity
        if identity is None:
            return await call()
        name, key = worker.profile.name, request_key(identity, request)
        kept = await self._execute_when_free(_FIND, key)
        if not kept and self.replay:
            others = next((summary.replies for summary in self.workers if summary.worker == name), 0)
            raise WorkerError(
                f"{self.path} has no reply of {name!r} to this request, and {others} to others; "
                "record it by running once without replay.",
                kind="unrecorded",
            )
        if not kept:
            async with self._locks.setdefault((asyncio.get_running_loop(), key), asyncio.Lock()):
                kept = await self._execute_when_free(_FIND, key)
                if not kept:
                    return await self._call_and_keep(worker, request, key, call)
        return _decode_reply(kept[0][0], request.fence_mark)

    async def _call_and_keep(
        self, worker: Worker, request: Request, key: bytes, call: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        for unwritten in list(self._unwritten.values()):
            await self._keep(*unwritten)
        began = time.perf_counter()
        reply = await call()
        written = _encode_reply(reply, request.fence_mark, time.perf_counter() - began)
        name, cost = worker.profile.name, reply.cost(worker.profile)
        row = self._unwritten[key] = (key, name, datetime.now(UTC).timestamp(), cost, written)
        try:
            other = await self._keep(*row)
        except StoreError as error:
            _LOG.error("A reply of %r is not kept yet: %s", name, error)
            return reply
        return reply if other is None else _as_cached(reply, _decode_reply(other, request.fence_mark))

    @property
    def count(self) -> int:
        """Number of stored replies."""
        return int(self._execute("SELECT count(*) FROM replies")[0][0])

    @property
    def size(self) -> int:
        """The bytes of the cache on the disk."""
        files = (self.path.with_name(self.path.name + end) for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def workers(self) -> tuple[WorkerSummary, ...]:
        """A summary of the stored replies of each worker, in order of their names."""
        rows = self._execute(
            "SELECT worker, count(*), sum(usd), min(recorded), max(recorded) FROM replies "
            "GROUP BY worker ORDER BY worker"
        )
        return tuple(
            WorkerSummary(
                worker, number, usd, datetime.fromtimestamp(oldest, UTC), datetime.fromtimestamp(newest, UTC)
            )
            for worker, number, usd, oldest, newest in rows
        )

    def forget(self, older_than: datetime | None = None) -> int:
        """Delete the replies that were stored before `older_than`, and shrink the file. If that is None, delete all.
        Returns their number.

        Raises:
            StoreError: the file cannot be written, or another process locks it for half a minute.
        """
        where, values = ("", ()) if older_than is None else ("WHERE recorded < ?", (older_than.timestamp(),))
        some = f"DELETE FROM replies WHERE id IN (SELECT id FROM replies {where} LIMIT {_DELETED_AT_ONCE}) RETURNING id"
        deleted = 0
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_TIMEOUT_S)}")
        try:
            while rows := self._execute(some, *values):
                deleted += len(rows)
            while self._execute("PRAGMA freelist_count")[0][0]:
                self._execute(f"PRAGMA incremental_vacuum({_DELETED_AT_ONCE})")
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return deleted
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {_BLOCKING_MS}")

    def close(self) -> None:
        """Write replies that could not be written before, if that is possible now, and close the file."""
        with suppress(sqlite3.Error):  # The file may be closed already.
            for row in self._unwritten.values():
                self._db.execute(_INSERT, row).fetchall()
        self._unwritten.clear()
        self._db.close()

    async def _keep(self, key: bytes, *rest: Any) -> bytes | None:
        """Store a reply. If another process has stored a reply before, keep that reply and return it."""
        new = await self._execute_when_free(_INSERT, key, *rest)
        self._unwritten.pop(key, None)
        other = [] if new else await self._execute_when_free(_FIND, key)
        return other[0][0] if other else None

    async def _execute_when_free(self, statement: str, *values: Any) -> list[Any]:
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > until:
                    raise self._failure(error, statement) from error
            try:
                await asyncio.sleep(_PAUSE_S)
            except asyncio.CancelledError:
                # If it stores a reply, this is the last chance to store it, and the reply is paid for.
                with suppress(sqlite3.Error):
                    self._db.execute(statement, values).fetchall()
                raise

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error, statement) from error

    def _failure(self, error: sqlite3.Error, statement: str) -> StoreError:
        verb = "read" if statement.startswith("SELECT") else "written"
        way_out = _WAYS_OUT.get(error_code(error), "")
        return StoreError(f"The response cache {self.path} cannot be {verb} ({error}){way_out}.")


def request_key(identity: Mapping[str, Any], request: Request) -> bytes:
    """The key of a request to one worker: the SHA-256 of everything that can change the answer, as canonical JSON.

    Args:
        identity: the identity of the worker. If it has "seed": true, the worker sends the request's seed, and the seed
            is part of the key.
    """
    document: dict[str, Any] = {
        "format": _FORMAT,
        "identity": dict(identity),
        "messages": [
            message.model_dump(exclude_defaults=True)
            | {"content": _to_pieces(message.content, request.fence_mark)}
            for message in request.messages
        ],
        "repeat": request.duplicate_index,
        "sample": request.sample,
    }
    if options := request.options.model_dump(exclude_defaults=True):
        document["options"] = options
    if identity.get("seed") is True:
        document["seed"] = request.seed
    return sha256(_to_canonical_json(document)).digest()


def _to_pieces(text: str, fence_mark: str) -> list[str]:
    return text.split(fence_mark) if fence_mark else [text]


def _to_canonical_json(document: Mapping[str, Any]) -> bytes:
    # Halves of surrogate pairs, which UTF-8 cannot contain, stay as they are.
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


class _Entry(BaseModel, defer_build=True):
    """A reply in its stored form, whose text is cut into pieces. The schema is built when a cache is used."""

    reply: Reply


def _encode_reply(reply: Reply, fence_mark: str, seconds: float) -> bytes:
    """A reply as JSON. `seconds` is the wall time of the call. A latency that the reply claims replaces it."""
    entry = _Entry(reply=reply).model_dump(exclude_defaults=True, exclude={"reply": {"cached", "parameters"}})
    document = entry["reply"]
    document["text"] = _to_pieces(reply.text, fence_mark)
    document.setdefault("latency_s", round(seconds, 6))
    return _to_canonical_json(document)


def _decode_reply(written: bytes, fence_mark: str) -> Reply:
    """The stored reply, for a question with this fence mark. Its latency is that of the original call, so that a cached
    reply makes no plan look faster."""
    document = json.loads(written.decode("utf-8", "surrogatepass"))
    reply = document | {"text": fence_mark.join(document["text"]), "cached": True}
    return _Entry.model_validate({"reply": reply}).reply


def _as_cached(paid: Reply, kept: Reply) -> Reply:
    """The stored reply, with the cost and latency of the call that was just made."""
    return replace(
        kept,
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        latency_s=paid.latency_s,
        first_token_s=paid.first_token_s,
        cached=False,
    )
