"""POST /v1/completions, OpenAI's oldest form: a text as the prompt, a text as the answer.

A thin layer over chat completions: the prompt is the one message of a user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from podium.server.answers import ServedAnswer
from podium.server.api_errors import error_responses
from podium.server.leniency import settle_leftover
from podium.server.openai.chat_body import HINTS, ChatBody
from podium.server.openai.chat_completions import Chunks, complete_chat, completion_body
from podium.server.requests import Body, ListOf, Name, Unsupported, body_schema, parse_body
from podium.server.service import Service

_FORM = "it belongs to models that continue a text; workers answer."


class CompletionBody(Body):
    """The body of a completion. `ChatBody` reads the fields that chat completions share."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        **HINTS,
        "best_of": Unsupported(_FORM, (1,)),
        "echo": Unsupported(_FORM, (False,), "never"),
        "logprobs": Unsupported(_FORM, (0,), "never"),
        "suffix": Unsupported(_FORM, ("",), "never"),
    }

    model: Name
    prompt: str | Annotated[ListOf[str], Field(min_length=1, max_length=1)]


def routes(service: Service) -> APIRouter:
    """POST /v1/completions."""
    router = APIRouter()
    reply = {"description": "A completion; with `stream`, its chunks as server-sent events."}

    @router.post(
        "/v1/completions",
        response_class=Response,
        responses={200: reply, **error_responses(400, 401, 402, 403, 404, 408, 413, 429, 502, 503)},
        openapi_extra=body_schema(CompletionBody),
    )
    async def complete(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(CompletionBody, await request.body(), service.parse_lock)
        prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
        given = body.model_extra or {}
        old = CompletionBody(model=body.model, prompt=prompt, **{n: v for n, v in given.items() if n in _OLD})
        leftover = settle_leftover(old, strict=service.settings.serve.strict)
        chat = {n: v for n, v in given.items() if n not in _OLD}
        messages = ({"role": "user", "content": prompt},)
        asked = await parse_body(
            ChatBody,
            json.dumps({**chat, "model": body.model, "messages": messages}).encode(),
            service.parse_lock,
        )
        return await complete_chat(
            asked, request, service, caller, chunks=TextChunks, ignored=leftover.ignored
        )

    return router


_OLD = CompletionBody.unsupported.keys() - HINTS.keys()


def _to_text(chat: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A choice of a chat completion in the older form."""
    return {"index": chat["index"], "text": text, "logprobs": None, "finish_reason": chat["finish_reason"]}


class TextChunks(Chunks):
    """The chunks of a completion: like those of a chat completion, but with texts instead of messages."""

    prefix = "cmpl"
    kind = "text_completion"

    @staticmethod
    def whole(
        id_: str,
        created: int,
        model: str,
        answers: Mapping[int, ServedAnswer],
        failed: Sequence[ServedAnswer] = (),
    ) -> dict[str, Any]:
        """The JSON of a whole reply."""
        chat = completion_body(id_, created, model, answers, failed)
        choices = [_to_text(choice, choice["message"]["content"] or "") for choice in chat["choices"]]
        return {**chat, "object": "text_completion", "choices": choices}

    def _piece(
        self, choice: int, delta: dict[str, Any], logprobs: dict[str, Any] | None, finish: str | None
    ) -> dict[str, Any]:
        return _to_text({"index": choice, "finish_reason": finish}, delta.get("content") or "")
