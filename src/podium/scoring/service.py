"""A `ScoringSession` behind HTTP: one set of limits, cache and budget for all ranks, environments and notebooks.

    POST /prompt    takes a `RolloutRequest`; returns the messages of the next prompt (null: no further round)
    POST /score     takes a `RolloutRequest`; returns a `Score`
    GET /health     returns a `SessionInfo`

Everything is JSON, and an error is an `ErrorReply`. If a client disconnects, its rollout still runs to its end, because
its calls are paid for. A client that repeats the request gets the result. The session has all state, and the service
knows only the running requests.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from podium.errors import BudgetExceededError, ConfigError, PodiumError, ServiceError, UsageError
from podium.scoring.protocol import SETTINGS_HEADER, ErrorReply, RolloutRequest
from podium.scoring.session import ScoringSession
from podium.types import Message

DRAIN_S = 30.0
"""Seconds that running rollouts get to end when the service shuts down."""
_LAST_ANSWERS_S = 5.0
"""Seconds that the last scores get to be sent."""
_LARGEST_REQUEST = 16 * 2**20
_BACKLOG = 2048
"""How many connections may wait to be accepted, since a whole batch may come at once."""
_LOCAL = ("127.0.0.1", "::1", "localhost")
"""The names under which this machine reaches itself."""
_STATUSES: tuple[tuple[type[PodiumError], int], ...] = (
    (BudgetExceededError, 402),
    (UsageError, 400),
    (PodiumError, 503),
)
"""The HTTP status of each error of the session. The client repeats a request that gets 500 or above."""
_PROMPT = TypeAdapter(tuple[Message, ...] | None)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScoringService:
    """The routes over one session.

    Args:
        key: the bearer token that requests must have. If it is None, requests must come from this machine.
        flush: returns once the session's traces are on disk. It is called in a thread before a score is sent.
    """

    def __init__(
        self, session: ScoringSession, *, key: str | None = None, flush: Callable[[], None] = lambda: None
    ) -> None:
        self._session = session
        self._key = key
        self._flush = flush
        self._digest = session.info.digest
        self._running: dict[tuple[str, RolloutRequest], asyncio.Task[str]] = {}
        """The running work, by path and request. Equal requests share one task."""
        self._draining = False

    def application(self) -> web.Application:
        """The aiohttp application with the routes."""
        app = web.Application(client_max_size=_LARGEST_REQUEST, middlewares=[self._guarded])
        app.router.add_post("/prompt", self._prompt)
        app.router.add_post("/score", self._score)
        app.router.add_get("/health", self._health)
        return app

    async def drain(self, seconds: float) -> bool:
        """Refuse new requests, wait for running ones, and cancel the rest. Returns whether all ended in time."""
        self._draining = True
        running = set(self._running.values())
        if running:
            _, running = await asyncio.wait(running, timeout=seconds)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return not running

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check the key and the settings, and answer every error with an `ErrorReply`."""
        try:
            if (refusal := self._refusal(request)) is not None:
                return _refuse(*refusal)
            return await handler(request)
        except web.HTTPException as error:  # The path is unknown, or the body is too large.
            return _refuse(UsageError(f"{request.method} {request.path}: {error.reason}."), error.status)
        except PodiumError as error:
            return _refuse(error, next(status for kind, status in _STATUSES if isinstance(error, kind)))
        except Exception:
            logging.getLogger(__name__).exception("%s failed", request.path)
            return _refuse(ServiceError("The scoring service has an internal error; its log says more."), 500)

    def _refusal(self, request: web.Request) -> tuple[PodiumError, int] | None:
        """Why a request is refused before any work on it, and the HTTP status. None if it is not refused."""
        if self._key is None:
            # A web page in a browser must not spend money. It cannot name this machine in its Host header.
            if URL(f"http://{request.host}").host not in _LOCAL:
                return UsageError(f"The scoring service is not at {request.host}."), 421
        elif not hmac.compare_digest(
            request.headers.get("Authorization", "").encode(errors="surrogateescape"),
            f"Bearer {self._key}".encode(),
        ):
            return UsageError(
                "The scoring service refuses the key; give the one that it was started with."
            ), 401
        expected = request.headers.get(SETTINGS_HEADER, self._digest)
        if expected != self._digest:
            return ConfigError(
                f"The scoring service scores by settings {self._digest}, and this run by {expected}: start both "
                "with the same configuration file and overrides."
            ), 409
        if self._draining:
            return ServiceError("The scoring service is shutting down; send the request again later."), 503
        return None

    async def _prompt(self, request: web.Request) -> web.Response:
        async def write(rollout: RolloutRequest) -> str:
            return _PROMPT.dump_json(await self._session.prompt(rollout)).decode()

        return await self._once(request, write)

    async def _score(self, request: web.Request) -> web.Response:
        async def run(rollout: RolloutRequest) -> str:
            score = await self._session.score(rollout)
            await asyncio.to_thread(self._flush)
            return score.model_dump_json()

        return await self._once(request, run)

    async def _health(self, request: web.Request) -> web.Response:
        return _json(self._session.info.model_dump_json())

    async def _once(
        self, request: web.Request, work: Callable[[RolloutRequest], Awaitable[str]]
    ) -> web.Response:
        """Reply with the result of `work`. If an equal request is still running, wait for its result instead."""
        call = (request.path, await _read(request))
        task = self._running.get(call)
        if task is None:

            async def run() -> str:
                try:
                    return await work(call[1])
                finally:
                    del self._running[call]

            task = self._running[call] = asyncio.create_task(run())
        return _json(await asyncio.shield(task))


