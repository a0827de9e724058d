"""What the cache keeps: the key of a request, which holds all that can change the answer, and the reply to it, as JSON.

Texts are kept as the pieces between the question's random mark. So the same question with another mark has the same
key, whoever reads a reply gets their own mark put back, and no text can be mistaken for a mark.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from podium.trace import Trace
from podium.types import ToolCall, Usage
from podium.workers.base import Reply, Request

FORMAT = 1
"""Of the documents. Another format makes other keys, so replies of an older one are not found."""
_FAST = 1
"""Requests are written far more often than they are read: zlib's quickest level."""


@dataclass(frozen=True)
class CacheKey:
    """One request to one worker, in the form in which requests are compared."""

    worker: str
    """Its name in the pool: shown to people, and no part of the key."""
    document: Mapping[str, Any]
    """As JSON has it: format, identity, messages (with their text in pieces), repeat, sample; options where there are
    any; seed where it is sent."""

    @classmethod
    def of(cls, worker: str, identity: Mapping[str, Any], request: Request) -> CacheKey:
        """The key of `request`.

        Args:
            identity: the worker's own. One that has "seed": true says that the worker sends a number made of the
                request's seed: then the seed is part of the key.
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


_PLAIN = ("latency_s", "recorded", "finish", "model", "first_token_s", "cost_usd")
"""Fields that JSON has as they are; those that are None are left out."""


def write_reply(reply: Reply, mark: str, seconds: float) -> bytes:
    """A reply as JSON.

    Args:
        mark: of the question that it answers.
        seconds: that it took by the clock. What a simulated worker claims counts in their place.
    """
    document: dict[str, Any] = {
        "text": to_pieces(reply.text, mark),
        "usage": reply.usage.model_dump(exclude_defaults=True),
    }
    document |= {name: value for name in _PLAIN if (value := getattr(reply, name)) is not None}
    document.setdefault("latency_s", round(seconds, 6))
    if reply.tool_calls:
        document["tool_calls"] = [call.model_dump() for call in reply.tool_calls]
    if reply.nested is not None:
        document["nested"] = reply.nested.model_dump()
    return to_json(document)


def read_reply(written: bytes, mark: str) -> Reply:
    """The reply, from the response cache, to a question of this mark.

    Its `latency_s` is what the call took when it was made: a cached reply makes no plan look quicker.
    """
    document = from_json(written)
    nested = document.get("nested")
    return Reply(
        mark.join(document["text"]),
        Usage(**document["usage"]),
        **{name: document.get(name) for name in _PLAIN},
        cached=True,
        tool_calls=tuple(ToolCall(**call) for call in document.get("tool_calls", ())),
        nested=None if nested is None else Trace.model_validate(nested),
    )


def as_kept(paid: Reply, kept: Reply) -> Reply:
    """The kept reply, with the cost of the call that was just paid for."""
    return replace(
        kept,
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        latency_s=paid.latency_s,
        first_token_s=paid.first_token_s,
        cached=False,
    )
