"""An OpenAI-compatible server on loopback that fails as its rules say and records every request.

    async with FaultServer("Four.", rules=[Rule(fault=Status(code=503), times=2)]) as server:
        ...  # ask the endpoint at server.url
    assert len(server.requests) == 3

For tests: it is no proxy, has no model, and only this machine can reach it.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from podium_testing.completion import AnswerFunction, AnswerLike, echo, error
from podium_testing.exchange import Exchange, Received
from podium_testing.port import HOST, Port, self_signed
from podium_testing.provider import FakeProvider
from podium_testing.rule import Rule

_LARGEST_REQUEST = 256 * 2**20
_UNTIL_CUT = 5.0
"""Seconds that a cancelled answer has to end."""


class FaultServer(AbstractAsyncContextManager["FaultServer", None]):
    """Serves POST /v1/chat/completions, streamed or not, and GET /v1/models.

    It runs inside `async with`, and only once.
    """

    def __init__(
        self,
        answer: AnswerLike | AnswerFunction = echo,
        *,
        models: Mapping[str, AnswerLike | AnswerFunction] | Collection[str] | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
        rules: Sequence[Rule] = (),
        keys: Collection[str] | None = None,
        rpm: int | None = None,
        tpm: int | None = None,
        minute: float = 60.0,
        seed: str = "faults",
        tls: bool = False,
        port: int = 0,
    ) -> None:
        """Keep the settings. Entering the server starts it.

        Args:
            answer: the answer of every model that has none in `models`: a text, an `Answer`, or a callable, async or
                not, that gets messages and body and returns one of these. If it raises an exception, the reply is a
                500, and the server raises the exception again when it ends.
            models: the names of the models, or an answer for each name. Any other model gets a 404. By default every
                name is known.
            prices: dollars per million tokens of some models, for input and for output, as GET /models says them.
            rules: the faults of chat completions; the first rule that gives its fault decides.
            keys: the API keys that are accepted; any other gets a 401. Without them, no key is needed.
            rpm, tpm: the most requests and tokens a minute of each model. A request beyond them gets a 429 with the
                seconds to wait. None sets no limit.
            minute: how many seconds such a minute has.
            seed: seeds the draws of rules with a share.
            tls: whether to serve https, with a new self-signed certificate; needs the openssl program.
            port: the port. 0 takes a free one.
        """
        self._provider = FakeProvider(
            answer,
            models=models,
            prices=prices or {},
            rules=rules,
            keys=keys,
            limits=(rpm, tpm, minute),
            seed=seed,
        )
        self._tls = tls
        self._wanted_port = port
        self._port: Port | None = None
        self._http: web.Server | None = None
        self._stack = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._exchanges: list[Exchange] = []
        self._failure: Exception | None = None
        self._silent = True
        """Whether the server is down or ends, so that it cuts requests that still arrive."""
        self.certificate: Path | None = None
        """With `tls`, while the server runs: the file (PEM) of its certificate, which a client can trust."""
        self.in_flight = 0
        """Requests that have arrived and not ended."""
        self.peak = 0
        """The most requests that were in flight at one moment."""

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise RuntimeError("A FaultServer runs once; make another.")
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        context = None
        if self._tls:
            context, self.certificate = await self._stack.enter_async_context(self_signed())
        self._http = web.Server(
            self._serve, request_factory=self._request, handler_cancellation=True, access_log=None
        )
        try:
            self._port = Port(self._wanted_port, self._http, context)
        except OSError:
            await self._stack.aclose()
            raise
        self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._port is not None
        assert self._http is not None
        self._silent = True
        self._port.close()
        try:
            async with asyncio.timeout(_UNTIL_CUT):
                while self.in_flight or self._http.connections or self._port.has_pending:
                    self._cut()
                    await asyncio.sleep(0)
                # A transport closes its socket in the loop's next turn.
                await asyncio.sleep(0)
        except TimeoutError:
            raise RuntimeError("An answer of the FaultServer was cancelled and still runs.") from problem
        finally:
            await self._http.shutdown(0)
            await self._stack.aclose()
        if self._failure is not None and kind is None:
            raise self._failure

    def in_thread(self) -> AbstractContextManager[FaultServer]:
        """Run it in a thread of its own: `with FaultServer(...).in_thread() as server`."""
        return in_thread(self)

    @property
    def url(self) -> str:
        """The address for a team file's `base_url`."""
        return f"{'https' if self._tls else 'http'}://{HOST}:{self.port}/v1"

    @property
    def https_url(self) -> str:
        """The same address with https. Without `tls` the server does not speak TLS, and every handshake fails."""
        return f"https://{HOST}:{self.port}/v1"

    @property
    def port(self) -> int:
        """The port, also while it is down."""
        return self._running_port().number

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The server's rules. Setting them, also while it runs, begins their counts and draws anew."""
        return self._provider.active.rules

    @rules.setter
    def rules(self, rules: Iterable[Rule]) -> None:
        self._provider.set_rules(tuple(rules))

    @property
    def connections(self) -> int:
        """How many connections are open."""
        assert self._http is not None
        return len(self._http.connections)

    @property
    def requests(self) -> tuple[Received, ...]:
        """A record of each request so far, in order of arrival."""
        return tuple(exchange.record() for exchange in tuple(self._exchanges))

    async def wait_until_idle(self) -> None:
        """Wait until no request is in flight. Can be called in any event loop."""
        while self.in_flight:  # noqa: ASYNC110 - an event belongs to one loop
            await asyncio.sleep(0.005)

    async def wait_for_requests(self, number: int) -> None:
        """Wait until this many requests have arrived, refused ones included. Can be called in any event loop."""
        while len(self._exchanges) < number:  # noqa: ASYNC110 - an event belongs to one loop
            await asyncio.sleep(0.001)

    def down(self) -> None:
        """Cut all connections and refuse new ones, as if the server's process had ended."""
        self._change(self._running_port().refuse, silent=True)

    def deaf(self) -> None:
        """Cut all connections and let new ones hang before they open, as if the server's machine were gone."""
        self._change(self._running_port().hang, silent=True)

    def up(self) -> None:
        """Accept connections again, at the same address."""
        self._change(self._running_port().take, silent=False)

    def _change(self, act: Callable[[], None], *, silent: bool) -> None:
        def change() -> None:
            self._silent = silent
            act()
            if silent:
                self._cut()

        if threading.get_ident() == self._thread:
            change()
            return
        done: Future[None] = Future()

        def carry() -> None:
            try:
                change()
            except BaseException as problem:
                done.set_exception(problem)
            else:
                done.set_result(None)

        assert self._loop is not None
        self._loop.call_soon_threadsafe(carry)
        done.result()

    def _running_port(self) -> Port:
        if self._port is None:
            raise RuntimeError(
                "A FaultServer has an address once it is entered: async with FaultServer() as server."
            )
        return self._port

    def _cut(self) -> None:
        assert self._http is not None
        for connection in self._http.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        exchange = Exchange(request, len(self._exchanges))
        self._exchanges.append(exchange)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            if self._silent:
                exchange.reset()
                await asyncio.sleep(math.inf)
            await self._provider.serve(exchange)
        except asyncio.CancelledError:
            self._note_cut(exchange)
            raise
        except Exception as problem:
            if isinstance(problem, ConnectionError) and exchange.failure is None:
                self._note_cut(exchange)
                # aiohttp would log any other exception; it raises this one itself if it sees the disconnection first.
                raise asyncio.CancelledError from problem
            self._failure = self._failure or problem
            if exchange.begun:
                exchange.hang_up()
                raise asyncio.CancelledError from problem
            await exchange.send_json(error(f"The answer raised {problem!r}.", "server_error"), code=500)
        finally:
            exchange.ended_at = time.monotonic()
            self.in_flight -= 1
        assert exchange.response is not None
        return exchange.response

    def _note_cut(self, exchange: Exchange) -> None:
        if self._silent:
            exchange.fault = exchange.fault or "down"
        elif not exchange.cut_by_us:
            exchange.gone_at = time.monotonic()

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        # aiohttp's own limit is a megabyte, and a long context has more.
        loop = asyncio.get_running_loop()
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_REQUEST
        )


S = TypeVar("S")


@contextmanager
def in_thread(server: AbstractAsyncContextManager[S, None]) -> Iterator[S]:
    """Run `server` in a thread until the block ends. An exception of its start or end is raised here."""
    started: Future[tuple[S, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def life() -> None:
        async with server as entered:
            stop = asyncio.Event()
            started.set_result((entered, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(life())
        except BaseException as problem:
            (ended if started.done() else started).set_exception(problem)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="podium-testing", daemon=True)
    thread.start()
    entered, loop, stop = started.result()
    try:
        yield entered
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    ended.result()
