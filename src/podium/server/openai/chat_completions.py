"""POST /v1/chat/completions: from bytes to bytes.

@@A chat completion, whole: JSON-ready.

@@A chat completion in pieces: the events of one answer as chunks.

Progress is told as `reasoning_content`, which clients show or ignore, and for programs in the chunk's own `podium`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.errors import PodiumError
from podium.executor import StepText
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.server.answers import (
    ServedAnswer,
    combined_details,
    from_plan,
    from_trace,
    no_answer_error,
    progress,
)
from podium.server.api_errors import answer_changed, error_responses, to_api_error, to_body
from podium.server.keys import Caller
from podium.server.openai.chat_body import ChatBody, read_chat
from podium.server.openai.conversation import to_call
from podium.server.requests import ChatRequest, parse_body
from podium.server.service import Service, answer_all, stream_answers
from podium.server.streaming import DONE, EventStream, StreamedText, Write, cancel_on_disconnect, sse_event
from podium.types import Profile, Usage

_REFUSALS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_ANSWERED = {
    "description": "A chat completion; with `stream`, its chunks as server-sent events.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["id", "object", "created", "model", "choices", "usage", "podium"],
            }
        },
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def routes(service: Service) -> APIRouter:
    """The route on `service`."""
    router = APIRouter()
    wanted = {"required": True, "content": {"application/json": {"schema": ChatBody.model_json_schema()}}}

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses={200: _ANSWERED, **error_responses(*_REFUSALS)},
        openapi_extra={"requestBody": wanted},
    )
    async def complete(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(ChatBody, await request.body(), service.parse_lock)
        asked = await read_chat(body, service, caller)
        completing = _Completing(
            service,
            asked,
            caller,
            await service.orchestrator(asked, caller),
            ids=tuple(uuid4().hex for _ in range(body.n or 1)),
            created=int(time.time()),
        )
        if body.stream:
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            return completing.streamed(with_usage=usage)
        async with cancel_on_disconnect(request.receive):
            return await completing.whole()

    return router


@dataclass(frozen=True, slots=True)
class _Completing:
    """One request on its way to its reply."""

    service: Service
    asked: ChatRequest
    caller: Caller
    by: Orchestrator
    ids: tuple[str, ...]
    """Of the traces, one for each answer."""
    created: int

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.ids[0]}"

    async def whole(self) -> Response:
        """The reply at once."""
        failed: list[ServedAnswer] = []
        if self.asked.dry_run:
            answers = {0: await self._planned()}
        else:
            traces = await answer_all(self.service, self.asked, self.caller, self.ids, self.by)
            answers = {n: from_trace(trace) for n, trace in enumerate(traces) if trace.answer is not None}
            failed = [from_trace(trace) for trace in traces if trace.answer is None]
            refusal = no_answer_error(traces[0])
            if not answers and refusal is not None:
                raise refusal
        reply = completion(self.id, self.created, self.asked.model, answers, failed)
        spent = sum(answer.cost_usd for answer in (*answers.values(), *failed))
        return Response(
            json.dumps(reply, separators=(",", ":")).encode(),
            media_type="application/json",
            headers={**self._headers(), "x-podium-cost-usd": f"{spent:.6f}"},
        )

    def streamed(self, *, with_usage: bool) -> Response:
        """The reply in pieces, as they come."""
        chunks = Chunks(
            self.id, self.created, self.asked.model, with_usage=with_usage, pool=self.by.pool.profiles
        )

        async def tell(write: Write) -> None:
            if self.asked.dry_run:
                planned = await self._planned()
                await write(chunks.ended(0, planned, [planned]))
            else:
                answers: dict[int, ServedAnswer] = {}
                told = False
                try:
                    async with stream_answers(
                        self.service, self.asked, self.caller, self.ids, self.by
                    ) as take:
                        while len(answers) < len(self.ids):
                            pieces = []
                            for number, happened in await take():
                                if isinstance(happened, QuestionEnded):
                                    refusal = no_answer_error(happened.trace)
                                    if refusal is not None:
                                        raise refusal
                                    answers[number] = from_trace(happened.trace)
                                    pieces.append(chunks.ended(number, answers[number], self._all(answers)))
                                else:
                                    pieces.append(chunks.told(number, happened))
                            if any(pieces):
                                told = True
                                await write(b"".join(pieces))
                except PodiumError as error:
                    if not told:
                        raise
                    await write(sse_event(to_body(to_api_error(error))))
                    return
            await write(DONE)

        return EventStream(tell, self._headers())

    def _all(self, answers: Mapping[int, ServedAnswer]) -> list[ServedAnswer]:
        """The answers in order, once there are all; else none."""
        return [answers[n] for n in sorted(answers)] if len(answers) == len(self.ids) else []

    async def _planned(self) -> ServedAnswer:
        plan, expected = await self.service.plan(self.asked, self.by)
        return from_plan(self.by, plan, expected, self.ids[0])

    def _headers(self) -> dict[str, str]:
        return {} if self.asked.dry_run else {"x-podium-trace-id": self.ids[0]}


def completion(
    id_: str,
    created: int,
    model: str,
    answers: Mapping[int, ServedAnswer],
    failed: Sequence[ServedAnswer] = (),
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
        "podium": combined_details((*answers.values(), *failed)),
    }


def counts(answers: Sequence[ServedAnswer]) -> dict[str, Any]:
    """The usage of a completion: tokens of workers and planners."""
    taken = sum((answer.usage for answer in answers), Usage())
    return {
        "prompt_tokens": taken.input_tokens,
        "completion_tokens": taken.output_tokens,
        "total_tokens": taken.tokens,
        "prompt_tokens_details": {"cached_tokens": taken.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": taken.reasoning_tokens},
    }


def calls(answer: ServedAnswer) -> list[dict[str, Any]]:
    """What the worker wants called."""
    return [to_call(call, answer.trace_id, number) for number, call in enumerate(answer.tool_calls)]


def _choice(number: int, answer: ServedAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message |= {"content": answer.text or None, "tool_calls": calls(answer)}
    return {"index": number, "message": message, "logprobs": None, "finish_reason": answer.finish}


class Chunks:
    """The chunks of one completion with one or several answers.

    Args:
        with_usage: whether the usage comes at the end.
        pool: the workers that plans number.
    """

    def __init__(
        self, id_: str, created: int, model: str, *, with_usage: bool, pool: Sequence[Profile]
    ) -> None:
        self._head = {"id": id_, "object": "chat.completion.chunk", "created": created, "model": model}
        # Most of a chunk is the same in all: it is written once.
        self._start = b"data: " + json.dumps(self._head, separators=(",", ":")).encode()[:-1]
        self._end = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._with_usage = with_usage
        self._pool = pool
        self._sent: dict[int, StreamedText] = {}

    def told(self, choice: int, happened: Event) -> bytes:
        """The chunks for what happened to the answer of that number; its end has its own."""
        if isinstance(happened, StepText):
            text = self._sent_of(choice).add(happened.attempt, happened.text)
            return self._chunk(choice, {"content": text}) if text else b""
        known = progress(happened, self._pool)
        if known is None:
            return b""
        line, facts = known
        begun = b"" if choice in self._sent else self._begun(choice)
        return begun + self._chunk(choice, {"reasoning_content": f"{line}\n"}, podium=facts)

    def ended(self, choice: int, answer: ServedAnswer, answers: Sequence[ServedAnswer] = ()) -> bytes:
        """The rest of an answer, and why it ends.

        Args:
            answers: all of them, with the last one; they are summed up in the last chunk.

        Raises:
            APIError: the answer is another than what was sent.
        """
        begun = b"" if choice in self._sent else self._begun(choice)
        rest = self._sent_of(choice).finish(answer.text)
        if rest is None:
            raise answer_changed(answer.trace_id)
        content = self._chunk(choice, {"content": rest}) if rest else b""
        made = [{"index": number, **call} for number, call in enumerate(calls(answer))]
        called = self._chunk(choice, {"tool_calls": made}) if made else b""
        told = combined_details(answers) if answers else None
        if told is None or not self._with_usage:
            return begun + content + called + self._chunk(choice, {}, finish=answer.finish, podium=told)
        finish = self._chunk(choice, {}, finish=answer.finish)
        # A chunk without choices is sent to those alone who asked for usage: others do not expect one.
        usage = sse_event(self._head | {"choices": [], "usage": counts(answers), "podium": told})
        return begun + content + called + finish + usage

    def _begun(self, choice: int) -> bytes:
        self._sent_of(choice)
        return self._chunk(choice, {"role": "assistant", "content": ""})

    def _sent_of(self, choice: int) -> StreamedText:
        return self._sent.setdefault(choice, StreamedText())

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        podium: dict[str, Any] | None = None,
    ) -> bytes:
        told = {"choices": [{"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        if podium is not None:
            told["podium"] = podium  # type: ignore[assignment]
        return self._start + b"," + json.dumps(told, separators=(",", ":")).encode()[1:-1] + self._end
