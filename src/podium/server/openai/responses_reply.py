"""The JSON of a response, and the stream of events that OpenAI's client assembles into one.

A reasoning item, whose summary reports progress, comes first. The message with the answer's text follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podium.errors import APIError
from podium.server.conversation import requested_calls, returned_state
from podium.server.openai.responses_body import RESPONSE_KEY, EchoedFields
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import ChatRequest, full_conversation
from podium.server.served_answers import ServedAnswer
from podium.server.streaming import DONE, sse_event
from podium.trace import Trace
from podium.types import AnswerOptions, Profile, Question, Usage


@dataclass(frozen=True, slots=True)
class ResponseFrame:
    """The fields of a response that repeat its request."""

    trace_id: str
    question: Question
    metadata: Mapping[str, str]
    user: str | None
    store: bool
    echoed: EchoedFields

    @classmethod
    def of_request(cls, trace_id: str, request: ChatRequest) -> ResponseFrame:
        """The frame of a response that is made now."""
        metadata = request.metadata
        echoed = EchoedFields.model_validate_json(metadata[RESPONSE_KEY])
        return cls(trace_id, request.question, metadata, request.user, request.keep, echoed)

    @classmethod
    def of_trace(cls, trace: Trace) -> ResponseFrame:
        """The frame of a stored response. A trace of another API has no echoed fields, and not the name of the model
        that its request used."""
        model = trace.planner.removeprefix("single:") if trace.layout == "plain" else "podium"
        started = int(datetime.fromisoformat(trace.started_at).timestamp())
        echoed = EchoedFields.read(trace.metadata) or EchoedFields(created=started, model=model)
        return cls(trace.id, trace.question, trace.metadata, trace.user, store=True, echoed=echoed)

    def response(self, status: str, **fields: Any) -> dict[str, Any]:
        """The response object with a status, and with output, usage, error, incomplete_details and podium, as far as
        they are known."""
        options, history, echoed = self.question.options, self.question.history, self.echoed
        return {
            "id": f"resp_{self.trace_id}",
            "object": "response",
            "created_at": echoed.created,
            "completed_at": None,
            "status": status,
            "background": echoed.background,
            "error": None,
            "frequency_penalty": 0.0,
            "incomplete_details": None,
            "instructions": history[0].content if echoed.instructed and history else None,
            "max_output_tokens": options.max_tokens,
            "max_tool_calls": None,
            "metadata": {name: value for name, value in self.metadata.items() if name != RESPONSE_KEY},
            "model": echoed.model,
            "output": [],
            "parallel_tool_calls": options.parallel_tool_calls is not False,
            "presence_penalty": 0.0,
            "previous_response_id": echoed.previous,
            "prompt_cache_key": echoed.prompt_cache_key,
            "reasoning": {"effort": None, "summary": None},
            "safety_identifier": echoed.safety_identifier,
            "service_tier": "default",
            "store": self.store,
            "temperature": 1.0 if options.temperature is None else options.temperature,
            "text": {"format": _format(options)},
            "tool_choice": _choice(options),
            "tools": [_flat_tool(tool) for tool in options.tools],
            "top_logprobs": 0,
            "top_p": 1.0 if options.top_p is None else options.top_p,
            "truncation": "disabled",
            "usage": None,
            "user": self.user,
            **fields,
        }

    def final(self, answer: ServedAnswer, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The final response object, with its output items."""
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish)
        return self.response(
            "completed" if reason is None else "incomplete",
            completed_at=self.echoed.created + int(answer.podium.get("seconds", 0.0))
            if reason is None
            else None,
            incomplete_details=None if reason is None else {"reason": reason},
            output=list(output),
            usage=response_usage(answer.usage, answer.cost_usd),
            podium=answer.podium,
        )


