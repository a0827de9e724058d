"""The shape of a JSON text, told while it comes: how deep it is and how many values it has.

Costs a few milliseconds a megabyte and keeps nothing of the text, so that what would be dear to parse is refused before
it is. Whether it is JSON is the parser's to say, who reads no further than to where it is none.
"""

from __future__ import annotations

from itertools import accumulate

_OTHERS = bytes(set(range(256)) - set(b"[]{},"))
_STEPS = tuple(1 if byte in b"[{" else -1 if byte in b"]}" else 0 for byte in range(256))


class Shape:
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
