"""A chat completion, whole: JSON-ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.server.given import Given, together
from podium.server.tools import written_call
from podium.types import Usage


def completion(
    id_: str, created: int, model: str, answers: Mapping[int, Given], failed: Sequence[Given] = ()
) -> dict[str, Any]:
    """The reply.

    Args:
        answers: at least one, by number.
        failed: questions without an answer, which cost something, too.
    """
    return {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [_choice(number, answer) for number, answer in answers.items()],
        "usage": counts((*answers.values(), *failed)),
        "podium": together((*answers.values(), *failed)),
    }


def counts(answers: Sequence[Given]) -> dict[str, Any]:
    """The usage of a completion: tokens of workers and planners."""
    taken = sum((answer.usage for answer in answers), Usage())
    return {
        "prompt_tokens": taken.input_tokens,
        "completion_tokens": taken.output_tokens,
        "total_tokens": taken.tokens,
        "prompt_tokens_details": {"cached_tokens": taken.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": taken.reasoning_tokens},
    }


def calls(answer: Given) -> list[dict[str, Any]]:
    """What the worker wants called."""
    return [written_call(call, answer.trace_id, number) for number, call in enumerate(answer.tool_calls)]


def _choice(number: int, answer: Given) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message |= {"content": answer.text or None, "tool_calls": calls(answer)}
    return {"index": number, "message": message, "logprobs": None, "finish_reason": answer.finish}