def input_items(question: Question, trace_id: str) -> list[dict[str, Any]]:
    """The items that stand for a question and its history, oldest first."""
    items: list[dict[str, Any]] = []
    for number, message in enumerate(full_conversation(question)):
        head = {"id": f"in_{trace_id}_{number}", "status": "completed"}
        kind = "output_text" if message.role == "assistant" else "input_text"
        parts: list[dict[str, Any]] = [{"type": kind, "text": message.content}] if message.content else []
        parts += [{"type": "input_image", "image_url": url, "detail": "auto"} for url in message.images]
        if message.role == "tool":
            result = {"call_id": message.tool_call_id, "output": message.content}
            items.append({"type": "function_call_output", **head, **result})
        elif parts:
            items.append({"type": "message", **head, "role": message.role, "content": parts})
        items += [
            {
                "type": "function_call",
                "id": f"{head['id']}_{index}",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
            for index, call in enumerate(message.tool_calls)
        ]
    return items


def output_items(answer: ServedAnswer) -> list[dict[str, Any]]:
    """The output items of an answer: the worker's reasoning, the message and the tool calls."""
    messages = [message(answer.trace_id, answer.text)] if answer.text or not answer.tool_calls else []
    if answer.logprobs and messages:
        messages[0]["content"][0]["logprobs"] = answer.logprobs["content"]
    state = returned_state(answer)
    thoughts = [reasoning(answer.trace_id, answer.reasoning, state)] if answer.reasoning or state else []
    return [*thoughts, *messages, *function_calls(answer)]


def reasoning(trace_id: str, text: str, state: str | None) -> dict[str, Any]:
    """A reasoning item: the team's progress, or a worker's reasoning, with the answer's state for its provider."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    item = {"id": f"rs_{trace_id}", "type": "reasoning", "summary": summary}
    return item if state is None else {**item, "encrypted_content": state}


def message(trace_id: str, text: str, status: str = "completed") -> dict[str, Any]:
    """The output item of an answer's text."""
    content = [text_part(text)] if status == "completed" else []
    return {
        "id": f"msg_{trace_id}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def text_part(text: str) -> dict[str, Any]:
    """The one content part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def function_calls(answer: ServedAnswer) -> list[dict[str, Any]]:
    """The output items of the tool calls of an answer."""
    return [
        {
            "id": f"fc_{answer.trace_id}_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for number, call in enumerate(requested_calls(answer))
    ]


def response_usage(usage: Usage, cost_usd: float) -> dict[str, Any]:
    """The usage of a response: tokens and dollars of workers and planners."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.tokens,
        "cost": cost_usd,
    }


def _format(options: AnswerOptions) -> dict[str, Any]:
    wanted = options.response_format or {"type": "text"}
    if wanted["type"] != "json_schema":
        return wanted
    return {"type": "json_schema", **wanted["json_schema"]}


def _choice(options: AnswerOptions) -> str | dict[str, Any]:
    choice = options.tool_choice or "auto"
    return choice if isinstance(choice, str) else {"type": "function", "name": choice["function"]["name"]}


def _flat_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "description": None, "parameters": None, "strict": None, **tool["function"]}


