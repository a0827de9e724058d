"""Responses over a WebSocket at /v1/responses: each client message is a request, each server message an event.

A response that is not stored can be continued on the same connection. Where HTTP would return an error status, the
socket sends an event of the type "error".
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from podium.errors import APIError, PodiumError
from podium.server.api_errors import invalid, to_api_error, to_body
from podium.server.body_limits import JsonShape
from podium.server.in_flight import InFlightRequests
from podium.server.keys import Caller
from podium.server.openai.response_items import to_messages
from podium.server.openai.responses import open_response
from podium.server.openai.responses_body import ResponseBody
from podium.server.requests import parse_body
from podium.server.service import Service
from podium.types import Message

_MAX_KEPT = 16
"""The most unstored responses of one connection that can still be continued."""
_MAX_WAITING = 4
"""Requests that a client may send before the first of them is answered."""


def routes(service: Service) -> APIRouter:
    """The WebSocket /v1/responses."""
    router = APIRouter()

    @router.websocket("/v1/responses")
    async def converse(socket: WebSocket) -> None:
        try:
            await service.authenticate(socket.headers.get("authorization"))
        except APIError as error:
            await socket.close(1008, error.message[:100])
            return
        await socket.accept()
        await _Connection(service, socket).serve()

    return router


class _Connection:
    """One client's connection."""

    def __init__(self, service: Service, socket: WebSocket) -> None:
        self._service = service
        self._socket = socket
        self._in_flight: InFlightRequests = socket.app.state.in_flight
        self._kept: dict[str, tuple[Message, ...]] = {}
        """Conversations of responses that are not stored, by the id of the last response."""

    async def serve(self) -> None:
        """Answer one request after the other, until the client disconnects. Then the running request is cancelled."""
        requests: asyncio.Queue[str] = asyncio.Queue(_MAX_WAITING)
        answering = asyncio.create_task(self._answer_all(requests))
        try:
            while not answering.done():
                await requests.put(await self._socket.receive_text())
        except (WebSocketDisconnect, KeyError):  # KeyError: the client sent bytes.
            pass
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def _answer_all(self, requests: asyncio.Queue[str]) -> None:
        while True:
            text = await requests.get()
            task = self._in_flight.begin(is_question=True)
            try:
                async with asyncio.timeout(self._service.settings.serve.timeout):
                    await self._answer(text)
            except PodiumError as failure:
                await self._fail(to_api_error(failure))
            except TimeoutError:
                await self._fail(
                    APIError(504, "timeout_error", "There was no answer in time.", code="timeout")
                )
            finally:
                self._in_flight.end(task)

    async def _answer(self, text: str) -> None:
        caller: Caller = await self._service.authenticate(self._socket.headers.get("authorization"))
        if self._in_flight.draining:
            raise APIError(503, "server_error", "The server is shutting down.", code="server_ending")
        settings, shape = self._service.settings.serve, JsonShape()
        shape.feed(text.encode())
        shape.check(settings.depth, settings.values)
        fields = _event(text)
        previous = str(fields.get("previous_response_id"))
        try:
            raw = json.dumps(fields).encode()
            body = await parse_body(ResponseBody, raw, self._service.parse_lock)
            response = await open_response(body, self._service, caller, self._kept)
            answer = await response.question.write(response.events(), self._write)
        except PodiumError:
            self._kept.pop(previous, None)
            raise
        if answer is None:
            self._kept.pop(previous, None)
        elif not response.frame.store:
            self._kept[f"resp_{answer.trace_id}"] = to_messages(response.frame.question, answer)
            for id_ in tuple(self._kept)[:-_MAX_KEPT]:
                del self._kept[id_]

    async def _write(self, content: bytes) -> None:
        """Send each event as one WebSocket message. `content` has them as server-sent events (`data: ...`)."""
        for line in content.splitlines():
            if line.startswith(b"data: "):
                await self._socket.send_text(line.removeprefix(b"data: ").decode())

    async def _fail(self, error: APIError) -> None:
        body = to_body(error)["error"]
        event = {"type": "error", "status": error.status, "error": {**body, "code": error.code or error.type}}
        await self._socket.send_text(json.dumps(event))


def _event(text: str) -> dict[str, Any]:
    """The body of a request in a client's message."""
    try:
        fields = json.loads(text)
    except ValueError:
        raise invalid("The message is not JSON.", code="invalid_json") from None
    if not isinstance(fields, dict) or fields.pop("type", None) != "response.create":
        raise invalid('A message is an object whose type is "response.create".', "type")
    return fields
