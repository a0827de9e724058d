"""Reads the token counts of one call. Replaces missing and implausible counts by estimates, and marks them.

A count is implausible if no tokenizer could need so few tokens for the text, or if it is far above what the request
allows. Podium believes all counts in between, because it cannot see hidden reasoning, images or a provider's own
prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podium.types import (
    DEFAULT_OPTIONS,
    MAX_USD,
    AnswerOptions,
    Message,
    Usage,
    estimate_tokens,
    sent_tokens,
)

_MIN_DIVISOR = 8
"""A count may be this many times smaller than the estimate. The estimate assumes 4 characters per token; rows of blanks
or dashes have up to 32."""
_MAX_FACTOR = 16
"""A count may be this many times larger than the estimate or max_tokens. Some scripts need several tokens per
character, and an endpoint that is itself a team reports the tokens of all its steps."""
_MAX_HIDDEN_TOKENS = 1 << 18
"""Further tokens that a count may have, since Podium may not see reasoning beyond max_tokens, images, searches, or the
provider's own prompt."""
_MAX_OUTPUT_TOKENS = 1 << 20
"""The most plausible output tokens of a reply whose request set no max_tokens."""


def read_usage(
    usage: object,
    messages: Sequence[Message],
    text: str,
    reasoning_text: str = "",
    *,
    options: AnswerOptions = DEFAULT_OPTIONS,
    max_tokens: int | None = None,
) -> Usage:
    """The tokens of one call: the provider's counts if they are plausible, else estimates (`Usage.estimated`).

    It understands the keys of OpenAI's two APIs, and other providers' keys that differ (`_read_counts`).

    Args:
        usage: the reply's `usage`, of any type.
        messages, options: what was sent.
        text, reasoning_text: the reply; `text` includes its tool calls.
        max_tokens: the limit that was sent, or None.
    """
    table = _table(usage)
    counts = _read_counts(table)
    # A provider may write tools more briefly than JSON, and scale images down: only texts have a least number.
    least_input = sum(estimate_tokens(message.content) for message in messages)
    estimated_input = sent_tokens(messages, options)
    estimated_text = estimate_tokens(text)
    estimated_output = estimated_text + estimate_tokens(reasoning_text)
    limit = _MAX_OUTPUT_TOKENS if max_tokens is None else _MAX_FACTOR * max_tokens
    most_input = _MAX_FACTOR * estimated_input + _MAX_HIDDEN_TOKENS
    most_output = max(limit, estimated_output) + _MAX_HIDDEN_TOKENS
    implausible = (
        _implausible("input", counts.input, least_input, most_input),
        _implausible("output", counts.output, estimated_text, most_output),
    )
    input_tokens, output_tokens, reasoning = counts.input, counts.output, counts.reasoning or 0
    estimated = input_tokens is None or output_tokens is None or any(implausible)
    if input_tokens is None or implausible[0]:
        input_tokens = estimated_input
    if output_tokens is None or implausible[1]:
        output_tokens = max(estimated_output, reasoning if reasoning <= _MAX_HIDDEN_TOKENS else 0)
    # Counts that contradict each other are billed at the full price.
    cache_read, cache_written = counts.cache_read or 0, counts.cache_written or 0
    fits = cache_read + cache_written <= input_tokens
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cache_read if fits else 0,
        cache_write_tokens=cache_written if fits else 0,
        reasoning_tokens=reasoning if reasoning <= output_tokens else 0,
        estimated=estimated or not fits or reasoning > output_tokens,
        implausible=" and ".join(filter(None, implausible)) or None,
        billed_usd=_billed_usd(table),
    )


class _Counts(NamedTuple):
    """Tokens of one call. Each is None if the provider does not count it."""

    input: int | None
    cache_read: int | None
    """The part of the input that was read from the provider's prompt cache."""
    cache_written: int | None
    """The part of the input that was written to that cache."""
    output: int | None
    reasoning: int | None
    """The part of the output that is reasoning."""


