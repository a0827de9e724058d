"""Headers that every answer wears: what a browser may make of it. A route that knows better sets its own."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_WORN = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    # Pages of other sites may not put answers into their own as scripts, styles or images.
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    # Traces and answers are somebody's.
    (b"cache-control", b"no-store"),
)


class SecurityHeaders:
    """Adds to each answer those headers that it does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                own = {name for name, _ in headers}
                message["headers"] = [*headers, *(pair for pair in _WORN if pair[0] not in own)]
            await send(message)

        await self._app(scope, receive, dressed)
