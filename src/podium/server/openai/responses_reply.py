"""A response, whole: JSON-ready, made from what was asked and what was given.

@@A response in pieces: the events that OpenAI's client puts together again.

Progress is the summary of a reasoning item, which stands first; the text is a message after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.errors import APIError
from podium.executor import StepText
from podium.orchestrator import Event
from podium.server.answers import ServedAnswer, progress
from podium.server.api_errors import answer_changed
from podium.server.openai.conversation import call_id
from podium.server.openai.responses_body import INSTRUCTED
from podium.server.streaming import StreamedText, sse_event
from podium.types import AnswerOptions, Message, Profile, Question, Usage


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

    def ended(self, answer: ServedAnswer, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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


def items(answer: ServedAnswer) -> list[dict[str, Any]]:
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


def calls(answer: ServedAnswer) -> list[dict[str, Any]]:
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


class ResponseEvents:
    """The events of one response.

    Args:
        pool: the workers that plans number.
    """

    def __init__(self, frame: Frame, pool: Sequence[Profile]) -> None:
        self._frame = frame
        self._pool = pool
        self._number = 0
        self._sent = StreamedText()
        self._lines: list[str] = []
        self._reasons = self._speaks = False
        """Whether the item of progress, and that of the message, has begun."""
        self._output: list[dict[str, Any]] = []

    def begun(self) -> bytes:
        """The first events."""
        response = self._frame.response("in_progress")
        return self._event("created", response=response) + self._event("in_progress", response=response)

    def told(self, happened: Event) -> bytes:
        """The events for what happened; its end has its own."""
        if isinstance(happened, StepText):
            text = self._sent.add(happened.attempt, happened.text)
            return self._delta(text) if text else b""
        known = progress(happened, self._pool)
        if known is None:
            return b""
        line, facts = known
        begun = b"" if self._reasons else self._reasoning_begun()
        self._lines.append(f"{line}\n")
        return begun + self._event(
            "reasoning_summary_text.delta", **self._reasoning_place, delta=f"{line}\n", podium=facts
        )

    def ended(self, answer: ServedAnswer) -> bytes:
        """The last events.

        Raises:
            APIError: the answer is another than what was sent.
        """
        rest = self._sent.finish(answer.text)
        if rest is None:
            raise answer_changed(answer.trace_id)
        pieces = [self._delta(rest)] if rest or not (answer.tool_calls or self._speaks) else []
        if self._reasons:
            pieces.insert(0, self._reasoning_ended())
        if self._speaks:
            pieces.append(self._message_ended())
        pieces += [self._call(call) for call in calls(answer)]
        response = self._frame.ended(answer, self._output)
        return b"".join([*pieces, self._event(response["status"], response=response)])

    def failed(self, complaint: APIError) -> bytes:
        """The last event of a response without an answer."""
        error = {"code": complaint.code or complaint.type, "message": complaint.message}
        podium = {"trace_id": self._frame.trace_id, "status": "failed"}
        return self._event("failed", response=self._frame.response("failed", error=error, podium=podium))

    @property
    def _reasoning_place(self) -> dict[str, Any]:
        return {"item_id": f"rs_{self._frame.trace_id}", "output_index": 0, "summary_index": 0}

    @property
    def _message_place(self) -> dict[str, Any]:
        return {
            "item_id": f"msg_{self._frame.trace_id}",
            "output_index": int(self._reasons),
            "content_index": 0,
        }

    def _reasoning_begun(self) -> bytes:
        self._reasons = True
        item = {"id": f"rs_{self._frame.trace_id}", "type": "reasoning", "summary": []}
        return self._event("output_item.added", output_index=0, item=item) + self._event(
            "reasoning_summary_part.added", **self._reasoning_place, part={"type": "summary_text", "text": ""}
        )

    def _reasoning_ended(self) -> bytes:
        text = "".join(self._lines)
        part = {"type": "summary_text", "text": text}
        item = {"id": f"rs_{self._frame.trace_id}", "type": "reasoning", "summary": [part]}
        self._output.insert(0, item)
        return (
            self._event("reasoning_summary_text.done", **self._reasoning_place, text=text)
            + self._event("reasoning_summary_part.done", **self._reasoning_place, part=part)
            + self._event("output_item.done", output_index=0, item=item)
        )

    def _delta(self, text: str) -> bytes:
        begun = b"" if self._speaks else self._message_begun()
        if not text:
            return begun
        return begun + self._event("output_text.delta", **self._message_place, delta=text, logprobs=[])

    def _message_begun(self) -> bytes:
        self._speaks = True
        place = self._message_place
        item = message(self._frame.trace_id, "", "in_progress")
        return self._event("output_item.added", output_index=place["output_index"], item=item) + self._event(
            "content_part.added", **place, part=text_part("")
        )

    def _message_ended(self) -> bytes:
        place = self._message_place
        text = self._sent.text
        item = message(self._frame.trace_id, text)
        self._output.append(item)
        return (
            self._event("output_text.done", **place, text=text, logprobs=[])
            + self._event("content_part.done", **place, part=text_part(text))
            + self._event("output_item.done", output_index=place["output_index"], item=item)
        )

    def _call(self, call: Mapping[str, Any]) -> bytes:
        index = len(self._output)
        self._output.append(dict(call))
        begun = {**call, "status": "in_progress", "arguments": ""}
        place = {"item_id": call["id"], "output_index": index}
        return (
            self._event("output_item.added", output_index=index, item=begun)
            + self._event("function_call_arguments.delta", **place, delta=call["arguments"])
            + self._event(
                "function_call_arguments.done", **place, name=call["name"], arguments=call["arguments"]
            )
            + self._event("output_item.done", output_index=index, item=call)
        )

    def _event(self, kind: str, **told: Any) -> bytes:
        name = f"response.{kind}"
        number, self._number = self._number, self._number + 1
        return sse_event({"type": name, "sequence_number": number, **told}, name)
