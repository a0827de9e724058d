"""Collects one reply from a whole body or from the chunks of a stream.

It ignores everything that is not part of a reply. `response_reader` decides whether the reply is complete, `failures`
turns faults into errors, and `usage` reads the token counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from podium.types import ToolCall

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Where vLLM and DeepSeek, OpenRouter, and others put the reasoning of a model."""
_USAGE_KEYS = ("timings", "usageMetadata", "usage")
"""Where llama.cpp, Gemini and all others put token counts; the last wins."""
_CALL = 2048
"""Added to `length` for each tool call, because even an empty tool call takes memory."""


class ReplyBuilder:
    """Collects the chunks of a stream; a whole reply is one chunk."""

    def __init__(self) -> None:
        self.choices = 0
        """Well-formed choices received so far."""
        self.finish: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] = {}
        """As the provider wrote it; `usage.read_usage` reads it. Empty: it wrote none."""
        self.length = 0
        """Characters of text, reasoning, refusal and tool calls, and `_CALL` for each tool call."""
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
        """The calls that have a name. A call without an id gets one here."""
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
        self.add_usage(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return "", ""
        # Of several choices, which only `extra` can request, the first counts.
        pieces = [self._take(choice) for choice in choices if _is_first(choice)]
        return "".join(text for text, _ in pieces), "".join(reasoning for _, reasoning in pieces)

    def add_usage(self, chunk: Mapping[str, Any]) -> None:
        """Add the token counts of a reply, a chunk, a choice (Moonshot) or an error. Later counts replace earlier ones
        of the same name."""
        for name in _USAGE_KEYS:
            if isinstance(counts := chunk.get(name), dict):
                self.usage |= {key: count for key, count in counts.items() if count is not None}

    def _take(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        self.add_usage(choice)
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
            if self.logprobs is None:
                self.logprobs = {"content": [], "refusal": None}
            self.logprobs["content"] += tokens

    def _call(self, pieces: object) -> None:
        """Add tool calls: whole ones, or pieces that carry their index."""
        for place, piece in enumerate(pieces if isinstance(pieces, list) else ()):
            if not isinstance(piece, dict):
                continue
            at = index if isinstance(index := piece.get("index"), int) else place
            if at not in self._calls:
                self._calls[at] = {"id": "", "name": "", "arguments": ""}
                self.length += _CALL
            call = self._calls[at]
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


_HALF = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """`text` with halves of surrogate pairs joined or replaced, since JSON can contain them and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # The JSON codec joins pairs. An error handler of `encode` would be called for each half, which takes a second
        # for a million halves.
        return _HALF.sub("\ufffd", json.loads(json.dumps(text)))
    return text
