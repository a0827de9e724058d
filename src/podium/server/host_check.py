"""Who is let in at all: by the name that the server was called by, and by the web page that asks.

Where no key is needed, whatever runs in this machine's browser could ask: a page that lets its own name point here
(DNS rebinding) is told by the name, and a page of another origin by its Origin header. Where keys are needed a name
proves nothing, and any is taken.


@@Headers that every answer wears: what a browser may make of it. A route that knows better sets its own."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.errors import APIError
from podium.server.api_errors import forbidden, invalid, refuse
from podium.server.keys.keys import is_loopback
from podium.server.service import Service

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that ask and change nothing."""
_USUAL = frozenset({"127.0.0.1", "localhost", "[::1]"})


class HostCheck:
    """Turns away requests with too many headers, under a foreign name, or from pages of foreign origins.

    Args:
        service: whose settings have the origins that may ask; their names are also names of this server, as where a
            proxy passes on the name that it was called by.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._most = service.settings.header_bytes
        self._origins = frozenset(origin.lower().encode() for origin in service.settings.origins)
        self._names = _USUAL | {urlsplit(origin).hostname or "" for origin in service.settings.origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await refuse(refusal, scope, receive, send)
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
        if size > self._most:
            return APIError(
                431,
                "invalid_request_error",
                f"The address and headers of the request have {size} bytes, and {self._most} are taken at most.",
                code="headers_too_large",
            )
        if host is not None and not self._service.needs_keys and not self._known(host):
            return APIError(
                421,
                "permission_error",
                f"This server is not called {host[:200].decode('latin-1')!r}: use http://localhost, or have it "
                "started with --cors and the address of the page.",
                code="unknown_host",
            )
        if origin is not None and scope["method"] not in SAFE_METHODS and not self._ours(origin, host):
            return forbidden(
                f"Pages of {origin[:200].decode('latin-1')} may not ask this server, unless it is started with "
                "--cors and that origin."
            )
        return None

    def _known(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        bare = name if name.endswith("]") else name.rpartition(":")[0] or name
        return bare in self._names or is_loopback(bare)

    def _ours(self, origin: bytes, host: bytes | None) -> bool:
        """Whether a page of this server asks, or one that may."""
        lowered = origin.lower()
        return lowered in self._origins or (host is not None and lowered.partition(b"://")[2] == host.lower())


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
