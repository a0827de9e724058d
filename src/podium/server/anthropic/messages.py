"""POST /v1/messages, whole or as the stream of events that Anthropic's client assembles into a message, and the other
requests of Anthropic's clients: token counts and HEAD /.

If the caller requested thinking, a thinking block has the team's progress, or the reasoning of a worker that is called
directly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from podium.errors import APIError
from podium.server.anthropic.messages_body import MessagesBody
from podium.server.api_errors import invalid, to_anthropic_body
from podium.server.prepared_question import PreparedQuestion
from podium.server.question_body import open_question
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import body_schema, find_caller, read_body, streamed_reply
from podium.server.served_answer import ServedAnswer
from podium.server.service import Service
from podium.server.streaming import sse_event
from podium.types import Spent, ToolCall, sent_tokens

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def add_routes(app: FastAPI, service: Service) -> None:
    @app.head("/", include_in_schema=False)
    async def head() -> Response:
        return Response()

    @app.post(
        "/v1/messages",
        response_class=Response,
        responses=streamed_reply("A message", "id", "content"),
        openapi_extra=body_schema(MessagesBody),
    )
    async def create(request: Request) -> Response:
        caller = await find_caller(request)
        body = await read_body(MessagesBody, request)
        if body.max_tokens is None:
            raise invalid("The field 'max_tokens' is missing.", "max_tokens", code="missing_field")
        is_beta = "anthropic-beta" in request.headers or "beta" in request.query_params
        question = await open_question(body, service, caller, ignores_unknown=is_beta)
        writer = _MessageWriter(question, thinks=body.thinking is not None, names=body.long_names)
        headers = {"request-id": f"req_{question.trace_id}"}
        return await question.reply(writer, request, streams=body.stream, headers=headers)

    @app.post("/v1/messages/count_tokens", openapi_extra=body_schema(MessagesBody))
    async def count_tokens(request: Request) -> dict[str, Any]:
        """An estimate: every worker counts in its own way."""
        caller = await find_caller(request)
        body = await read_body(MessagesBody, request)
        messages = await body.read_messages(None, service.store, caller)
        return {"input_tokens": sent_tokens(messages, body.answer_options({}))}


def _usage(spent: Spent) -> dict[str, Any]:
    """The usage of a message: tokens and dollars of workers and planners. Input that is read from caches or written
    into them is counted separately."""
    usage = spent.usage
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_creation": None,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "inference_geo": None,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
        "service_tier": "standard",
        "cost": spent.cost_usd,
    }


def _message(trace_id: str, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{trace_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "container": None,
        "stop_details": None,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(Spent()),
    }


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": []}


def _thinking_block(text: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _redacted_block(state: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": state}


def _renamed_calls(answer: ServedAnswer, names: Mapping[str, str]) -> list[ToolCall]:
    return [call.model_copy(update={"name": names.get(call.name, call.name)}) for call in answer.tool_calls]


def _tool_use_block(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": arguments,
        "caller": {"type": "direct"},
    }


def _tool_input(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object. If the worker wrote no JSON object, its text becomes the field `arguments`."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": call.arguments}


class _MessageWriter(ReplyWriter):
    """A message, whole or as events. If the caller requested thinking blocks, it `thinks`. `names` has the caller's
    names of tools by the names that workers got."""

    def __init__(self, question: PreparedQuestion, *, thinks: bool, names: Mapping[str, str]) -> None:
        super().__init__(question.runner.pool.profiles, direct=question.direct)
        self._trace_id = question.trace_id
        self._model = question.request.model
        self._thinks = thinks
        self._names = names
        self._index = -1
        self._open: str | None = None
        """The type of the open content block. None if no block is open."""

    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        state = answer.state
        thoughts = (
            [_thinking_block(answer.reasoning, state or "")] if self._thinks and answer.reasoning else []
        )
        if state is not None and not thoughts:
            thoughts = [_redacted_block(state)]
        texts = [_text_block(answer.text)] if answer.text or not answer.tool_calls else []
        calls = [_tool_use_block(call, _tool_input(call)) for call in _renamed_calls(answer, self._names)]
        return {
            **_message(answer.trace_id, self._model),
            "content": [*thoughts, *texts, *calls],
            "stop_reason": _STOPS[answer.finish],
            "usage": _usage(answer.spent),
            "podium": answer.podium,
        }

    def _first(self) -> bytes:
        return _event("message_start", message=_message(self._trace_id, self._model)) + _event("ping")

    def heartbeat(self) -> bytes:
        return self.start() or _event("ping")

    def end(self, answer: ServedAnswer) -> bytes:
        rest = self._sent.finish(answer.text, answer.trace_id)
        has_text = rest or not (answer.tool_calls or self._open == "text")
        state = answer.state
        pieces = []
        if state is not None and self._open == "thinking":
            pieces.append(self._stop(state))
            state = None
        if has_text:
            pieces.append(self._write("text", rest))
        if state is not None:
            pieces.append(self._begin(_redacted_block(state)))
        for call in _renamed_calls(answer, self._names):
            pieces += [
                self._begin(_tool_use_block(call, {})),
                self._delta("input_json_delta", partial_json=call.arguments),
            ]
        pieces.append(self._stop())
        delta = {"stop_reason": _STOPS[answer.finish], "stop_sequence": None}
        usage = _usage(answer.spent)
        pieces.append(_event("message_delta", delta=delta, usage=usage, podium=answer.podium))
        return b"".join([*pieces, _event("message_stop")])

    def fail(self, error: APIError) -> bytes:
        return sse_event(to_anthropic_body(error), "error")

    def _write_text(self, text: str) -> bytes:
        return self._write("text", text)

    def _write_thought(self, text: str) -> bytes:
        return self._write("thinking", text) if self._thinks and self._open != "text" else b""

    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes:
        return b"" if self._direct else self._write_thought(line)

    def _write(self, kind: str, text: str) -> bytes:
        """The events that add text to a block of text or thinking. If no such block is open, one is opened."""
        empty = _text_block("") if kind == "text" else _thinking_block("")
        opening = b"" if self._open == kind else self._begin(empty)
        return opening + (self._delta(f"{kind}_delta", **{kind: text}) if text else b"")

    def _begin(self, block: dict[str, Any]) -> bytes:
        ended = self._stop()
        self._index, self._open = self._index + 1, block["type"]
        return ended + _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _stop(self, state: str = "") -> bytes:
        """The events that end the open block. A thinking block gets the answer's `state` as its signature."""
        if self._open is None:
            return b""
        signature = self._delta("signature_delta", signature=state) if self._open == "thinking" else b""
        self._open = None
        return signature + _event("content_block_stop", index=self._index)


def _event(kind: str, **fields: Any) -> bytes:
    return sse_event({"type": kind, **fields}, kind)
