"""A reply as text for the file, and back: what it says and what it took.

Like a request's, its texts are pieces between marks: whoever reads it again has his own mark put back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.trace import Trace
from podium.types import ToolCall, Usage
from podium.workers.base import Reply
from podium.workers.response_cache.cache_key import from_json, to_json, to_pieces

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

    Its `latency_s` is what it took when it was made: a plan is no quicker for what somebody else has asked.
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
    """What the kept reply says, at the cost of the one that was paid for."""
    return replace(
        kept,
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        latency_s=paid.latency_s,
        first_token_s=paid.first_token_s,
        cached=False,
    )
