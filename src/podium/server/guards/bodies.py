"""The bodies of requests: not too large, too slow, too deep or of too many values; counted while they come.

A route reads a body when it knows who asks, and finds it whole, or is stopped by a `APIError`. What comes after a
refusal is thrown away by the server, so that its sender gets to read why.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import invalid
from podium.server.attendance import left
from podium.server.guards.host_check import SAFE
from podium.server.guards.refusal import refuse
from podium.server.guards.shape import Shape

_DIGITS = 19


class Bodies:
    """Hands each body to the application in one piece.

    Args:
        most_bytes: of a body.
        most_seconds: from when the application asks for it until it is whole.
        most_depth: lists and objects within one another.
        most_values: in all lists and objects together.
    """

    def __init__(
        self, app: ASGIApp, most_bytes: int, most_seconds: float, most_depth: int, most_values: int
    ) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._most_depth = most_depth
        self._most_values = most_values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE:
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        digits = declared.lstrip(b"0") if declared.isdigit() else b""
        if len(digits) > _DIGITS or int(digits or b"0") > self._most_bytes:
            await refuse(self._too_large(), scope, receive, send)
            return
        whole = False

        async def read() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            message = await self._whole(receive)
            whole = True
            return message

        await self._app(scope, read, send)

    async def _whole(self, receive: Receive) -> Message:
        pieces = []
        size = 0
        shape = Shape()
        limit = asyncio.timeout(self._most_seconds)
        try:
            async with limit:
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise left()
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size > self._most_bytes:
                        raise self._too_large()
                    shape.feed(piece)
                    self._check(shape)
                    pieces.append(piece)
                    more = message.get("more_body", False)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._too_slow(size) from None
        return {"type": "http.request", "body": b"".join(pieces), "more_body": False}

    def _check(self, shape: Shape) -> None:
        if shape.deepest > self._most_depth:
            raise invalid(
                f"The body has more than {self._most_depth} lists and objects within one another: send it flatter.",
                code="too_deep",
            )
        if shape.values > self._most_values:
            raise invalid(
                f"The lists and objects of the body have more than {self._most_values} values together: send fewer; "
                "how long a text is does not count.",
                code="too_many_values",
            )

    def _too_large(self) -> APIError:
        return APIError(
            413,
            "invalid_request_error",
            f"The body has more than the {self._most_bytes} bytes that are taken: send less, or have the server "
            "started with a larger --max-body-mib.",
            code="body_too_large",
        )

    def _too_slow(self, size: int) -> APIError:
        return APIError(
            408,
            "timeout_error",
            f"After {self._most_seconds:g} s the body was not whole; {size} bytes of it had come.",
            code="body_too_slow",
            headers={"Connection": "close"},
        )
