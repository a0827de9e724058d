"""Server-sent events (WHATWG HTML, 9.2), as bytes come in: only the data of each, for nothing here names events.

Forgiving where providers are careless: any end of line, comments and keep-alives between, an event without its
closing empty line. Knows nothing of what the data mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_PIECE = 64
"""Bytes that Python needs for a piece beside what it holds, about."""


class Events:
    """Reads one stream. The bytes of an event may come in any pieces."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False
        self._line_held = self._data_held = 0

    @property
    def held(self) -> int:
        """Bytes of memory that the event takes which is not yet whole, about."""
        return self._line_held + self._data_held

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that `chunk` makes whole."""
        if not chunk:
            return
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        start = 0
        for end in _LINE_END.finditer(chunk):
            yield from self._take(chunk[start : end.start()])
            start = end.end()
        if start < len(chunk):
            self._line.append(chunk[start:])
            self._line_held += len(chunk) - start + _PIECE

    def end(self) -> Iterator[bytes]:
        """The data of an event that the end of the stream makes whole."""
        yield from self._take(b"")
        yield from self._take(b"")

    def _take(self, rest: bytes) -> Iterator[bytes]:
        """One whole line, of which `rest` is the last piece."""
        line = b"".join(self._line) + rest
        self._line.clear()
        self._line_held = 0
        if not self._begun:
            self._begun, line = True, line.removeprefix(_BOM)
        if not line:
            data, self._data, self._data_held = self._data, [], 0
            if data:
                yield b"\n".join(data)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_held += len(value) + _PIECE