def _read_counts(table: Mapping[str, object]) -> _Counts:
    """The counts of a provider. The keys of each count are in this order: OpenAI and xAI; the Responses API; Anthropic;
    DeepSeek; Moonshot; Gemini; Bedrock; llama.cpp."""
    get = table.get
    details, inputs = _table(get("prompt_tokens_details")), _table(get("input_tokens_details"))
    anthropic = _first_count(get("cache_read_input_tokens"), get("cacheReadInputTokens"))
    cache_read = _first_count(
        details.get("cached_tokens"),
        inputs.get("cached_tokens"),
        anthropic,
        *map(get, ("prompt_cache_hit_tokens", "cached_tokens", "cachedContentTokenCount", "cache_n")),
    )
    cache_written = _first_count(
        get("cache_creation_input_tokens"),
        get("cacheWriteInputTokens"),
        details.get("cache_write_tokens"),
        details.get("cache_creation_tokens"),
        inputs.get("cache_write_tokens"),
        _sum(*_table(table["cache_creation"]).values()) if "cache_creation" in table else None,
    )
    input_tokens = _input_count(table, anthropic, cache_written)
    gemini = "candidatesTokenCount" in table
    output_tokens = _first_count(
        *map(get, ("completion_tokens", "output_tokens", "outputTokens")),
        _sum(table["candidatesTokenCount"], get("thoughtsTokenCount")) if gemini else None,
        get("predicted_n"),
    )
    reasoning = _first_count(
        _table(get("completion_tokens_details")).get("reasoning_tokens"),
        _table(get("output_tokens_details")).get("reasoning_tokens"),
        *map(get, ("reasoning_tokens", "thoughtsTokenCount")),
    )
    if input_tokens is not None and output_tokens is not None:
        hidden = (_first_count(get("total_tokens")) or 0) - input_tokens - output_tokens
        if hidden > 0 and (reasoning or hidden) == hidden:
            # Some providers bill reasoning that completion_tokens leaves out (xAI, Gemini).
            output_tokens, reasoning = output_tokens + hidden, hidden
    return _Counts(input_tokens, cache_read, cache_written, output_tokens, reasoning)


def _input_count(
    table: Mapping[str, object], cache_read: int | None, cache_written: int | None
) -> int | None:
    """All input tokens. Anthropic and Bedrock count `cache_read` and `cache_written` apart from other input."""
    get = table.get
    input_tokens = _first_count(get("prompt_tokens"), get("promptTokenCount"))
    if input_tokens is None:
        uncached = _first_count(get("input_tokens"), get("inputTokens"))
        hits = get("prompt_cache_hit_tokens"), get("prompt_cache_miss_tokens")
        if uncached is not None:
            # The Responses API names what it wrote to a cache as a detail, so its count includes that.
            input_tokens = _sum(
                uncached, cache_read, None if _table(get("input_tokens_details")) else cache_written
            )
        else:
            input_tokens = _sum(*hits) if None not in hits else _sum(get("prompt_n"), get("cache_n"))
    elif cache_read is not None and input_tokens < cache_read + (cache_written or 0):
        # A gateway that renames input_tokens, and adds nothing.
        input_tokens = _sum(input_tokens, cache_read, cache_written)
    if "toolUsePromptTokenCount" in table:
        input_tokens = _sum(input_tokens, table["toolUsePromptTokenCount"])
    return input_tokens


def _billed_usd(table: Mapping[str, object]) -> float | None:
    """The dollars that OpenRouter and gateways name as `cost`."""
    cost = table.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 < cost <= MAX_USD else None


def _sum(*values: object) -> int | None:
    """The sum of the values that can be numbers of tokens, or None if none can."""
    known = [count for value in values if (count := _first_count(value)) is not None]
    return sum(known) if known else None


def _implausible(what: str, count: int | None, estimate: int, most: int) -> str | None:
    """The count in words, if it is implausible. None if it is plausible or missing."""
    possible = count is None or estimate <= count * _MIN_DIVISOR <= most * _MIN_DIVISOR
    return None if possible else f"{count} tokens of {what}"


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _first_count(*values: object) -> int | None:
    for count in values:
        if count is None:
            continue
        if isinstance(count, float) and count.is_integer():
            count = int(count)  # noqa: PLW2901 - some gateways write 12.0
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
    return None
