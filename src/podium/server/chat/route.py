"""POST /v1/chat/completions: from bytes to bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.errors import PodiumError
from podium.orchestrator import Orchestrator, QuestionEnded
from podium.server.api_errors import body as written
from podium.server.api_errors import responses, to_complaint
from podium.server.attendance import attended
from podium.server.body import read
from podium.server.chat.chunks import Chunks
from podium.server.chat.reading import read_chat
from podium.server.chat.reply import completion
from podium.server.chat.request import ChatBody
from podium.server.event_stream import DONE, EventStream, Write, event
from podium.server.given import Given, from_plan, from_trace
from podium.server.keys import Caller
from podium.server.outcome import complaint
from podium.server.samples import ask_all, following
from podium.server.service import ChatRequest, Service

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
        responses={200: _ANSWERED, **responses(*_REFUSALS)},
        openapi_extra={"requestBody": wanted},
    )
    async def complete(request: Request) -> Response:
        caller = await service.admitted(request.headers.get("authorization"))
        body = await read(ChatBody, await request.body(), service.reading)
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
        async with attended(request.receive):
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
        failed: list[Given] = []
        if self.asked.dry_run:
            answers = {0: await self._planned()}
        else:
            traces = await ask_all(self.service, self.asked, self.caller, self.ids, self.by)
            answers = {n: from_trace(trace) for n, trace in enumerate(traces) if trace.answer is not None}
            failed = [from_trace(trace) for trace in traces if trace.answer is None]
            refusal = complaint(traces[0])
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
                answers: dict[int, Given] = {}
                told = False
                try:
                    async with following(self.service, self.asked, self.caller, self.ids, self.by) as take:
                        while len(answers) < len(self.ids):
                            pieces = []
                            for number, happened in await take():
                                if isinstance(happened, QuestionEnded):
                                    refusal = complaint(happened.trace)
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
                    await write(event(written(to_complaint(error))))
                    return
            await write(DONE)

        return EventStream(tell, self._headers())

    def _all(self, answers: Mapping[int, Given]) -> list[Given]:
        """The answers in order, once there are all; else none."""
        return [answers[n] for n in sorted(answers)] if len(answers) == len(self.ids) else []

    async def _planned(self) -> Given:
        plan, expected = await self.service.plan(self.asked, self.by)
        return from_plan(self.by, plan, expected, self.ids[0])

    def _headers(self) -> dict[str, str]:
        return {} if self.asked.dry_run else {"x-podium-trace-id": self.ids[0]}
