"""How long a request may take, and its end where the server ends.

What is cut here is cancelled, and so recorded; its caller is told.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from podium.errors import APIError
from podium.server.guards.host_check import SAFE
from podium.server.guards.refusal import Sending, refuse
from podium.server.traffic import Traffic

_AGAIN_S = 5


class Clock:
    """Counts requests into `traffic`, and gives those that ask something `seconds`."""

    def __init__(self, app: ASGIApp, traffic: Traffic, seconds: float) -> None:
        self._app = app
        self._traffic = traffic
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asks = scope["method"] not in SAFE
        if asks and self._traffic.draining:
            await refuse(_ending("takes no new questions"), scope, receive, send)
            return
        sending = Sending(send)
        limit = asyncio.timeout(self._seconds if asks else None)
        task = self._traffic.begin(asks=asks)
        try:
            async with limit:
                await self._app(scope, receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
            await sending.break_off(self._late(), scope, receive)
        except asyncio.CancelledError:
            if not self._traffic.was_cut(task):
                raise
            task.uncancel()
            if asks:
                await sending.break_off(_ending("did not wait for this one"), scope, receive)
        finally:
            self._traffic.end(task)

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
