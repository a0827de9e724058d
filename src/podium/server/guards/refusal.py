"""How a guard answers in place of the application, before an answer has begun or in the middle of one."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import answer, body
from podium.server.event_stream import event


async def refuse(complaint: APIError, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the complaint as the whole answer."""
    await answer(complaint)(scope, receive, send)


class Sending:
    """Remembers of an answer whether it has begun and ended, and can end it with a complaint.

    Args:
        send: where it goes.
    """

    __slots__ = ("_ended", "_events", "_send", "begun")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self._events = False
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._events = any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message["headers"]
            )
        elif not message.get("more_body"):
            self._ended = True
        await self._send(message)

    async def break_off(self, complaint: APIError, scope: Scope, receive: Receive) -> None:
        """End with `complaint`: as the answer, if none has begun, or as the last event of a stream.

        Any other answer stays without its end, by which its reader knows that it is not whole.
        """
        if not self.begun:
            await refuse(complaint, scope, receive, self._send)
        elif self._events and not self._ended:
            told = event(body(complaint))
            await self._send({"type": "http.response.body", "body": told, "more_body": False})
