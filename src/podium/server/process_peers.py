"""Lets the processes of one server ask each other for metrics or a question's events, or to write traces.

Each process listens on a Unix socket in the private folder of the group. A request is one line of JSON. The reply is
everything until the connection ends, and it is empty if the process has nothing to say. Callers check keys before they
ask. Each part of the server that answers such requests adds itself to `ProcessPeers.handlers`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from podium.errors import StoreError, UsageError
from podium.server.streaming import Write
from podium.store import TraceStore

PeerHandler = Callable[[dict[str, Any], Write], Awaitable[None]]
"""A function that writes the reply to a request with these arguments."""
_WAIT_S = 2.0
"""Seconds that a process may take for a whole reply, or to begin a streamed reply."""
_PIECE_BYTES = 64 * 2**10


class ProcessPeers:
    """The other processes of the server, and the answers of this process to them. It is a context manager, and answers
    while it is open.

    Args:
        folder: a folder only for this group.
        number: the number of this process, from 0.
        process_count: the number of processes in the group.
    """

    def __init__(self, folder: Path, number: int, process_count: int) -> None:
        self.number = number
        self.handlers: dict[str, PeerHandler] = {}
        """The functions that answer the requests of peers, by the name of the request."""
        self._own_socket = folder / f"{number}.sock"
        self._peer_sockets = {
            other: folder / f"{other}.sock" for other in range(process_count) if other != number
        }
        self._server: asyncio.Server | None = None
        self._handling: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._own_socket.unlink(missing_ok=True)  # This is the socket of the process that this one replaces.
        try:
            self._server = await asyncio.start_unix_server(self._accept, self._own_socket)
        except OSError as error:  # The path of a socket may have about 100 characters.
            raise UsageError(
                f"The processes of the server cannot use {self._own_socket} ({error}); set TMPDIR to a shorter path."
            ) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._handling:
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)

    async def ask(self, name: str, **arguments: Any) -> dict[int, bytes]:
        """The replies of the other processes, by number. Processes that do not reply in time are left out."""

        async def ask_peer(path: Path) -> bytes:
            async with asyncio.timeout(_WAIT_S):
                return b"".join([piece async for piece in _read_reply(path, name, arguments)])

        replies = await asyncio.gather(*map(ask_peer, self._peer_sockets.values()), return_exceptions=True)
        return {
            number: reply
            for number, reply in zip(self._peer_sockets, replies, strict=True)
            if isinstance(reply, bytes)
        }

    async def stream(self, name: str, **arguments: Any) -> AsyncGenerator[bytes]:
        """The reply of the first process that replies, piece by piece."""
        for path in self._peer_sockets.values():
            async with aclosing(_read_reply(path, name, arguments)) as pieces:
                try:
                    async with asyncio.timeout(_WAIT_S):
                        first = await anext(pieces, b"")
                    if first:
                        yield first
                        async for piece in pieces:
                            yield piece
                        return
                except (OSError, TimeoutError):
                    continue

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)

        async def write(piece: bytes) -> None:
            writer.write(piece)
            await writer.drain()

        try:
            request = json.loads(await reader.readline())
            handler = self.handlers.get(request["name"])
            if handler is not None:
                await handler(request["arguments"], write)
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # The other process has gone away, or this process is ending.
        finally:
            self._handling.discard(task)
            writer.close()


def flush_peers_before_reads(store: TraceStore, peers: ProcessPeers) -> None:
    """Let each process read the traces of all processes. If it does not find a trace, the others first write those that
    still wait."""
    loop = asyncio.get_running_loop()

    async def flush(_: object, write: Write) -> None:
        with suppress(StoreError):
            await store.to_thread(store.flush)
        await write(b"written")

    def flush_elsewhere() -> None:
        with suppress(TimeoutError):  # A loop that ends answers nobody.
            asyncio.run_coroutine_threadsafe(peers.ask("flush"), loop).result(2 * _WAIT_S)

    peers.handlers["flush"] = flush
    store.flush_elsewhere = flush_elsewhere


async def _read_reply(path: Path, name: str, arguments: dict[str, Any]) -> AsyncGenerator[bytes]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(json.dumps({"name": name, "arguments": arguments}).encode() + b"\n")
        while piece := await reader.read(_PIECE_BYTES):
            yield piece
    finally:
        writer.close()
