"""Middleware that limits request bodies: bytes, seconds, encoding, nesting and number of values.

A body is measured while it arrives. A compressed one is decoded in a thread once it is there, and its decoded form is
measured. A route reads the body after it knows the caller, and gets the body in one piece or an `APIError`. The server
discards the rest of a refused body, so that the client reads the error.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Iterable
from itertools import accumulate

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import invalid, send_error
from podium.server.in_flight import SAFE_METHODS
from podium.server.streaming import client_disconnected

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MAX_DIGITS = 19
"""The most digits of a Content-Length that is read."""
_MAX_DEPTH = 32
"""How deep lists and objects may be nested."""
_MAX_VALUES = 30_000
"""The most values in all lists and objects together. Checking them takes about 20 ms, in which no other request is
answered. The longest conversation with the most tools has fewer values."""
_PIECE_BYTES = 64 * 2**10
"""The most bytes of a decoded body that are measured at once, since measuring copies them."""
_ENCODINGS = ("gzip", "deflate", "zstd")
_WINDOW_LOG = 23
"""The largest window of zstd that is decoded: 8 MiB, which every decoder must support (RFC 9659)."""
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_DEPTH_CHANGE = tuple(1 if byte in b"[{" else -1 if byte in b"]}" else 0 for byte in range(256))


class BodyLimits:
    """Gives each body to the application in one piece, if it is within the limits.

    Args:
        max_bytes: the most bytes of a body, both as it is sent and decoded.
        max_seconds: the most seconds from the application's first read until the body is complete.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_seconds: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        declared = b""
        encodings: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"content-length":
                declared = value
            elif name == b"content-encoding":
                encodings.append(value)
        digits = declared.lstrip(b"0") if declared.isdigit() else b""
        try:
            if len(digits) > _MAX_DIGITS or int(digits or b"0") > self._max_bytes:
                raise _too_large(self._max_bytes)
            encoding = read_encoding(encodings)
        except APIError as error:
            await send_error(error, scope, receive, send)
            return
        complete = False

        async def read() -> Message:
            nonlocal complete
            if complete:
                return await receive()
            body = await self._receive_all(receive, measures=encoding is None)
            if encoding is not None and body:
                body = await asyncio.to_thread(_decode_within_limits, body, encoding, self._max_bytes)
            complete = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, read, send)

    async def _receive_all(self, receive: Receive, *, measures: bool) -> bytes:
        body, shape = bytearray(), JsonShape()
        limit = asyncio.timeout(self._max_seconds)
        try:
            async with limit:
                has_more = True
                while has_more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise client_disconnected()
                    piece = message.get("body", b"")
                    body += piece
                    if len(body) > self._max_bytes:
                        raise _too_large(self._max_bytes)
                    if measures:
                        shape.feed(piece)
                        shape.check()
                    has_more = message.get("more_body", False)
        except TimeoutError:
            if not limit.expired():
                raise
            raise APIError(
                408,
                "timeout_error",
                f"The body was not complete after {self._max_seconds:g} s; {len(body)} bytes of it had arrived.",
                code="body_too_slow",
                headers={"Connection": "close"},
            ) from None
        return bytes(body)


def _decode_within_limits(sent: bytes, encoding: str, max_bytes: int) -> bytes:
    body, shape = decode_body(sent, encoding, max_bytes), JsonShape()
    for start in range(0, len(body), _PIECE_BYTES):
        shape.feed(body[start : start + _PIECE_BYTES])
        shape.check()
    return body


def read_encoding(headers: Iterable[bytes]) -> str | None:
    """The encoding in the values of a request's Content-Encoding headers. None if the body is sent as it is.

    Raises:
        APIError: 415, the encoding is unknown, or there are several in a row.
    """
    encodings = ",".join(value.decode("latin-1") for value in headers).lower().split(",")
    names = [name for part in encodings if (name := part.strip()) not in ("", "identity")]
    problem = f"The body has {len(names)} encodings in a row" if len(names) > 1 else None
    for name in names:
        if name not in (*_ENCODINGS, "x-gzip"):
            problem = f"The body's encoding {name[:50]!r} is not known here"
    if problem is not None:
        raise APIError(
            415,
            "invalid_request_error",
            f"{problem}: send it as {', '.join(_ENCODINGS)}, or as it is.",
            code="unsupported_encoding",
            headers={"Accept-Encoding": ", ".join(_ENCODINGS)},
        )
    return names[0].removeprefix("x-") if names else None


