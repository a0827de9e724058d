"""The JSON of a response, and the stream of events that OpenAI's client assembles into one.

A reasoning item, whose summary reports progress, comes first. The message with the answer's text follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from podium.errors import APIError
from podium.server.openai.responses_body import RESPONSE_KEY, EchoedFields
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import ChatRequest
from podium.server.served_answer import ServedAnswer
from podium.server.streaming import DONE, sse_event
from podium.trace import Trace
from podium.types import AnswerOptions, Profile, Question, Spent


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

    def final(self, answer: ServedAnswer, output: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The final response object. Default output items: those of the answer."""
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish)
        return self.response(
            "completed" if reason is None else "incomplete",
            completed_at=self.echoed.created + int(answer.details.seconds) if reason is None else None,
            incomplete_details=None if reason is None else {"reason": reason},
            output=list(output) or output_items(answer),
            usage=response_usage(answer.spent),
            podium=answer.podium,
        )


def output_items(
    answer: ServedAnswer, *, text: str | None = None, thoughts: str | None = None
) -> list[dict[str, Any]]:
    """The output items of an answer: reasoning, the message and the tool calls. A stream gives the text and thoughts
    that it has written."""
    trace_id, state = answer.trace_id, answer.state
    text = answer.text if text is None else text
    thoughts = answer.reasoning if thoughts is None else thoughts
    items = [_reasoning(trace_id, thoughts)] if thoughts or state else []
    if state is not None:
        items[0]["encrypted_content"] = state
    if text or not answer.tool_calls:
        items.append(_message(trace_id, text))
        if answer.logprobs:
            items[-1]["content"][0]["logprobs"] = answer.logprobs["content"]
    return items + [
        {
            "id": f"fc_{trace_id}_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for number, call in enumerate(answer.tool_calls)
    ]


def _reasoning(trace_id: str, text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": f"rs_{trace_id}", "type": "reasoning", "summary": summary}


def _message(trace_id: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{trace_id}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def response_usage(spent: Spent) -> dict[str, Any]:
    usage = spent.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.tokens,
        "cost": spent.cost_usd,
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


class _TextEvents(NamedTuple):
    """The names of the events about the text of an item."""

    part: str
    text: str
    index_field: str
    """The field with the index of the item's only part."""
    fields: Mapping[str, Any] = {}


_TEXT_EVENTS = {
    "message": _TextEvents("content_part", "output_text", "content_index", {"logprobs": []}),
    "reasoning": _TextEvents("reasoning_summary_part", "reasoning_summary_text", "summary_index"),
}
_UNWRITTEN: Mapping[str, Mapping[str, Any]] = {
    "message": {"status": "in_progress", "content": []},
    "reasoning": {"summary": []},
    "function_call": {"status": "in_progress", "arguments": ""},
}
"""The fields of an item, by its type, in the event that begins it."""


class ResponseWriter(ReplyWriter):
    """A response, whole or as events. Its `frame` has the fields that repeat the request."""

    def __init__(self, frame: ResponseFrame, pool: Sequence[Profile], *, direct: bool) -> None:
        super().__init__(pool, direct=direct)
        self._frame = frame
        # The first two events have the numbers before, since they may be made later than others.
        self._number = 2
        self._lines: list[str] = []
        self._indices: dict[str, int] = {}
        """The index of each item that was begun, by its id."""

    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        return self._frame.final(answer)

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
        return self._delta(_message(self._frame.trace_id, text), text)

    def _write_thought(self, text: str) -> bytes:
        late = bool(self._sent.text) and not self._lines
        return b"" if late else self._think(text)

    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes:
        return b"" if self._direct else self._think(line, podium=facts)

    def _think(self, text: str, **fields: Any) -> bytes:
        self._lines.append(text)
        return self._delta(_reasoning(self._frame.trace_id, text), text, **fields)

    def end(self, answer: ServedAnswer) -> bytes:
        rest = self._sent.finish(answer.text, answer.trace_id)
        items = output_items(answer, text=self._sent.text, thoughts="".join(self._lines))
        items.sort(key=lambda item: self._indices.get(item["id"], len(items)))
        events = []
        for item in items:
            if item["id"] not in self._indices:
                events.append(self._open(item))
            if rest and item["type"] == "message":
                events.append(self._delta(item, rest))
            events.append(self._close(item))
        response = self._frame.final(answer, items)
        return b"".join([*events, self._event(response["status"], response=response), DONE])

    def fail(self, error: APIError) -> bytes:
        body = {"code": error.code or error.type, "message": error.message}
        podium = {"trace_id": self._frame.trace_id, "status": "failed"}
        return (
            self._event("failed", response=self._frame.response("failed", error=body, podium=podium)) + DONE
        )

    def _open(self, item: Mapping[str, Any]) -> bytes:
        kind = item["type"]
        index = self._indices[item["id"]] = len(self._indices)
        added = self._event("output_item.added", output_index=index, item={**item, **_UNWRITTEN[kind]})
        if (part := _text_part(item)) is None:
            return added
        names = _TEXT_EVENTS[kind]
        empty = {**part, "text": "", **names.fields}
        return added + self._event(f"{names.part}.added", **self._position(item), part=empty)

    def _delta(self, item: Mapping[str, Any], text: str, **fields: Any) -> bytes:
        """The events that add text to an item, which is begun if it was not."""
        opening = b"" if item["id"] in self._indices else self._open(item)
        names = _TEXT_EVENTS[item["type"]]
        position = self._position(item)
        return opening + self._event(f"{names.text}.delta", **position, delta=text, **names.fields, **fields)

    def _close(self, item: Mapping[str, Any]) -> bytes:
        position, events = self._position(item), b""
        if item["type"] == "function_call":
            call = "function_call_arguments"
            written = {"name": item["name"], "arguments": item["arguments"]}
            events = self._event(f"{call}.delta", **position, delta=item["arguments"])
            events += self._event(f"{call}.done", **position, **written)
        elif (part := _text_part(item)) is not None:
            names = _TEXT_EVENTS[item["type"]]
            events = self._event(f"{names.text}.done", **position, text=part["text"], **names.fields)
            events += self._event(f"{names.part}.done", **position, part=part)
        return events + self._event("output_item.done", output_index=position["output_index"], item=item)

    def _position(self, item: Mapping[str, Any]) -> dict[str, Any]:
        position: dict[str, Any] = {"item_id": item["id"], "output_index": self._indices[item["id"]]}
        return (
            position
            if item["type"] == "function_call"
            else {**position, _TEXT_EVENTS[item["type"]].index_field: 0}
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return _numbered(number, kind, **fields)


def _text_part(item: Mapping[str, Any]) -> dict[str, Any] | None:
    parts = item.get("content") or item.get("summary")
    return parts[0] if parts else None


def _numbered(number: int, kind: str, **fields: Any) -> bytes:
    name = f"response.{kind}"
    return sse_event({"type": name, "sequence_number": number, **fields}, name)