class ResponseWriter(ReplyWriter):
    """A response, whole or as events. Its `frame` has the fields that repeat the request."""

    def __init__(self, frame: ResponseFrame, pool: Sequence[Profile], *, direct: bool) -> None:
        super().__init__(pool, direct=direct)
        self._frame = frame
        # The first two events have the numbers before, since they may be made later than others.
        self._number = 2
        self._lines: list[str] = []
        self._reasoning_started = self._message_started = False
        self._output: list[dict[str, Any]] = []

    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        return self._frame.final(answer, output_items(answer))

    def _first(self) -> bytes:
        response = self._frame.response("in_progress")
        return _numbered(0, "created", response=response) + _numbered(1, "in_progress", response=response)

    def queue(self) -> bytes:
        """The first events of a response that is made in the background. `begin` makes the next event."""
        response = self._frame.response("queued")
        return _numbered(0, "created", response=response) + _numbered(1, "queued", response=response)

    def begin(self) -> bytes:
        """The event that a queued response is being made."""
        return self._event("in_progress", response=self._frame.response("in_progress"))

    def cancel(self) -> bytes:
        """The last events of a response that was cancelled. OpenAI's clients know no other fitting events."""
        return self._event("failed", response=self._frame.response("cancelled")) + DONE

    def _write_text(self, text: str) -> bytes:
        return self._delta(text)

    def _write_thought(self, text: str) -> bytes:
        late = self._message_started and not self._reasoning_started
        return b"" if late else self._think(text)

    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes:
        return b"" if self._direct else self._think(line, podium=facts)

    def _think(self, text: str, **fields: Any) -> bytes:
        opening = b"" if self._reasoning_started else self._start_reasoning()
        self._lines.append(text)
        return opening + self._event(
            "reasoning_summary_text.delta", **self._reasoning_position, delta=text, **fields
        )

    def end(self, answer: ServedAnswer) -> bytes:
        rest = self._sent.finish(answer.text, answer.trace_id)
        state = returned_state(answer)
        pieces = [self._end_reasoning(state)] if self._reasoning_started else []
        if rest or not (answer.tool_calls or self._message_started):
            pieces.append(self._delta(rest))
        if self._message_started:
            pieces.append(self._end_message())
        if state is not None and not self._reasoning_started:
            pieces.append(self._late_state(state))
        pieces += [self._call(call) for call in function_calls(answer)]
        response = self._frame.final(answer, self._output)
        return b"".join([*pieces, self._event(response["status"], response=response), DONE])

    def fail(self, error: APIError) -> bytes:
        body = {"code": error.code or error.type, "message": error.message}
        podium = {"trace_id": self._frame.trace_id, "status": "failed"}
        return (
            self._event("failed", response=self._frame.response("failed", error=body, podium=podium)) + DONE
        )

    @property
    def _reasoning_position(self) -> dict[str, Any]:
        return {"item_id": f"rs_{self._frame.trace_id}", "output_index": 0, "summary_index": 0}

    @property
    def _message_position(self) -> dict[str, Any]:
        return {
            "item_id": f"msg_{self._frame.trace_id}",
            "output_index": int(self._reasoning_started),
            "content_index": 0,
        }

    def _start_reasoning(self) -> bytes:
        self._reasoning_started = True
        item = {"id": f"rs_{self._frame.trace_id}", "type": "reasoning", "summary": []}
        return self._event("output_item.added", output_index=0, item=item) + self._event(
            "reasoning_summary_part.added",
            **self._reasoning_position,
            part={"type": "summary_text", "text": ""},
        )

    def _late_state(self, state: str) -> bytes:
        item = reasoning(self._frame.trace_id, "", state)
        index = len(self._output)
        self._output.append(item)
        return self._event("output_item.added", output_index=index, item=item) + self._event(
            "output_item.done", output_index=index, item=item
        )

    def _end_reasoning(self, state: str | None) -> bytes:
        text = "".join(self._lines)
        item = reasoning(self._frame.trace_id, text, state)
        part = item["summary"][0]
        self._output.insert(0, item)
        return (
            self._event("reasoning_summary_text.done", **self._reasoning_position, text=text)
            + self._event("reasoning_summary_part.done", **self._reasoning_position, part=part)
            + self._event("output_item.done", output_index=0, item=item)
        )

    def _delta(self, text: str) -> bytes:
        opening = b"" if self._message_started else self._start_message()
        if not text:
            return opening
        return opening + self._event("output_text.delta", **self._message_position, delta=text, logprobs=[])

    def _start_message(self) -> bytes:
        self._message_started = True
        position = self._message_position
        item = message(self._frame.trace_id, "", "in_progress")
        return self._event(
            "output_item.added", output_index=position["output_index"], item=item
        ) + self._event("content_part.added", **position, part=text_part(""))

    def _end_message(self) -> bytes:
        position = self._message_position
        text = self._sent.text
        item = message(self._frame.trace_id, text)
        self._output.append(item)
        return (
            self._event("output_text.done", **position, text=text, logprobs=[])
            + self._event("content_part.done", **position, part=text_part(text))
            + self._event("output_item.done", output_index=position["output_index"], item=item)
        )

    def _call(self, call: Mapping[str, Any]) -> bytes:
        index = len(self._output)
        self._output.append(dict(call))
        started = {**call, "status": "in_progress", "arguments": ""}
        position = {"item_id": call["id"], "output_index": index}
        return (
            self._event("output_item.added", output_index=index, item=started)
            + self._event("function_call_arguments.delta", **position, delta=call["arguments"])
            + self._event(
                "function_call_arguments.done", **position, name=call["name"], arguments=call["arguments"]
            )
            + self._event("output_item.done", output_index=index, item=call)
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return _numbered(number, kind, **fields)


def _numbered(number: int, kind: str, **fields: Any) -> bytes:
    name = f"response.{kind}"
    return sse_event({"type": name, "sequence_number": number, **fields}, name)