def decode_body(sent: bytes, encoding: str, max_bytes: int) -> bytes:
    """The decoded form of a body that is not empty. No more than `max_bytes` and one are decoded.

    Raises:
        APIError: 400, the body is not what its encoding says; or 413, it is too large.
    """
    decoder: zstd.ZstdDecompressor | zlib._Decompress
    if encoding == "zstd":
        decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
    elif encoding == "gzip":
        decoder = zlib.decompressobj(zlib.MAX_WBITS + 16)
    else:
        # The name means zlib's format, but some clients send the bare data without its frame.
        decoder = zlib.decompressobj(zlib.MAX_WBITS if sent[0] & 0x0F == 8 else -zlib.MAX_WBITS)
    problem = None
    try:
        body = decoder.decompress(sent, max_bytes + 1)
    except (zlib.error, zstd.ZstdError) as error:
        problem = f"is not valid: {error}"
    else:
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if not decoder.eof:
            problem = "breaks off before its end"
        elif decoder.unused_data:
            problem = "goes on behind its end"
    if problem is not None:
        raise invalid(f"The body's {encoding} data {problem}.", code="invalid_encoding")
    return body


def _too_large(max_bytes: int) -> APIError:
    return APIError(
        413,
        "invalid_request_error",
        f"The body is larger than {max_bytes} bytes: send less, or have the server started with a larger "
        "serve.max_body_mib.",
        code="body_too_large",
    )


class JsonShape:
    """The depth and the number of values of a JSON text, measured piece by piece.

    Measuring takes a few milliseconds per megabyte and stores nothing of the text, so that a text that is expensive to
    parse is refused before it is parsed. The parser checks that the text is JSON, and stops at the first fault.
    """

    __slots__ = ("_inside", "_open", "_unread", "deepest", "may_be_json", "values")

    def __init__(self) -> None:
        self.deepest = 0
        """The deepest nesting of lists and objects so far."""
        self.values = 0
        """The number of members of all lists and objects together. An empty list or object counts as one."""
        self.may_be_json = True
        """Whether no bracket was closed that had not been opened. Once it is False, nothing more is measured."""
        self._open = 0
        self._inside = 0
        self._unread = b""

    def feed(self, piece: bytes) -> None:
        """Measure the next piece, which may begin and end anywhere."""
        if not self.may_be_json:
            return
        text = self._unread + piece
        # A backslash at the end escapes the first byte of the next piece.
        end = len(text) - (len(text) - len(text.rstrip(b"\\"))) % 2
        self._unread = text[end:]
        parts = text[:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        marks = b"".join(parts[self._inside :: 2]).translate(None, _NOT_STRUCTURE)
        self._inside = (self._inside + len(parts) - 1) % 2
        brackets = marks.replace(b",", b"")
        closed = brackets.count(b"]") + brackets.count(b"}")
        if 2 * closed > self._open + len(brackets):
            self.may_be_json = False
            return
        self.values += len(marks) - closed
        depths = list(accumulate(map(_DEPTH_CHANGE.__getitem__, brackets), initial=self._open))
        self._open, deepest = depths[-1], max(depths)
        self.deepest = max(self.deepest, deepest)

    def check(self) -> None:
        """Refuse a text that is too deep or has too many values."""
        if self.deepest > _MAX_DEPTH:
            raise invalid(
                f"The body has more than {_MAX_DEPTH} levels of nested lists and objects: send it flatter.",
                code="too_deep",
            )
        if self.values > _MAX_VALUES:
            raise invalid(
                f"The lists and objects of the body have more than {_MAX_VALUES} values together: send fewer. "
                "The length of a text does not count.",
                code="too_many_values",
            )
