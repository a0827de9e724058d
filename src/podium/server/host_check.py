"""Middleware against misuse by browsers: checks Host and Origin, and sets security headers on every response.

Without keys, any page in this machine's browser could call the server. The Host header reveals a page that points its
own host name here (DNS rebinding), and the Origin header reveals a page of another origin. With keys, any host name is
accepted, since the name proves nothing.
"""

from __future__ import annotations

import re
from itertools import count
from secrets import token_hex
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import forbidden, invalid, send_error
from podium.server.keys.keys import is_loopback
from podium.server.service import Service

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that neither ask a question nor change anything."""
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^][:/@?#\\\s]+?)\.?)(?::(?P<port>[0-9]{0,5}))?"
)
"""Matches a host of RFC 9110: a name, which may end with a dot, or an IPv6 address, and a port, without a user."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    # Other sites may not embed responses as scripts, styles or images.
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    # Traces and answers are private.
    (b"cache-control", b"no-store"),
)
_MOST_BYTES = 32 * 2**10
"""The most bytes of a request's address and headers."""


class HostCheck:
    """Refuses requests with too large headers, a foreign Host header, or a foreign Origin header.

    Args:
        service: the service, whose settings name the allowed origins. Their host names are also accepted as Host,
            because a proxy may send its own name.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._origins = frozenset(origin.encode() for origin in service.settings.serve.cors)
        self._names = frozenset(urlsplit(origin).hostname for origin in service.settings.serve.cors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is not None:
            await send_error(refusal, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> APIError | None:
        size = len(scope["query_string"]) + len(scope["path"])
        host = origin = None
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name == b"host":
                if host is not None:
                    return invalid("The request has two Host headers; send one.")
                host = value
            elif name == b"origin":
                origin = value
        if size > _MOST_BYTES:
            return APIError(
                431,
                "invalid_request_error",
                f"The address and headers of the request have {size} bytes; this server accepts at most {_MOST_BYTES}.",
                code="headers_too_large",
            )
        if host is not None and not self._service.keys.are_needed and not self._is_own_host(host):
            return APIError(
                421,
                "permission_error",
                f"This server is not called {host[:200].decode('latin-1')!r}: use http://localhost, or name "
                "the address of the page in serve.cors.",
                code="unknown_host",
            )
        if (
            origin is not None
            and scope.get("method") not in SAFE_METHODS
            and not self._is_allowed_origin(origin, host)
        ):
            return forbidden(
                f"Pages of {origin[:200].decode('latin-1')} may not call this server unless serve.cors names "
                "that origin."
            )
        return None

    def _is_own_host(self, host: bytes) -> bool:
        """Whether the header is exactly a name or address of this server, with or without a port."""
        match = _HOST.fullmatch(host.decode("latin-1").lower())
        if match is None or int(match["port"] or 0) >= 2**16:
            return False
        name = match["address"] or match["name"]
        return name in self._names or is_loopback(name)

    def _is_allowed_origin(self, origin: bytes, host: bytes | None) -> bool:
        """Whether the origin is this server or an allowed one."""
        lowered = origin.lower()
        return lowered in self._origins or (host is not None and lowered.partition(b"://")[2] == host.lower())


class SecurityHeaders:
    """Adds these headers and an `x-request-id` to each response, except those that the route set itself.

    An id has a random part of the process, and the number of the request in this process.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._process = token_hex(8)
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                own = {name for name, _ in headers}
                request_id = (b"x-request-id", f"{self._process}-{next(self._numbers)}".encode())
                message["headers"] = [
                    *headers,
                    *(pair for pair in (*_HEADERS, request_id) if pair[0] not in own),
                ]
            await send(message)

        await self._app(scope, receive, add_headers)
