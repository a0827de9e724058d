"""Requests that are running: their time limit, and their end when the server shuts down.

`RequestTimeLimit` is the middleware that counts requests into `InFlightRequests`. `serving` waits for them and cancels
them when the server drains; health checks and metrics read them.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import send_error, to_body, took_too_long
from podium.server.streaming import FAIL_KEY, sse_event

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that neither ask a question nor change anything."""
_POLL_S = 0.02
_RETRY_AFTER_S = 5


class InFlightRequests:
    """The running requests, in two groups: those that ask a question and those that only read. It belongs to one event
    loop."""

    def __init__(self) -> None:
        self.draining = False
        """Whether the server is shutting down and takes no more questions."""
        self.questions: set[asyncio.Task[object]] = set()
        """Tasks of requests that ask or change something (POST, DELETE)."""
        self.reads: set[asyncio.Task[object]] = set()
        """Tasks of requests that only read. They may follow a question for as long as it runs."""
        self._cancelled: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self.questions) + len(self.reads)

    def begin(self, *, is_question: bool) -> asyncio.Task[object]:
        """Add the current task and return it, for `end`."""
        task = asyncio.current_task()
        assert task is not None
        (self.questions if is_question else self.reads).add(task)
        return task

    def end(self, task: asyncio.Task[object]) -> None:
        """Remove a request that was answered."""
        self.questions.discard(task)
        self.reads.discard(task)
        self._cancelled.discard(task)

    def was_cancelled(self, task: asyncio.Task[object]) -> bool:
        """Whether `cancel` cancelled this task."""
        return task in self._cancelled

    def cancel(self, tasks: set[asyncio.Task[object]]) -> None:
        """Cancel each task only once, since a second cancellation would interrupt the clean-up of the first."""
        for task in tasks - self._cancelled:
            self._cancelled.add(task)
            task.cancel()

    async def wait_until_empty(self, *groups: set[asyncio.Task[object]] | set[str]) -> None:
        """Wait until all of these groups are empty."""
        while any(groups):  # noqa: ASYNC110 - many places change them, and only the shutdown waits
            await asyncio.sleep(_POLL_S)


class TrackedSend:
    """Forwards a response, tracks whether it has begun and ended, and can end it with an error."""

    __slots__ = ("_ended", "_headers", "_send")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._headers: dict[bytes, bytes] | None = None
        """The headers of the response. None if it has not begun."""
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._headers = dict(message["headers"])
        elif not message.get("more_body"):
            self._ended = True
        await self._send(message)

    async def end_with(self, error: APIError, scope: Scope, receive: Receive) -> None:
        """End the response with `error`. If no response has begun, the error is the whole response. In a stream, it is
        the last event.

        Any other response stays unfinished, which shows its reader that it is incomplete.
        """
        if self._headers is None:
            await send_error(error, scope, receive, self._send)
        elif self._headers.get(b"content-type", b"").startswith(b"text/event-stream") and not self._ended:
            fail = scope.get(FAIL_KEY)
            content = sse_event(to_body(error)) if fail is None else fail(error)
            await self._send({"type": "http.response.body", "body": content, "more_body": False})


class RequestTimeLimit:
    """Middleware: counts requests into `in_flight`, and cancels a question after `seconds`."""

    def __init__(self, app: ASGIApp, in_flight: InFlightRequests, seconds: float) -> None:
        self._app = app
        self._in_flight = in_flight
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_question = scope["method"] not in SAFE_METHODS
        if is_question and self._in_flight.draining:
            await send_error(_shutting_down("takes no new questions"), scope, receive, send)
            return
        tracked = TrackedSend(send)
        limit = asyncio.timeout(self._seconds if is_question else None)
        task = self._in_flight.begin(is_question=is_question)
        try:
            async with limit:
                await self._app(scope, receive, tracked)
        except TimeoutError:
            if not limit.expired():
                raise
            await tracked.end_with(took_too_long(self._seconds, "cancelled"), scope, receive)
        except asyncio.CancelledError:
            if not self._in_flight.was_cancelled(task):
                raise
            task.uncancel()
            if is_question:
                await tracked.end_with(_shutting_down("did not wait for this one"), scope, receive)
        finally:
            self._in_flight.end(task)


def _shutting_down(what: str) -> APIError:
    return APIError(
        503,
        "server_error",
        f"The server is shutting down and {what}; ask again in a moment.",
        code="server_ending",
        headers={"Retry-After": str(_RETRY_AFTER_S), "Connection": "close"},
    )
