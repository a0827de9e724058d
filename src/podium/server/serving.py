"""Runs the application on sockets, and shuts it down without losing a question.

On SIGTERM or SIGINT the server takes no new questions and /readyz answers 503. Running questions have the configured
time to end. Then they are cancelled and recorded as cancelled. Sockets stay open until then, so that a load balancer
gets the 503. A second signal cancels at once, a third kills the process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.errors import UsageError
from podium.server.in_flight import InFlightRequests
from podium.server.service import Service

if TYPE_CHECKING:
    from uvicorn.server import ServerState

_BACKLOG = 2048
"""The most connections that wait to be accepted."""
_CLEAN_UP_S = 5.0
"""Seconds for cancelled questions to be recorded and the last answers to be sent."""
_READERS_S = 0.5
"""Seconds in which requests that only read receive the last events."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HEAD_BYTES = 128 * 2**10
"""The most bytes of one request's first line and headers, or between two pieces of its body. For a smaller excess, the
middleware has a better message."""
_PIECE_BYTES = 32 * 2**10
"""The most bytes that are parsed at once. The size of a head is measured in these units."""
_NEW_OBJECTS = 50_000
"""New objects after which Python looks for cycles of garbage. Questions leave no cycles, and with Python's default of
700, looking for them took a tenth of the time."""
IDLE_S = 60.0
"""Seconds after which a connection without a running request is closed: between requests, within a head, or within a
body that is no longer read."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on all addresses of `host`, on one port.

    Args:
        port: 0 means any free port.

    Raises:
        UsageError: the address cannot be used.
    """
    sockets: list[socket.socket] = []
    where = f"--host {host} --port {port}"
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(addresses):
            taken = sockets[0].getsockname()[1] if sockets else port
            listener = socket.create_server((address[0], taken), family=family, backlog=_BACKLOG)
            listener.setblocking(False)
            sockets.append(listener)
    except OSError as error:
        # On a machine without IPv6, localhost still has an IPv4 address.
        if sockets and not isinstance(error, socket.gaierror):
            return sockets
        raise UsageError(
            f"{where}: the server cannot listen there ({error.strerror}); take another port, or 0 for any free one."
        ) from error
    except (OverflowError, UnicodeError) as error:
        raise UsageError(f"{where}: this is not an address to listen on.") from error
    return sockets


async def serve_app(
    app: FastAPI, sockets: Sequence[socket.socket], ready: Callable[[], None], parent: Pipe | None = None
) -> bool:
    """Serve until a signal stops the server. Returns whether all running questions ended in time.

    Args:
        app: the application, from `create_app`.
        sockets: the sockets, from `listen`. They are closed at the end.
        ready: called once the server answers requests.
        parent: the pipe to the parent of `process_group`. None if this is the only process.
    """
    service: Service = app.state.service
    in_flight: InFlightRequests = app.state.in_flight
    server = _Server(
        uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=int(_CLEAN_UP_S),
        )
    )
    with _stop_signals(parent) as (stop, stop_at_once):
        running = asyncio.create_task(server.serve(list(sockets)))
        while not server.started and not running.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        if not running.done():
            # Modules and pools stay until the end; scanning them for garbage took a twelfth of a question's time.
            gc.collect()
            gc.freeze()
            gc.set_threshold(_NEW_OBJECTS)
            ready()
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        in_time = await _drain(service, in_flight, stop_at_once)
        server.should_exit = True
        await running
    return in_time


async def _drain(service: Service, in_flight: InFlightRequests, stop_at_once: asyncio.Event) -> bool:
    """Wait for questions to end, then cancel the rest. Returns whether none was cancelled.

    Questions that still run in the background are cancelled when the application ends.
    """
    in_flight.draining = True
    waiting = in_flight.wait_until_empty(in_flight.questions, service.event_logs.running)
    ended = asyncio.create_task(waiting)
    urgent = asyncio.create_task(stop_at_once.wait())
    seconds = service.settings.serve.drain
    await asyncio.wait((ended, urgent), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    in_time = ended.done()
    for task in (ended, urgent):
        task.cancel()
    in_flight.cancel(in_flight.questions)
    await _wait_at_most(_CLEAN_UP_S, in_flight.wait_until_empty(in_flight.questions))
    await _wait_at_most(_READERS_S, in_flight.wait_until_empty(in_flight.reads))
    in_flight.cancel(in_flight.reads)
    await _wait_at_most(_READERS_S, in_flight.wait_until_empty(in_flight.reads))
    return in_time


async def _wait_at_most(seconds: float, waiting: Coroutine[Any, Any, None]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(waiting, seconds)


@contextmanager
def _stop_signals(parent: Pipe | None) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Two events: the first signal sets the first, which asks to stop, and the second signal sets the second, which
    asks to stop at once. A third signal kills the process.

    The end of a parent sets the first too.
    """
    loop = asyncio.get_running_loop()
    stop, stop_at_once = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if stop_at_once.is_set():
            os._exit(1)
        (stop_at_once if stop.is_set() else stop).set()

    def on_parent_end(pipe: Pipe) -> None:
        loop.remove_reader(pipe.fileno())
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    if parent is not None:
        loop.add_reader(parent.fileno(), on_parent_end, parent)
    try:
        yield stop, stop_at_once
    finally:
        if parent is not None:
            loop.remove_reader(parent.fileno())
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """Uvicorn's server, without its signal handlers, and with idle connections closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if counter % 50 == 0:
            close_idle(self.server_state)
        return await super().on_tick(counter)


class Connection(HttpToolsProtocol):
    """A client's connection. Unlike uvicorn's own, it is closed when a head is too long, or by `close_idle`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0
        self._head_ended = False
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._idle_since = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE_BYTES):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE_BYTES]
            self._head_ended = False
            super().data_received(piece)
            # A piece that ends a head or a body may also begin the next head, which then is shorter than a piece.
            self._head = 0 if self._head_ended else self._head + len(piece)
            if self._head > _HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request's headers are too long.")

    def on_headers_complete(self) -> None:
        self._head_ended = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_ended = True
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def idle_s(self, now: float) -> float:
        """Seconds since the last response ended. 0 while a response is being made."""
        if self.cycle is not None and not self.cycle.response_complete:
            return 0.0
        return now - self._idle_since


def close_idle(state: ServerState) -> None:
    """Close the connections that have been idle for more than `IDLE_S`."""
    now = asyncio.get_running_loop().time()
    for connection in tuple(state.connections):
        if isinstance(connection, Connection) and connection.idle_s(now) > IDLE_S:
            connection.transport.close()
