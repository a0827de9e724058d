"""POST /v1/chat/completions: from the request's bytes to the reply, whole or as a stream of chunks. And GET /v1/models:
the names that a request's `model` may have, and the planner or worker behind each.

A stream reports progress twice: as `reasoning_content`, which clients show or ignore, and in the field `podium` of a
chunk, for programs.
"""

from __future__ import annotations

import json
import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from podium.errors import APIError
from podium.server.answer_state import KEY
from podium.server.api_errors import to_body
from podium.server.keys import Caller
from podium.server.openai.chat_body import ChatBody
from podium.server.prepared_question import PreparedQuestion
from podium.server.question_body import open_question
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import RequestCaller, body_schema, find_caller, read_body, streamed_reply
from podium.server.served_answer import ServedAnswer
from podium.server.service import Service
from podium.server.streaming import DONE, sse_event
from podium.server.worker_selection import unknown_model
from podium.types import Spent
from podium.workers.chat.provider_state import read_state
from podium.workers.chat.tool_calls import CALL_STATE_KEYS


def add_routes(app: FastAPI, service: Service) -> None:
    @app.post(
        "/v1/chat/completions",
        response_class=Response,
        responses=streamed_reply("A chat completion", "id", "object", "model", "choices", "usage", "podium"),
        openapi_extra=body_schema(ChatBody),
    )
    async def complete(request: Request) -> Response:
        caller = await find_caller(request)
        body = await read_body(ChatBody, request)
        question = await open_question(body, service, caller)
        usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return await question.reply(_Completion(question, with_usage=usage), request, streams=body.stream)

    @app.get("/v1/models")
    async def models(caller: RequestCaller) -> dict[str, Any]:
        return {"object": "list", "data": list(_models(service, caller).values())}

    @app.get("/v1/models/{name:path}")
    async def model(caller: RequestCaller, name: str) -> dict[str, Any]:
        entry = _models(service, caller).get(name)
        if entry is None:
            raise unknown_model(name, service.pool, caller)
        return entry


def _models(service: Service, caller: Caller) -> dict[str, dict[str, Any]]:
    pool, planners = service.pool, service.planners
    allowed = caller.allowed(pool.names)
    kinds: dict[str, dict[str, Any]] = {
        profile.name: {"kind": "worker", "profile": profile.model_dump(mode="json", exclude={"rating"})}
        for profile in pool.profiles
        if profile.name in allowed
    }
    kinds["podium"] = {"kind": "planner", "planner": planners.configured}
    for name in planners.names:
        # A request reaches a worker of the pool before a planner of the same name.
        if f"podium/{name}" not in pool.names:
            kinds[f"podium/{name}"] = {"kind": "planner", "planner": name}
    # OpenAI's format requires a number, and models here have no creation time.
    return {
        name: {"id": name, "object": "model", "created": 0, "owned_by": "podium", "podium": kind}
        for name, kind in kinds.items()
    }


def _usage(spent: Spent) -> dict[str, Any]:
    usage = spent.usage
    return {
        "cost": spent.cost_usd,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _tool_calls(answer: ServedAnswer) -> list[dict[str, Any]]:
    """The tool calls of an answer, as JSON. The first carries the state of the whole answer."""
    calls = []
    state = answer.state
    for number, call in enumerate(answer.tool_calls):
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
        extra = dict(read_state(call.provider_state, CALL_STATE_KEYS).get("extra_content") or {})
        if number == 0 and state is not None:
            extra[KEY] = state
        if extra:
            calls[-1]["extra_content"] = extra
    return calls


def _extra_content(answer: ServedAnswer) -> dict[str, Any]:
    """The field of a message without tool calls that carries the state of the answer. It is empty if there is no
    state."""
    state = None if answer.tool_calls else answer.state
    return {} if state is None else {"extra_content": {KEY: state}}


def _choice(answer: ServedAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text,
        "refusal": None,
        "annotations": [],
    }
    if answer.tool_calls:
        message |= {"content": answer.text or None, "tool_calls": _tool_calls(answer)}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    message |= _extra_content(answer)
    return {"index": 0, "message": message, "logprobs": answer.logprobs, "finish_reason": answer.finish}


class _Completion(ReplyWriter):
    """A completion. With `with_usage`, the last chunk of a stream reports the usage."""

    def __init__(self, question: PreparedQuestion, *, with_usage: bool) -> None:
        super().__init__(question.runner.pool.profiles, direct=question.direct)
        self._head = {
            "id": f"chatcmpl-{question.trace_id}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": question.request.model,
        }
        # All chunks of a completion have the same beginning and end, so both parts are encoded once.
        chunk = self._head | {"object": "chat.completion.chunk"}
        self._start = b"data: " + json.dumps(chunk, separators=(",", ":")).encode()[:-1]
        self._end = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._with_usage = with_usage
        self._begun = False

    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        return {
            **self._head,
            "choices": [_choice(answer)],
            "usage": _usage(answer.spent),
            "podium": answer.podium,
        }

    def end(self, answer: ServedAnswer) -> bytes:
        chunks = []
        if rest := self._sent.finish(answer.text, answer.trace_id):
            chunks.append(self._chunk({"content": rest}))
        if answer.logprobs:
            chunks.append(self._chunk({"content": ""}, logprobs=answer.logprobs))
        if calls := [{"index": index, **call} for index, call in enumerate(_tool_calls(answer))]:
            chunks.append(self._chunk({"tool_calls": calls}))
        if extra := _extra_content(answer):
            chunks.append(self._chunk(extra))
        if self._with_usage:
            # Only clients that requested usage expect a chunk without choices.
            chunks.append(self._chunk({}, finish=answer.finish))
            fields = {"choices": [], "usage": _usage(answer.spent), "podium": answer.podium}
            chunks.append(sse_event(self._head | {"object": "chat.completion.chunk"} | fields))
        else:
            chunks.append(self._chunk({}, finish=answer.finish, podium=answer.podium))
        return b"".join([*chunks, DONE])

    def fail(self, error: APIError) -> bytes:
        return sse_event(to_body(error))

    def _write_text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def _write_thought(self, text: str) -> bytes:
        # Clients treat reasoning that follows text as the end of the text.
        return b"" if self._sent.text else self._chunk({"reasoning_content": text})

    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes:
        quiet = self._direct or bool(self._sent.text)
        return self._chunk({} if quiet else {"reasoning_content": line}, podium=facts)

    def _chunk(
        self,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        podium: dict[str, Any] | None = None,
        logprobs: dict[str, Any] | None = None,
    ) -> bytes:
        """A chunk of the answer, after the chunk that begins the answer."""
        opening = b""
        if not self._begun:
            self._begun = True
            opening = self._chunk({"role": "assistant", "content": ""})
        piece = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        body: dict[str, Any] = {"choices": [piece]}
        if podium is not None:
            body["podium"] = podium
        return (
            opening + self._start + b"," + json.dumps(body, separators=(",", ":")).encode()[1:-1] + self._end
        )
