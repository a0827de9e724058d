"""POST /v1/chat/completions: from the request's bytes to the reply, whole or as a stream of chunks.

A stream reports progress twice: as `reasoning_content`, which clients show or ignore, and in the field `podium` of a
chunk, for programs.
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

from podium.errors import APIError
from podium.executor import StepText
from podium.server.answers import (
    ServedAnswer,
    combine_details,
    encode_reply,
    from_trace,
    no_answer_error,
    progress,
)
from podium.server.api_errors import error_responses, invalid, to_body
from podium.server.keys import Caller
from podium.server.openai.chat_body import ChatBody, read_chat
from podium.server.openai.conversation import called, returned_state
from podium.server.opened_question import OpenedQuestion
from podium.server.provider_state import KEY
from podium.server.requests import body_schema, parse_body
from podium.server.service import Service, answer_all
from podium.server.streaming import DONE, EventStream, StreamedText, Write, cancel_on_disconnect, sse_event
from podium.team import Event
from podium.trace import Trace
from podium.types import Profile, total_usage
from podium.workers.chat.provider_state import read_state
from podium.workers.chat.tool_calls import CALL_STATE_KEYS

_ERRORS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_REPLY = {
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
    """POST /v1/chat/completions."""
    router = APIRouter()

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses={200: _REPLY, **error_responses(*_ERRORS)},
        openapi_extra=body_schema(ChatBody),
    )
    async def complete(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(ChatBody, await request.body(), service.parse_lock)
        completion = await _open(body, service, caller)
        if body.stream:
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            return completion.streamed(with_usage=usage)
        async with cancel_on_disconnect(request.receive):
            return await completion.whole()

    return router


async def _open(body: ChatBody, service: Service, caller: Caller) -> _ChatCompletion:
    """Check a request and prepare its completion, without running anything.

    Raises:
        APIError: the completion cannot be made.
    """
    request = await read_chat(body, service, caller)
    runner = await service.open_runner(request, caller)
    if request.plan_id is not None and (body.n or 1) > 1:
        raise invalid("A plan is run once: leave n out.", "n")
    ids = (request.plan_id or uuid4().hex, *(uuid4().hex for _ in range(1, body.n or 1)))
    opened = OpenedQuestion(service, request, caller, runner, ids[0])
    return _ChatCompletion(opened, ids, created=int(time.time()))


@dataclass(frozen=True, slots=True)
class _ChatCompletion:
    """One request, and the ids of its answers."""

    question: OpenedQuestion
    """The request as it is asked for the first answer."""
    ids: tuple[str, ...]
    """Trace ids, one for each answer."""
    created: int

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.ids[0]}"

    async def whole(self) -> Response:
        """The reply in one piece."""
        question, request = self.question, self.question.request
        failed: list[ServedAnswer] = []
        if request.dry_run:
            answers = {0: await question.planned()}
        else:
            traces = await answer_all(question.service, request, question.caller, self.ids, question.runner)
            ended = {n: from_trace(trace, request.ignored) for n, trace in enumerate(traces)}
            answers = {n: answer for n, answer in ended.items() if traces[n].answer is not None}
            failed = [answer for n, answer in ended.items() if traces[n].answer is None]
            error = no_answer_error(traces[0])
            if not answers and error is not None:
                raise error
        reply = _whole(self.id, self.created, request.model, answers, failed)
        spent = sum(answer.cost_usd for answer in (*answers.values(), *failed))
        return Response(
            encode_reply(reply),
            media_type="application/json",
            headers={**question.headers, "x-podium-cost-usd": f"{spent:.6f}"},
        )

    def streamed(self, *, with_usage: bool) -> Response:
        """The reply as a stream of chunks."""
        question, request = self.question, self.question.request
        chunks = _Chunks(
            self.id,
            self.created,
            request.model,
            with_usage=with_usage,
            pool=question.runner.pool.profiles,
            direct=request.worker is not None,
        )

        def fail(error: APIError) -> bytes:
            return sse_event(to_body(error))

        async def produce(write: Write) -> None:
            if request.dry_run:
                planned = await question.planned()
                await write(chunks.for_end(0, planned, [planned]))
            elif not await question.write_all(
                self.ids,
                write,
                for_event=chunks.for_event,
                for_end=lambda number, answers, failed: chunks.for_end(
                    number, answers.get(number), self._all(answers, failed)
                ),
                fail=fail,
            ):
                return
            await write(DONE)

        return EventStream(produce, question.headers, fail=fail)

    def _all(self, answers: Mapping[int, ServedAnswer], failed: Mapping[int, Trace]) -> list[ServedAnswer]:
        """The answers in order, then those that failed, once all have ended; until then an empty list."""
        if len(answers) + len(failed) < len(self.ids):
            return []
        ignored = self.question.request.ignored
        return [
            *(answers[n] for n in sorted(answers)),
            *(from_trace(failed[n], ignored) for n in sorted(failed)),
        ]


def _whole(
    id_: str,
    created: int,
    model: str,
    answers: Mapping[int, ServedAnswer],
    failed: Sequence[ServedAnswer] = (),
) -> dict[str, Any]:
    """The JSON of a whole reply.

    Args:
        answers: at least one, by number.
        failed: questions without an answer, whose cost and usage count too.
    """
    return {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [_choice(number, answer) for number, answer in answers.items()],
        "usage": completion_usage((*answers.values(), *failed)),
        "podium": combine_details((*answers.values(), *failed)),
    }


def completion_usage(answers: Sequence[ServedAnswer]) -> dict[str, Any]:
    """The usage of a completion: tokens and dollars of workers and planners."""
    total = total_usage(answer.usage for answer in answers)
    return {
        "cost": sum(answer.cost_usd for answer in answers),
        "prompt_tokens": total.input_tokens,
        "completion_tokens": total.output_tokens,
        "total_tokens": total.tokens,
        "prompt_tokens_details": {"cached_tokens": total.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": total.reasoning_tokens},
    }


def tool_calls(answer: ServedAnswer) -> list[dict[str, Any]]:
    """The tool calls of an answer, as JSON. The first carries the state of the whole answer."""
    calls = []
    state = returned_state(answer)
    for number, call in enumerate(called(answer)):
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
        extra = dict(read_state(call.provider_state, CALL_STATE_KEYS).get("extra_content") or {})
        if number == 0 and state is not None:
            extra[KEY] = state
        if extra:
            calls[-1]["extra_content"] = extra
    return calls


def _extra_content(answer: ServedAnswer) -> dict[str, Any]:
    """The field of a message without tool calls that carries the state of the answer; empty if there is none."""
    state = None if answer.tool_calls else returned_state(answer)
    return {} if state is None else {"extra_content": {KEY: state}}


def _choice(number: int, answer: ServedAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text,
        "refusal": None,
        "annotations": [],
    }
    if answer.tool_calls:
        message |= {"content": answer.text or None, "tool_calls": tool_calls(answer)}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    message |= _extra_content(answer)
    return {"index": number, "message": message, "logprobs": answer.logprobs, "finish_reason": answer.finish}


class _Chunks:
    """The chunks of one completion with one or several answers.

    Args:
        with_usage: whether a last chunk reports the usage.
        pool: profiles of the workers, which plans refer to by number.
        direct: whether one worker is called directly. Then the reasoning is the worker's, and not the team's progress.
    """

    def __init__(
        self,
        id_: str,
        created: int,
        model: str,
        *,
        with_usage: bool,
        pool: Sequence[Profile],
        direct: bool = False,
    ) -> None:
        self._head = {"id": id_, "object": "chat.completion.chunk", "created": created, "model": model}
        # All chunks of a completion begin and end alike, so both parts are encoded once.
        self._start = b"data: " + json.dumps(self._head, separators=(",", ":")).encode()[:-1]
        self._end = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._with_usage = with_usage
        self._pool = pool
        self._direct = direct
        self._texts: dict[int, StreamedText] = {}

    def for_event(self, choice: int, event: Event) -> bytes:
        """The chunks for an event of answer number `choice`. For the end of the answer, call `for_end`."""
        opening = b"" if choice in self._texts else self._opening(choice)
        if isinstance(event, StepText) and not event.reasoning:
            text = self._text_of(choice).add(event.attempt, event.text)
            return opening + self._chunk(choice, {"content": text}) if text else b""
        # Clients treat reasoning that follows text as the end of the text.
        quiet = bool(self._text_of(choice).text)
        if isinstance(event, StepText):
            thought = {"reasoning_content": event.text}
            return b"" if quiet or not self._direct else opening + self._chunk(choice, thought)
        reported = progress(event, self._pool)
        if reported is None:
            return b""
        line, facts = reported
        delta = {} if quiet or self._direct else {"reasoning_content": f"{line}\n"}
        return opening + self._chunk(choice, delta, podium=facts)

    def for_end(
        self, choice: int, answer: ServedAnswer | None, answers: Sequence[ServedAnswer] = ()
    ) -> bytes:
        """The last chunks of an answer: the rest of its text and its finish reason.

        Args:
            answer: None: it failed, so it has neither.
            answers: all answers, passed only when the last one ends; the last chunk reports their sums.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """
        rest = b"" if answer is None else self._rest(choice, answer)
        finish = None if answer is None else answer.finish
        details = combine_details(answers) if answers else None
        if details is not None and self._with_usage:
            # Only clients that requested usage expect a chunk without choices.
            usage = self._head | {"choices": [], "usage": completion_usage(answers), "podium": details}
            return rest + (self._chunk(choice, {}, finish=finish) if finish else b"") + sse_event(usage)
        if finish is None and details is None:
            return b""
        return rest + self._chunk(choice, {}, finish=finish, podium=details)

    def _rest(self, choice: int, answer: ServedAnswer) -> bytes:
        """What of an answer has not been sent yet."""
        opening = b"" if choice in self._texts else self._opening(choice)
        rest = self._text_of(choice).finish(answer.text, answer.trace_id)
        content = self._chunk(choice, {"content": rest}) if rest else b""
        if answer.logprobs:
            content += self._chunk(choice, {"content": ""}, logprobs=answer.logprobs)
        numbered = [{"index": number, **call} for number, call in enumerate(tool_calls(answer))]
        calls = self._chunk(choice, {"tool_calls": numbered}) if numbered else b""
        state = self._chunk(choice, extra) if (extra := _extra_content(answer)) else b""
        return opening + content + calls + state

    def _opening(self, choice: int) -> bytes:
        self._text_of(choice)
        return self._chunk(choice, {"role": "assistant", "content": ""})

    def _text_of(self, choice: int) -> StreamedText:
        return self._texts.setdefault(choice, StreamedText())

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        podium: dict[str, Any] | None = None,
        logprobs: dict[str, Any] | None = None,
    ) -> bytes:
        piece = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        body: dict[str, Any] = {"choices": [piece]}
        if podium is not None:
            body["podium"] = podium
        return self._start + b"," + json.dumps(body, separators=(",", ":")).encode()[1:-1] + self._end
