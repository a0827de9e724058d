"""The requests under way, and whether more questions are taken: what draining a server waits for and cuts short.

Filled by `guards.clock`, emptied by `serving`, shown by `health` and `metrics`. Knows nothing of HTTP.


@@How a guard answers in place of the application, before an answer has begun or in the middle of one.

@@How long a request may take, and its end where the server ends.

What is cut here is cancelled, and so recorded; its caller is told.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import refuse, to_body
from podium.server.host_check import SAFE_METHODS
from podium.server.streaming import sse_event

_LOOK_S = 0.02


class InFlightRequests:
    """Requests by what they are for. Belongs to one event loop."""

    def __init__(self) -> None:
        self.draining = False
        """Whether no further question is taken, because the server is about to end."""
        self.questions: set[asyncio.Task[object]] = set()
        """Tasks of requests that ask or change something."""
        self.reads: set[asyncio.Task[object]] = set()
        """Tasks of requests that only read, which may follow a question for as long as it runs."""
        self._cancelled: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self.questions) + len(self.reads)

    def begin(self, *, asks: bool) -> asyncio.Task[object]:
        """Count the running task as one of these; to be given to `end`."""
        task = asyncio.current_task()
        assert task is not None
        (self.questions if asks else self.reads).add(task)
        return task

    def end(self, task: asyncio.Task[object]) -> None:
        """It is answered."""
        self.questions.discard(task)
        self.reads.discard(task)
        self._cancelled.discard(task)

    def was_cancelled(self, task: asyncio.Task[object]) -> bool:
        """Whether it was cancelled by `cancel`."""
        return task in self._cancelled

    def cancel(self, tasks: set[asyncio.Task[object]]) -> None:
        """Cancel these, once: a second cancellation would disturb what the first one set off."""
        for task in tasks - self._cancelled:
            self._cancelled.add(task)
            task.cancel()

    async def wait_until_empty(
        self, *groups: set[asyncio.Task[object]] | dict[str, asyncio.Task[object]]
    ) -> None:
        """Wait until all of these are empty."""
        while any(groups):  # noqa: ASYNC110 - they change in many places, and this is waited for once in a life
            await asyncio.sleep(_LOOK_S)


class TrackedSend:
    """Remembers of an answer whether it has begun and ended, and can end it with a complaint.

    Args:
        send: where it goes.
    """

    __slots__ = ("_ended", "_events", "_send", "begun")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self._events = False
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._events = any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message["headers"]
            )
        elif not message.get("more_body"):
            self._ended = True
        await self._send(message)

    async def break_off(self, error: APIError, scope: Scope, receive: Receive) -> None:
        """End with `error`: as the answer, if none has begun, or as the last event of a stream.

        Any other answer stays without its end, by which its reader knows that it is not whole.
        """
        if not self.begun:
            await refuse(error, scope, receive, self._send)
        elif self._events and not self._ended:
            told = sse_event(to_body(error))
            await self._send({"type": "http.response.body", "body": told, "more_body": False})


_AGAIN_S = 5


class RequestTimeLimit:
    """Counts requests into `in_flight`, and gives those that ask something `seconds`."""

    def __init__(self, app: ASGIApp, in_flight: InFlightRequests, seconds: float) -> None:
        self._app = app
        self._in_flight = in_flight
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asks = scope["method"] not in SAFE_METHODS
        if asks and self._in_flight.draining:
            await refuse(_ending("takes no new questions"), scope, receive, send)
            return
        sending = TrackedSend(send)
        limit = asyncio.timeout(self._seconds if asks else None)
        task = self._in_flight.begin(asks=asks)
        try:
            async with limit:
                await self._app(scope, receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
            await sending.break_off(self._late(), scope, receive)
        except asyncio.CancelledError:
            if not self._in_flight.was_cancelled(task):
                raise
            task.uncancel()
            if asks:
                await sending.break_off(_ending("did not wait for this one"), scope, receive)
        finally:
            self._in_flight.end(task)

    def _late(self) -> APIError:
        return APIError(
            504,
            "timeout_error",
            f"There is no answer after {self._seconds:g} s, and what was done is recorded as cancelled: ask for less, "
            "or have the server started with a longer --timeout.",
            code="request_timeout",
        )


def _ending(what: str) -> APIError:
    return APIError(
        503,
        "server_error",
        f"The server is ending and {what}; ask again in a moment.",
        code="server_ending",
        headers={"Retry-After": str(_AGAIN_S), "Connection": "close"},
    )