@asynccontextmanager
async def serve_session(
    session: ScoringSession,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    key: str | None = None,
    flush: Callable[[], None] = lambda: None,
    drain_s: float = DRAIN_S,
    on_cancelled: Callable[[], None] = lambda: None,
) -> AsyncIterator[str]:
    """Serve a session while the block runs. Yields the service's address, such as "http://127.0.0.1:PORT".

    When the block ends, wait `drain_s` seconds for the running rollouts; after an error, cancel them at once.

    Args:
        host: the address to listen on. Any address but this machine's own needs a key.
        port: the port to listen on. 0 takes a free port.
        key, flush: as for `ScoringService`.
        on_cancelled: called when rollouts had to be cancelled.

    Raises:
        UsageError: the service cannot listen on the address, or the address needs a key.
    """
    if key is None and host not in _LOCAL:
        raise UsageError(
            f"A scoring service at {host} can be reached by others: give it a key, or listen on 127.0.0.1."
        )
    service = ScoringService(session, key=key, flush=flush)
    runner = web.AppRunner(service.application(), access_log=None, shutdown_timeout=_LAST_ANSWERS_S)
    await runner.setup()
    seconds = 0.0
    try:
        site = web.TCPSite(runner, host, port, backlog=_BACKLOG)
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"{host}, port {port}, cannot be listened on ({why}); take another, or 0 for any free port."
            ) from error
        yield str(URL.build(scheme="http", host=host, port=runner.addresses[0][1]))
        seconds = drain_s
    finally:
        if not await service.drain(seconds):
            on_cancelled()
        await runner.cleanup()


async def _read(request: web.Request) -> RolloutRequest:
    # Any web page in a browser could send another type of content.
    if request.content_type != "application/json":
        raise UsageError(f"{request.path} takes JSON; send it with Content-Type: application/json.")
    try:
        return RolloutRequest.model_validate_json(await request.read())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "The body"
        raise UsageError(f"This is no rollout to score: {where}: {first['msg']}.") from None


def _json(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json")


def _refuse(error: PodiumError, status: int) -> web.Response:
    return _json(ErrorReply.of(error).model_dump_json(), status)
