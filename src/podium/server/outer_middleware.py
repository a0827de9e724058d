"""The outermost middleware: it normalizes the path, refuses misuse by browsers, sets headers, and counts requests.

Without keys, any page in this machine's browser could call the server. The Host header reveals a page that points its
own host name here (DNS rebinding), and the Origin header reveals a page of another origin. With keys, any host name is
accepted, since the name proves nothing.
"""

from __future__ import annotations

import re
from itertools import count
from secrets import token_hex
from urllib.parse import quote, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import forbidden, invalid, send_error
from podium.server.in_flight import SAFE_METHODS
from podium.server.monitoring import OTHER, Metrics
from podium.server.service import Service
from podium.workers.chat.endpoint import is_loopback

_CARELESS = re.compile("//|./$|^/v1/v1/")
"""Matches paths that clients have joined carelessly from an address and a path."""
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


class OuterMiddleware:
    """Middleware that sees every request first.

    It refuses requests with too large headers, a foreign Host header, or a foreign Origin header. It counts all
    requests by method, route and status. Each response gets the security headers and an `x-request-id`, except those
    that the route set itself. An id has a random part of the process, and the number of the request in this process.

    Args:
        service: the service, whose settings name the allowed origins. Their host names are also accepted as Host,
            because a proxy may send its own name.
    """

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics) -> None:
        self._app = app
        self._service = service
        self._metrics = metrics
        self._origins = frozenset(origin.encode() for origin in service.settings.serve.cors)
        self._names = frozenset(urlsplit(origin).hostname for origin in service.settings.serve.cors)
        self._process = token_hex(8)
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _CARELESS.search(scope["path"]):
            scope = _with_normal_path(scope)
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                own = dict(headers)
                request_id = (b"x-request-id", f"{self._process}-{next(self._numbers)}".encode())
                added = [pair for pair in (*_HEADERS, request_id) if pair[0] not in own]
                message["headers"] = [*headers, *added]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await send_error(refusal, scope, receive, send_with_headers)
            else:
                await self._app(scope, receive, send_with_headers)
        finally:
            # Callers can make up paths and methods, so all requests without a route share one label.
            route = getattr(scope.get("route"), "path", OTHER)
            self._metrics.count_request(scope["method"] if route != OTHER else OTHER, route, status)

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


def _with_normal_path(scope: Scope) -> Scope:
    """The scope of a request with a path without double slashes, a slash at its end, or a second `/v1`.

    A redirect would not help, since many clients lose the body of a POST on the way.
    """
    path = re.sub(r"^(/v1)+(?=/v1/)", "", re.sub("/{2,}", "/", scope["path"])).rstrip("/") or "/"
    return {**scope, "path": path, "raw_path": quote(path).encode()}
