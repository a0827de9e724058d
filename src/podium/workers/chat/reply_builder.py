"""Collects one reply from a whole body or from the chunks of a stream, and reads its token counts.

It ignores whatever is not part of a reply. `response_reader` decides whether the reply is complete, and `failures` what
is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.types import Message, ToolCall, Usage, estimate_tokens

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Where vLLM and DeepSeek, OpenRouter, and others put the reasoning of a model."""


class ReplyBuilder:
    """Collects the chunks of a stream; a whole reply is one chunk."""

    def __init__(self) -> None:
        self.choices = 0
        """Well-formed choices received so far."""
        self.finish: str | None = None
        self.model: str | None = None
        self.usage: object = None
        """As the provider wrote it; `read_usage` reads it."""
        self.length = 0
        """Characters of text, reasoning, refusal and tool calls."""
        self.logprobs: dict[str, Any] | None = None
        """Those of all tokens so far; None: there are none."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        """By index: id, name and arguments so far."""

    @property
    def text(self) -> str:
        """The answer so far."""
        return encodable("".join(self._text))

    @property
    def reasoning(self) -> str:
        """The visible reasoning so far."""
        return encodable("".join(self._reasoning))

    @property
    def refusal(self) -> str:
        """The model's message of refusal, so far."""
        return encodable("".join(self._refusal))

    @property
    def has_tool_calls(self) -> bool:
        """Whether any tool call was received, even a malformed one."""
        return bool(self._calls)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that have a name; one without an id gets one."""
        return tuple(
            ToolCall(
                id=encodable(call["id"]) or f"call_{place}",
                name=encodable(call["name"]),
                arguments=encodable(call["arguments"]) or "{}",
            )
            for place, call in sorted(self._calls.items())
            if call["name"]
        )

    def add(self, chunk: Mapping[str, Any]) -> tuple[str, str]:
        """Add a whole reply, or the next chunk of a stream; returns the new text and the new reasoning."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = encodable(model)
        if chunk.get("usage") is not None:
            self.usage = chunk["usage"]
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return "", ""
        # Of several choices, which only `extra` can request, the first counts.
        pieces = [self._take(choice) for choice in choices if _is_first(choice)]
        return "".join(text for text, _ in pieces), "".join(reasoning for _, reasoning in pieces)

    def _take(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            self.finish = encodable(finish)
        message = next((m for name in ("delta", "message") if isinstance(m := choice.get(name), dict)), None)
        if message is None:
            return "", ""
        self.choices += 1
        self._add_logprobs(choice.get("logprobs"))
        self._call(message.get("tool_calls"))
        reasoning = next((t for name in _REASONING_KEYS if isinstance(t := message.get(name), str) and t), "")
        text = _joined(message.get("content"))
        refusal = r if isinstance(r := message.get("refusal"), str) else ""
        for pieces, piece in ((self._reasoning, reasoning), (self._text, text), (self._refusal, refusal)):
            if piece:
                pieces.append(piece)
                self.length += len(piece)
        return text, reasoning

    def _add_logprobs(self, logprobs: object) -> None:
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        if isinstance(tokens, list):
            before = [] if self.logprobs is None else self.logprobs["content"]
            self.logprobs = {"content": [*before, *tokens], "refusal": None}

    def _call(self, pieces: object) -> None:
        """Add tool calls: whole ones, or pieces that carry their index."""
        for place, piece in enumerate(pieces if isinstance(pieces, list) else ()):
            if not isinstance(piece, dict):
                continue
            at = index if isinstance(index := piece.get("index"), int) else place
            call = self._calls.setdefault(at, {"id": "", "name": "", "arguments": ""})
            function = f if isinstance(f := piece.get("function"), dict) else {}
            for key, part in (
                ("id", piece.get("id")),
                ("name", function.get("name")),
                ("arguments", function.get("arguments")),
            ):
                if isinstance(part, str):
                    call[key] = call[key] + part if key == "arguments" else call[key] or part
                    self.length += len(part)


def _is_first(choice: object) -> bool:
    return isinstance(choice, dict) and not choice.get("index")


def _joined(content: object) -> str:
    """The text of a message, which may come in parts; parts with reasoning are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def encodable(text: str) -> str:
    """`text` with halves of surrogate pairs joined or replaced, since JSON can contain them and UTF-8 cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_MOST_TOKENS = 10**8
"""A higher count is not believed: no model reads or writes as many tokens in one call."""


def read_usage(usage: object, messages: Sequence[Message], text: str, reasoning_text: str = "") -> Usage:
    """The tokens of one call: the provider's counts where they are plausible, else estimates, which are marked so.

    It understands OpenAI's keys, and those of Anthropic, DeepSeek and Moonshot that differ.

    Args:
        usage: the reply's `usage`, of any type.
        messages: the messages that were sent.
        text, reasoning_text: the reply.
    """
    counts = _table(usage)
    cached = _first_count(
        _table(counts.get("prompt_tokens_details")).get("cached_tokens"),
        _table(counts.get("input_tokens_details")).get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cache_read_input_tokens"),
        counts.get("cached_tokens"),
    )
    sent = _first_count(counts.get("prompt_tokens"))
    if sent is None and (sent := _first_count(counts.get("input_tokens"))) is not None:
        # Anthropic counts reads and writes of its prompt cache apart from input_tokens.
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            sent += _first_count(counts.get(name)) or 0
    written = _first_count(counts.get("completion_tokens"), counts.get("output_tokens"))
    reasoning = _first_count(
        _table(counts.get("completion_tokens_details")).get("reasoning_tokens"),
        _table(counts.get("output_tokens_details")).get("reasoning_tokens"),
        counts.get("reasoning_tokens"),
    )
    estimated = sent is None or written is None
    if sent is None:
        sent = sum(estimate_tokens(message.content) for message in messages)
    if written is None:
        written = max(estimate_tokens(text) + estimate_tokens(reasoning_text), reasoning or 0)
    elif not estimated:
        hidden = (_first_count(counts.get("total_tokens")) or 0) - sent - written
        if hidden > 0 and (reasoning or hidden) == hidden:
            # Some providers bill reasoning that completion_tokens leaves out (xAI, Gemini).
            written, reasoning = written + hidden, hidden
    # Counts that contradict each other are billed at the full price.
    estimated = estimated or (cached or 0) > sent or (reasoning or 0) > written
    return Usage(
        input_tokens=sent,
        output_tokens=written,
        cached_tokens=cached if cached is not None and cached <= sent else 0,
        reasoning_tokens=reasoning if reasoning is not None and reasoning <= written else 0,
        estimated=estimated,
    )


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _first_count(*values: object) -> int | None:
    """The first value that can be a number of tokens."""
    for count in values:
        if isinstance(count, float) and count.is_integer():
            count = int(count)  # noqa: PLW2901 - some gateways write 12.0
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST_TOKENS:
            return count
    return None
