"""The bodies of requests: not too large, too slow, too deep or of too many values; counted while they come.

A route reads a body when it knows who asks, and finds it whole, or is stopped by a `APIError`. What comes after a
refusal is thrown away by the server, so that its sender gets to read why.


@@The shape of a JSON text, told while it comes: how deep it is and how many values it has.

Costs a few milliseconds a megabyte and keeps nothing of the text, so that what would be dear to parse is refused before
it is. Whether it is JSON is the parser's to say, who reads no further than to where it is none.
"""

from __future__ import annotations

import asyncio
from itertools import accumulate

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import invalid, refuse
from podium.server.host_check import SAFE_METHODS
from podium.server.streaming import client_disconnected

_DIGITS = 19


class BodyLimits:
    """Hands each body to the application in one piece.

    Args:
        max_bytes: of a body.
        max_seconds: from when the application asks for it until it is whole.
        max_depth: lists and objects within one another.
        max_values: in all lists and objects together.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, max_seconds: float, max_depth: int, max_values: int
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._max_depth = max_depth
        self._max_values = max_values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        digits = declared.lstrip(b"0") if declared.isdigit() else b""
        if len(digits) > _DIGITS or int(digits or b"0") > self._max_bytes:
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
        shape = JsonShape()
        limit = asyncio.timeout(self._max_seconds)
        try:
            async with limit:
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise client_disconnected()
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size > self._max_bytes:
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

    def _check(self, shape: JsonShape) -> None:
        if shape.deepest > self._max_depth:
            raise invalid(
                f"The body has more than {self._max_depth} lists and objects within one another: send it flatter.",
                code="too_deep",
            )
        if shape.values > self._max_values:
            raise invalid(
                f"The lists and objects of the body have more than {self._max_values} values together: send fewer; "
                "how long a text is does not count.",
                code="too_many_values",
            )

    def _too_large(self) -> APIError:
        return APIError(
            413,
            "invalid_request_error",
            f"The body has more than the {self._max_bytes} bytes that are taken: send less, or have the server "
            "started with a larger --max-body-mib.",
            code="body_too_large",
        )

    def _too_slow(self, size: int) -> APIError:
        return APIError(
            408,
            "timeout_error",
            f"After {self._max_seconds:g} s the body was not whole; {size} bytes of it had come.",
            code="body_too_slow",
            headers={"Connection": "close"},
        )


_OTHERS = bytes(set(range(256)) - set(b"[]{},"))
_STEPS = tuple(1 if byte in b"[{" else -1 if byte in b"]}" else 0 for byte in range(256))


class JsonShape:
    """What is known of a text after the pieces that were fed."""

    __slots__ = ("_held", "_inside", "_open", "deepest", "may_be_json", "values")

    def __init__(self) -> None:
        self.deepest = 0
        """Lists and objects within one another, at the deepest place."""
        self.values = 0
        """Members of all lists and objects together; an empty one counts as one."""
        self.may_be_json = True
        """False: more was closed than was opened, and nothing after it counts."""
        self._open = 0
        self._inside = 0
        self._held = b""

    def feed(self, piece: bytes) -> None:
        """Go on with `piece`, which may begin and end anywhere."""
        if not self.may_be_json:
            return
        text = self._held + piece
        # What a backslash at the end escapes comes next.
        end = len(text) - (len(text) - len(text.rstrip(b"\\"))) % 2
        self._held = text[end:]
        parts = text[:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        marks = b"".join(parts[self._inside :: 2]).translate(None, _OTHERS)
        self._inside = (self._inside + len(parts) - 1) % 2
        brackets = marks.replace(b",", b"")
        closed = brackets.count(b"]") + brackets.count(b"}")
        if 2 * closed > self._open + len(brackets):
            self.may_be_json = False
            return
        self.values += len(marks) - closed
        depths = list(accumulate(map(_STEPS.__getitem__, brackets), initial=self._open))
        self._open, deepest = depths[-1], max(depths)
        self.deepest = max(self.deepest, deepest)
