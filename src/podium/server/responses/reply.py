"""A response, whole: JSON-ready, made from what was asked and what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.server.given import Given
from podium.server.responses.reading import INSTRUCTED
from podium.server.tools import call_id
from podium.types import AnswerOptions, Message, Question, Usage


@dataclass(frozen=True, slots=True)
class Frame:
    """What a response says of its request, from the beginning."""

    trace_id: str
    created: int
    model: str
    question: Question
    metadata: Mapping[str, str]
    user: str | None
    store: bool
    previous: str | None

    def response(self, status: str, **told: Any) -> dict[str, Any]:
        """The object as it stands.

        Args:
            told: what is known besides: output, usage, error, incomplete_details, podium.
        """
        options = self.question.options
        return {
            "id": f"resp_{self.trace_id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": self._instructions,
            "max_output_tokens": options.max_tokens,
            "metadata": {name: value for name, value in self.metadata.items() if name != INSTRUCTED},
            "model": self.model,
            "output": [],
            "parallel_tool_calls": options.parallel_tool_calls is not False,
            "previous_response_id": self.previous,
            "reasoning": {"effort": None, "summary": None},
            "service_tier": "default",
            "store": self.store,
            "temperature": options.temperature,
            "text": {"format": _format(options)},
            "tool_choice": _choice(options),
            "tools": [_flat(tool) for tool in options.tools],
            "top_p": options.top_p,
            "truncation": "disabled",
            "usage": None,
            "user": self.user,
            **told,
        }

    def ended(self, answer: Given, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The object in the end, with its items."""
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish)
        return self.response(
            "completed" if cut is None else "incomplete",
            incomplete_details=None if cut is None else {"reason": cut},
            output=list(output),
            usage=counts(answer.usage),
            podium=answer.podium,
        )

    @property
    def _instructions(self) -> str | None:
        history: Sequence[Message] = self.question.history
        return history[0].content if INSTRUCTED in self.metadata and history else None


def items(answer: Given) -> list[dict[str, Any]]:
    """What was answered: a message, unless there are calls in its place."""
    said = [message(answer.trace_id, answer.text)] if answer.text or not answer.tool_calls else []
    return [*said, *calls(answer)]


def message(trace_id: str, text: str, status: str = "completed") -> dict[str, Any]:
    """The item of an answer's text."""
    content = [text_part(text)] if status == "completed" else []
    return {
        "id": f"msg_{trace_id}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def text_part(text: str) -> dict[str, Any]:
    """The one part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def calls(answer: Given) -> list[dict[str, Any]]:
    """The items of what the worker wants called."""
    return [
        {
            "id": f"fc_{answer.trace_id}_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id(answer.trace_id, number),
            "name": call.name,
            "arguments": call.arguments,
        }
        for number, call in enumerate(answer.tool_calls)
    ]


def counts(usage: Usage) -> dict[str, Any]:
    """The usage of a response: tokens of workers and planners."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.tokens,
    }


def _format(options: AnswerOptions) -> dict[str, Any]:
    wanted = options.response_format or {"type": "text"}
    if wanted["type"] != "json_schema":
        return wanted
    return {"type": "json_schema", **wanted["json_schema"]}


def _choice(options: AnswerOptions) -> str | dict[str, Any]:
    choice = options.tool_choice or "auto"
    return choice if isinstance(choice, str) else {"type": "function", "name": choice["function"]["name"]}


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "description": None, "parameters": None, "strict": None, **tool["function"]}
