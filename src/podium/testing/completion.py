"""An answer as OpenAI writes it: one JSON object, or server-sent events; and its form of an error.

Plain tables, which faults take and spoil. It sends nothing.
"""

from __future__ import annotations

import json
import time
from typing import Any

from podium.testing.answer import Answer

DONE = b"data: [DONE]\n\n"

_PIECE = 16
"""Characters of an event, where the text is not long."""
_MOST_PIECES = 256


def completion(answer: Answer, number: int) -> dict[str, Any]:
    """The reply to a request that is not streamed; `number` makes its id."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.model,
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
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
    told = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    told.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]})
    if with_usage:
        told = [chunk | {"usage": None} for chunk in told]
        told.append(head | {"choices": [], "usage": usage(answer)})
    return told


def usage(answer: Answer) -> dict[str, Any]:
    """The counts of an answer that has them all."""
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": (answer.input_tokens or 0) + (answer.output_tokens or 0),
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def pieces(text: str) -> list[str]:
    """`text` in pieces of some words' length, as models stream it; together they are the text."""
    size = max(_PIECE, -(-len(text) // _MOST_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def event(payload: object) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(payload) + b"\n\n"


def error(message: str, kind: str, code: str | int | None = None) -> dict[str, Any]:
    """An error as OpenAI and those who follow it write it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def encoded(payload: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(payload, separators=(",", ":")).encode()
