"""The answer of a fault server's model, and its two forms in OpenAI's API: a JSON object or server-sent events.

It only makes values, which faults then spoil; `exchange` sends them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, TypeAlias

from podium.types import ToolCall, estimate_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of a model."""

    text: str
    input_tokens: int | None = None
    """By default estimated from the messages."""
    output_tokens: int | None = None
    """Reasoning tokens included. By default estimated from the text and the reasoning."""
    finish_reason: str = "stop"
    model: str | None = None
    """The model name in the reply. Default: the name in the request."""
    reasoning: str = ""
    """Text of the reply's `reasoning_content`, as vLLM and others have it."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    """In the reply only if there are any, as OpenRouter writes them."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of the caller's tools. With any, the finish reason is "tool_calls"."""
    logprobs: Mapping[str, Any] | None = None
    """The choice's `logprobs`; of a stream, in one event before the text."""


AnswerLike: TypeAlias = str | Answer
AnswerFunction: TypeAlias = Callable[
    [list[dict[str, Any]], dict[str, Any]], AnswerLike | Awaitable[AnswerLike]
]
"""From the messages and the whole body of a request, both as sent, to the model's answer."""


def echo(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """The default answer: it repeats the beginning of the last message."""
    return f"You said: {content_text(messages[-1].get('content'))[:80]}" if messages else "You said nothing."


async def make_answer(answer_source: AnswerLike | AnswerFunction, body: dict[str, Any]) -> Answer:
    """The answer to a request, with all token counts filled in."""
    messages = body["messages"]
    written: Any = answer_source(messages, body) if callable(answer_source) else answer_source
    if isawaitable(written):
        written = await written
    answer = written if isinstance(written, Answer) else Answer(written)
    reasoning_tokens = answer.reasoning_tokens or estimate_tokens(answer.reasoning)
    return replace(
        answer,
        input_tokens=count_input(messages) if answer.input_tokens is None else answer.input_tokens,
        output_tokens=reasoning_tokens + estimate_tokens(answer.text)
        if answer.output_tokens is None
        else answer.output_tokens,
        finish_reason="tool_calls" if answer.tool_calls else answer.finish_reason,
        model=answer.model or body["model"],
        reasoning_tokens=reasoning_tokens,
    )


def count_input(messages: list[dict[str, Any]]) -> int:
    """The estimated tokens of `messages`."""
    return sum(estimate_tokens(content_text(message.get("content"))) for message in messages)


def content_text(content: object) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


DONE = b"data: [DONE]\n\n"

_PIECE = 16
"""Characters in an event of a stream; more if the text would need more than `_MOST_PIECES` events."""
_MOST_PIECES = 256


def completion(answer: Answer, number: int) -> dict[str, Any]:
    """The whole reply to a request without streaming; `number` becomes part of its id."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message |= {"content": answer.text or None, "tool_calls": _calls(answer)}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": answer.logprobs,
                "finish_reason": answer.finish_reason,
            }
        ],
        "usage": usage(answer),
    }


def chunks(answer: Answer, number: int, *, with_usage: bool) -> list[dict[str, Any]]:
    """The events of a streamed reply, in order, without the closing `[DONE]`."""
    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": answer.model,
    }
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(answer.reasoning)]
    deltas += [{"content": piece} for piece in pieces(answer.text)]
    for index, call in enumerate(_calls(answer)):
        begun = call | {"index": index, "function": call["function"] | {"arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces(call["function"]["arguments"])
        ]
    events = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if answer.logprobs is not None:
        first: dict[str, Any] = {"index": 0, "delta": deltas[0], "finish_reason": None}
        events[0] = head | {"choices": [first | {"logprobs": answer.logprobs}]}
    events.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]})
    if with_usage:
        events = [chunk | {"usage": None} for chunk in events]
        events.append(head | {"choices": [], "usage": usage(answer)})
    return events


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]


def usage(answer: Answer) -> dict[str, Any]:
    """The `usage` of an answer whose token counts are all known."""
    details = {"cached_tokens": answer.cached_tokens}
    if answer.cache_write_tokens:
        details["cache_write_tokens"] = answer.cache_write_tokens
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": (answer.input_tokens or 0) + (answer.output_tokens or 0),
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def pieces(text: str) -> list[str]:
    """Split `text` into pieces of a few words, as models stream it."""
    size = max(_PIECE, -(-len(text) // _MOST_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def event(payload: object) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(payload) + b"\n\n"


def error(message: str, kind: str, code: str | int | None = None) -> dict[str, Any]:
    """An error in the form of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def encoded(payload: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(payload, separators=(",", ":")).encode()


class PromptCache:
    """An answer with the token counts of a prompt cache: `FaultServer(PromptCache(capable))`.

    Each model has a cache of its own, which forgets nothing. Requests share a prefix if they have the same tools and
    begin with the same messages.

    Args:
        answer: the answer itself, as a `FaultServer` takes it.
        least: tokens of the shortest prefix that is kept.
        counts_writes: whether the reply counts what was written into the cache, as for Anthropic's models.
    """

    def __init__(
        self, answer: AnswerLike | AnswerFunction, *, least: int = 1024, counts_writes: bool = False
    ) -> None:
        self._answer = answer
        self._least = least
        self._counts_writes = counts_writes
        self._kept: dict[str, int] = {}
        """Each prefix that was sent, as JSON, and its tokens."""

    async def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        """The answer. The longest prefix that an earlier request sent counts as cached tokens."""
        sent = {
            json.dumps([body["model"], body.get("tools"), messages[:length]]): count_input(messages[:length])
            for length in range(1, len(messages) + 1)
        }
        read = max((self._kept.get(prefix, 0) for prefix in sent), default=0)
        self._kept |= {prefix: tokens for prefix, tokens in sent.items() if tokens >= self._least}
        total = count_input(messages)
        written = total - read if self._counts_writes and total >= self._least else 0
        answer = await make_answer(self._answer, body)
        return replace(answer, cached_tokens=read, cache_write_tokens=written)
