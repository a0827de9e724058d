"""POST /v1/responses/compact: replaces a long conversation by its user messages and a summary.

One worker writes the summary: the one that `model` names, else the planner's fallback, else the first worker that the
request may use. Clients send the returned items at the beginning of their next input.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar
from uuid import uuid4

from fastapi import APIRouter, Request
from pydantic import Field

from podium.server.answers import from_trace, no_answer_error
from podium.server.api_errors import error_responses, invalid
from podium.server.conversations import full_conversation
from podium.server.openai.chat_body import HINTS
from podium.server.openai.response_items import Item, write_compaction
from podium.server.openai.responses_body import ResponseBody, read_response
from podium.server.openai.responses_reply import input_items, response_usage
from podium.server.requests import Body, ListOf, Name, Unsupported, parse_body
from podium.server.service import Service
from podium.server.streaming import cancel_on_disconnect

_WANTED = (
    "Sum up our conversation, so that somebody who reads only your summary can go on with it: what was asked, decided, "
    "found out and left open, with every name, number and path that may be needed. Write the summary alone."
)


class CompactBody(Body):
    """The body of a request for a compaction."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = HINTS

    model: Name
    input: str | Annotated[ListOf[Item], Field(min_length=1)] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None


def routes(service: Service) -> APIRouter:
    """POST /v1/responses/compact."""
    router = APIRouter()

    @router.post(
        "/v1/responses/compact", responses=error_responses(400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
    )
    async def compact(request: Request) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        raw = await request.body()
        await parse_body(CompactBody, raw, service.parse_lock)
        whole = await parse_body(ResponseBody, _with_request(raw), service.parse_lock)
        _refuse_other_forms(whole)
        chat_request = await read_response(whole, service, caller)
        if chat_request.worker is None:
            opened = await service.open_runner(chat_request, caller)
            first = opened.plan_fallback or opened.pool.names[0]
            chat_request = replace(
                chat_request, worker=first, messages=full_conversation(chat_request.question)
            )
        async with cancel_on_disconnect(request.receive):
            trace = await service.answer(chat_request, caller, trace_id=uuid4().hex)
        error = no_answer_error(trace)
        if error is not None:
            raise error
        answer = from_trace(trace, chat_request.ignored)
        said = input_items(trace.question, trace.id)[:-1]
        kept = [item for item in said if item.get("role") == "user"]
        item = {
            "id": f"cmp_{trace.id}",
            "type": "compaction",
            "encrypted_content": write_compaction(answer.text),
        }
        return {
            "id": f"resp_{trace.id}",
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*kept, item],
            "usage": response_usage(answer.usage, answer.cost_usd),
            "podium": answer.podium,
        }

    return router


def _with_request(raw: bytes) -> bytes:
    """The body of a `CompactBody`, as that of a response whose last message requests the summary."""
    given: dict[str, Any] = json.loads(raw)
    items = given.get("input") or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return json.dumps({**given, "input": [*items, {"role": "user", "content": _WANTED}]}).encode()


def _refuse_other_forms(body: ResponseBody) -> None:
    """Refuse what a response offers besides its reply in one piece.

    Raises:
        APIError: 400.
    """
    dry_run = body.podium is not None and body.podium.dry_run
    others = {"stream": body.stream, "background": body.background, "podium.dry_run": dry_run}
    for name, wanted in others.items():
        if wanted:
            raise invalid(
                f"{name} cannot be honoured: one worker writes the summary, and the reply comes in one piece.",
                name,
                code="unsupported_field",
            )
