"""One request to one worker, in the form in which it is compared: all that can change the answer, and nothing else.

Texts are kept as the pieces between the question's random mark, so that the same question asked again, with another
mark, is the same request, and no text can be mistaken for a mark.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from podium.workers.base import Request

FORMAT = 1
"""Of the documents. Another one makes other keys: what was kept in an older one is asked again."""
_FAST = 1
"""Requests are written far more often than they are read: zlib's quickest level."""


@dataclass(frozen=True)
class CacheKey:
    """A request and the worker that it goes to."""

    worker: str
    """Its name in the pool: shown to people, and no part of the key."""
    document: Mapping[str, Any]
    """As JSON has it: format, identity, messages (with their text in pieces), repeat, sample; options where there are
    any; seed where it is sent."""

    @classmethod
    def of(cls, worker: str, identity: Mapping[str, Any], request: Request) -> CacheKey:
        """What `request` asks.

        Args:
            identity: the worker's own. One that has "seed": true says that the worker sends a number made of the
                request's seed: then the seed is part of what is asked.
        """
        document: dict[str, Any] = {
            "format": FORMAT,
            "identity": dict(identity),
            "messages": [
                message.model_dump(exclude_defaults=True)
                | {"content": to_pieces(message.content, request.mark)}
                for message in request.messages
            ],
            "repeat": request.repeat,
            "sample": request.sample,
        }
        if options := request.options.model_dump(exclude_defaults=True):
            document["options"] = options
        if identity.get("seed") is True:
            document["seed"] = request.seed
        return cls(worker, document)

    @classmethod
    def unpacked(cls, worker: str, packed: bytes) -> CacheKey:
        """The opposite of `packed`."""
        return cls(worker, from_json(zlib.decompress(packed)))

    @cached_property
    def _json(self) -> bytes:
        return to_json(self.document)

    @property
    def key(self) -> bytes:
        """32 bytes; equal for equal documents alone."""
        return sha256(self._json).digest()

    @property
    def packed(self) -> bytes:
        """The document, compressed."""
        return zlib.compress(self._json, _FAST)

    @property
    def length(self) -> int:
        """Characters of the messages, marks left out."""
        return sum(len(piece) for message in self.document["messages"] for piece in message["content"])

    @property
    def text(self) -> str:
        """The messages, one after the other, marks left out."""
        return "\n".join("".join(message["content"]) for message in self.document["messages"])


def to_pieces(text: str, mark: str) -> list[str]:
    """`text`, cut where the mark stands."""
    return text.split(mark) if mark else [text]


def to_json(document: Mapping[str, Any]) -> bytes:
    """One form for one document. Half surrogate pairs, which UTF-8 cannot hold, are kept as they are."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def from_json(written: bytes) -> Any:
    """The opposite of `to_json`."""
    return json.loads(written.decode("utf-8", "surrogatepass"))
