"""What a provider says a call took, as far as it can be believed; the rest is estimated and marked so.

Knows the names of OpenAI, and those of Anthropic, DeepSeek and Moonshot where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.types import Message, Usage, estimate_tokens

_MOST = 10**8
"""Tokens. No model reads or writes as many in one call."""


def read_usage(said: object, messages: Sequence[Message], text: str, thought: str = "") -> Usage:
    """The tokens of one call.

    Args:
        said: the reply's `usage`.
        messages: what was sent.
        text, thought: what came back.
    """
    counts = _table(said)
    cached = _first(
        _table(counts.get("prompt_tokens_details")).get("cached_tokens"),
        _table(counts.get("input_tokens_details")).get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cache_read_input_tokens"),
        counts.get("cached_tokens"),
    )
    sent = _first(counts.get("prompt_tokens"))
    if sent is None and (sent := _first(counts.get("input_tokens"))) is not None:
        # Anthropic counts what its cache gave and took apart from the rest.
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            sent += _first(counts.get(name)) or 0
    written = _first(counts.get("completion_tokens"), counts.get("output_tokens"))
    reasoning = _first(
        _table(counts.get("completion_tokens_details")).get("reasoning_tokens"),
        _table(counts.get("output_tokens_details")).get("reasoning_tokens"),
        counts.get("reasoning_tokens"),
    )
    estimated = sent is None or written is None
    if sent is None:
        sent = sum(estimate_tokens(message.content) for message in messages)
    if written is None:
        written = max(estimate_tokens(text) + estimate_tokens(thought), reasoning or 0)
    elif not estimated:
        hidden = (_first(counts.get("total_tokens")) or 0) - sent - written
        if hidden > 0 and (reasoning or hidden) == hidden:
            # Some bill thought that they leave out of completion_tokens (xAI, Gemini).
            written, reasoning = written + hidden, hidden
    # What contradicts itself is billed at the full price.
    estimated = estimated or (cached or 0) > sent or (reasoning or 0) > written
    return Usage(
        input_tokens=sent,
        output_tokens=written,
        cached_tokens=cached if cached is not None and cached <= sent else 0,
        reasoning_tokens=reasoning if reasoning is not None and reasoning <= written else 0,
        estimated=estimated,
    )


def _table(said: object) -> Mapping[str, object]:
    return said if isinstance(said, dict) else {}


def _first(*said: object) -> int | None:
    """The first of them that can be a number of tokens."""
    for count in said:
        if isinstance(count, float) and count.is_integer():
            count = int(count)  # noqa: PLW2901 - some gateways write 12.0
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST:
            return count
    return None
