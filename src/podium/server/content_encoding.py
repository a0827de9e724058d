"""Request bodies that a client compressed with gzip, deflate or zstd.

A body is decoded in small steps while it arrives, so that `body_limits` can refuse a body that grows without end before
it is in memory.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator

from podium.errors import APIError
from podium.server.api_errors import invalid

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP_BYTES = 256 * 2**10
"""The most bytes that one step decodes."""
_WINDOW_LOG = 23
"""The largest window of zstd that is decoded: 8 MiB, which every decoder must support (RFC 9659)."""


class _Zlib:
    """A body compressed by gzip or deflate, with the interface of `zstd.ZstdDecompressor`."""

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


def _open(encoding: str, beginning: bytes) -> _Zlib | zstd.ZstdDecompressor:
    """The decoder of a body that begins with these bytes."""
    if encoding == "zstd":
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
    if encoding == "deflate":
        # The name means zlib's format, but some clients send the bare data without its frame.
        return _Zlib(zlib.MAX_WBITS if beginning[0] & 0x0F == 8 else -zlib.MAX_WBITS)
    return _Zlib(zlib.MAX_WBITS + 16)


_ACCEPTED = ("gzip", "deflate", "zstd")


class BodyDecoder:
    """Decodes one body, by the values of its Content-Encoding headers in their order.

    Raises:
        APIError: 415, the encoding is unknown, or there are several in a row.
    """

    def __init__(self, headers: Iterable[bytes]) -> None:
        encodings = ",".join(value.decode("latin-1") for value in headers).lower().split(",")
        names = [name for part in encodings if (name := part.strip()) not in ("", "identity")]
        for name in names:
            if name not in (*_ACCEPTED, "x-gzip"):
                raise _unsupported(f"The body's encoding {name[:50]!r} is not known here")
        if len(names) > 1:
            raise _unsupported(f"The body has {len(names)} encodings in a row")
        self._name = names[0] if names else None
        self._stream: _Zlib | zstd.ZstdDecompressor | None = None

    def decode(self, piece: bytes) -> Iterator[bytes]:
        """The decoded bytes of the next piece, in pieces that fit into memory.

        Raises:
            APIError: 400, the body is not what its encoding says.
        """
        if self._name is None or not piece:
            yield piece
            return
        if self._stream is None:
            self._stream = _open(self._name, piece)
        has_more = True
        while has_more:
            if self._stream.eof:
                raise self._wrong("goes on behind its end")
            try:
                decoded = self._stream.decompress(piece, _STEP_BYTES)
            except (zlib.error, zstd.ZstdError) as error:
                raise self._wrong(f"is not valid: {error}") from None
            yield decoded
            piece = b""
            has_more = bool(self._stream.unused_data) or not (self._stream.eof or self._stream.needs_input)

    def end(self) -> None:
        """Check that the body is complete.

        Raises:
            APIError: 400, the body breaks off.
        """
        if self._stream is not None and not self._stream.eof:
            raise self._wrong("breaks off before its end")

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
