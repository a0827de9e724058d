"""Request bodies that a client compressed: gzip, deflate, zstd, and several of them in a row.

A body is decoded in small steps while it arrives, so that what counts its bytes can refuse a body that grows without
end before it is in memory. It does not decide how large a body may be: `body_limits` does.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from podium.errors import APIError
from podium.server.api_errors import invalid

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP_BYTES = 256 * 2**10
"""The most bytes that one step decodes."""
_MAX_LAYERS = 3
"""Encodings in a row; nobody needs more, and each costs time."""
_MAX_MEMBERS = 1024
"""Parts of a body that are compressed one after the other, each of which takes memory to begin."""
_WINDOW_LOG = 23
"""Of zstd: the memory that a decoder has to offer, 8 MiB (RFC 9659)."""


class _Stream(Protocol):
    """One compressed part of a body, as Python's zstd reads it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Zlib:
    """The same for gzip and deflate."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        decoded = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(decoded) < max_length
        return decoded


def _gzip(_: bytes) -> _Stream:
    return _Zlib(zlib.MAX_WBITS + 16)


def _deflate(beginning: bytes) -> _Stream:
    """The name means zlib's format, and some clients send the bare data inside it."""
    return _Zlib(zlib.MAX_WBITS if beginning[0] & 0x0F == 8 else -zlib.MAX_WBITS)


def _zstd(_: bytes) -> _Stream:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})


_STARTS: Mapping[str, Callable[[bytes], _Stream]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
_ACCEPTED = ("gzip", "deflate", "zstd")


class BodyDecoder:
    """Decodes one body.

    Args:
        headers: the values of its Content-Encoding headers, in their order.

    Raises:
        APIError: 415, for an encoding that is not known here, or for too many.
    """

    def __init__(self, headers: Iterable[bytes]) -> None:
        given = ",".join(value.decode("latin-1") for value in headers).lower().split(",")
        names = [name for part in given if (name := part.strip()) not in ("", "identity")]
        for name in names:
            if name not in _STARTS:
                raise _unsupported(f"The body's encoding {name[:50]!r} is not known here")
        if len(names) > _MAX_LAYERS:
            raise _unsupported(f"The body has {len(names)} encodings, more than {_MAX_LAYERS}")
        # The last one that was applied is the first to be undone.
        self._layers = [_Layer(name) for name in reversed(names)]

    def decode(self, piece: bytes) -> Iterator[bytes]:
        """The decoded bytes of the next piece, in pieces that fit into memory.

        Raises:
            APIError: 400, the body is not what its encoding says.
        """
        pieces: Iterable[bytes] = (piece,)
        for layer in self._layers:
            pieces = layer.decode(pieces)
        return iter(pieces)

    def end(self) -> None:
        """Check that the body is complete.

        Raises:
            APIError: 400, it breaks off.
        """
        for layer in self._layers:
            layer.end()


class _Layer:
    """One encoding of a body."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: _Stream | None = None
        self._members = 0

    def decode(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for given in pieces:
            piece, more = given, bool(given)
            while more:
                stream = self._stream or self._next(piece)
                try:
                    decoded = stream.decompress(piece, _STEP_BYTES)
                except (zlib.error, zstd.ZstdError) as error:
                    raise self._wrong(f"is not valid: {error}") from None
                if stream.eof:
                    piece, self._stream = stream.unused_data, None
                    more = bool(piece)
                else:
                    piece, self._stream = b"", stream
                    more = not stream.needs_input
                if decoded:
                    yield decoded

    def end(self) -> None:
        if self._stream is not None:
            raise self._wrong("breaks off before its end")

    def _next(self, beginning: bytes) -> _Stream:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise self._wrong(f"has more than {_MAX_MEMBERS} parts; compress it as one")
        return _STARTS[self._name](beginning)

    def _wrong(self, what: str) -> APIError:
        return invalid(f"The body's {self._name} data {what}.", code="invalid_encoding")


def _unsupported(what: str) -> APIError:
    return APIError(
        415,
        "invalid_request_error",
        f"{what}: send it as {', '.join(_ACCEPTED)}, or as it is.",
        code="unsupported_encoding",
        headers={"Accept-Encoding": ", ".join(_ACCEPTED)},
    )
