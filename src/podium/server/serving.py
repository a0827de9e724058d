"""Runs the application on sockets, and ends it so that nothing is lost.

On SIGTERM or SIGINT no new question is taken and /readyz says 503; questions in flight end within the time that the
settings give, and the others are cancelled and recorded so. Sockets stay open until then, so that whoever balances
the load hears why. A second signal cuts short at once, a third ends the process.


@@One connection of a client: what uvicorn's has no limits for, a head that never ends and a client that says nothing.

What it is asked, and with what answer, is the application's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
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
"""Connections that may wait to be taken."""
_AFTERWARDS_S = 5.0
"""That cancelled questions are given to be recorded, and the last answers to be sent."""
_FOLLOWERS_S = 0.5
"""That those who only read are given to hear how it ends."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets on all addresses of `host`, with one port.

    Args:
        port: 0: a free one.

    Raises:
        UsageError: they cannot be listened on.
    """
    sockets: list[socket.socket] = []
    where = f"--host {host} --port {port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            taken = sockets[0].getsockname()[1] if sockets else port
            one = socket.create_server((address[0], taken), family=family, backlog=_BACKLOG)
            one.setblocking(False)
            sockets.append(one)
    except OSError as error:
        # A machine without IPv6 still has a localhost.
        if sockets and not isinstance(error, socket.gaierror):
            return sockets
        raise UsageError(
            f"{where}: it cannot be listened on ({error.strerror}); take another, or 0 for any free port."
        ) from error
    except (OverflowError, UnicodeError) as error:
        raise UsageError(f"{where}: there is no such place to listen on.") from error
    return sockets


def run(serving: Coroutine[Any, Any, bool]) -> bool:
    """Run it on the fastest event loop there is, with as many connections as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(serving)


async def serve(app: FastAPI, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> bool:
    """Serve until a signal says otherwise; whether all questions then had the time to end.

    Args:
        app: of `create_app`.
        sockets: as of `listen`; closed in the end.
        ready: called once requests are answered.
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
            timeout_graceful_shutdown=int(_AFTERWARDS_S),
        )
    )
    with _stop_signals() as (stop, hurry):
        running = asyncio.create_task(server.serve(list(sockets)))
        while not server.started and not running.done():  # noqa: ASYNC110 - uvicorn tells it in no other way
            await asyncio.sleep(0.01)
        if not running.done():
            # What was loaded until now stays to the end: looking through it for garbage took a twelfth of a question.
            gc.collect()
            gc.freeze()
            ready()
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        whole = await _drain(service, in_flight, hurry)
        server.should_exit = True
        await running
    return whole


async def _drain(service: Service, in_flight: InFlightRequests, hurry: asyncio.Event) -> bool:
    """Let questions end, or cut them short; whether none was."""
    in_flight.draining = True
    ended = asyncio.create_task(in_flight.wait_until_empty(in_flight.questions, service.running))
    hurried = asyncio.create_task(hurry.wait())
    seconds = service.settings.drain_seconds
    await asyncio.wait((ended, hurried), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    whole = ended.done()
    for task in (ended, hurried):
        task.cancel()
    in_flight.cancel(in_flight.questions)
    await _within(_AFTERWARDS_S, in_flight.wait_until_empty(in_flight.questions))
    await _within(_FOLLOWERS_S, in_flight.wait_until_empty(in_flight.reads))
    in_flight.cancel(in_flight.reads)
    await _within(_FOLLOWERS_S, in_flight.wait_until_empty(in_flight.reads))
    return whole


async def _within(seconds: float, waiting: Coroutine[Any, Any, None]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        pass


@contextmanager
def _stop_signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Two events: that it is to end, and that it is to end at once."""
    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()

    def tell() -> None:
        if hurry.is_set():
            os._exit(1)
        (hurry if stop.is_set() else stop).set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, tell)
    try:
        yield stop, hurry
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """Uvicorn's, which leaves signals to us, and closes connections that say nothing."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if counter % 50 == 0:
            close_idle(self.server_state)
        return await super().on_tick(counter)


_HEAD_BYTES = 128 * 2**10
"""Of one request's first line and headers, or of what else comes between two pieces of its body; the guards refuse
less than that in better words."""
_PIECE = 32 * 2**10
"""Bytes that are parsed at once; a head is measured to within as many."""
IDLE_S = 60.0
"""Without a request that is being answered, after which a connection is closed: as between requests, so in the
middle of a head, or of a body that nobody reads any more."""


class Connection(HttpToolsProtocol):
    """A connection that is closed when its head is too long, or by `close_idle`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head = 0
        self._passed = False
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._idle_since = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            self._passed = False
            super().data_received(piece)
            # A piece in which a head or a body's data ended may hold the next head, but no more of it than a piece.
            self._head = 0 if self._passed else self._head + len(piece)
            if self._head > _HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request's headers are too long.")

    def on_headers_complete(self) -> None:
        self._passed = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._passed = True
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def idle_s(self, now: float) -> float:
        """Seconds for which no request has been answered here."""
        if self.cycle is not None and not self.cycle.response_complete:
            return 0.0
        return now - self._idle_since


def close_idle(state: ServerState) -> None:
    """Close the connections that have been idle for too long."""
    now = asyncio.get_running_loop().time()
    for connection in tuple(state.connections):
        if isinstance(connection, Connection) and connection.idle_s(now) > IDLE_S:
            connection.transport.close()
