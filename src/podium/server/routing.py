"""How a request finds its endpoint: careless paths are normalized, and a question goes to its endpoint directly."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import Response
from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class PathNormalizer:
    """Normalizes the path of a request: no double slash, no slash at its end, no second `/v1`.

    Clients join an address and a path carelessly. A redirect would not help, since many clients lose the body of a POST
    on the way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            path = scope["path"]
            normalized = re.sub(r"^(/v1)+(?=/v1/)", "", re.sub("/{2,}", "/", path)).rstrip("/") or "/"
            if normalized != path:
                scope = {**scope, "path": normalized, "raw_path": quote(normalized).encode()}
        await self._app(scope, receive, send)


class QuestionRoute(APIRoute):
    """A route whose endpoint, if it is declared with `response_class=Response`, gets the request alone.

    Such an endpoint reads and checks the body itself, so FastAPI need only describe it. FastAPI's own way to an
    endpoint would be a fifteenth of the function calls of a question.
    """

    def get_route_handler(self) -> Callable[..., Any]:
        """The endpoint itself, or FastAPI's way to it."""
        return self.endpoint if self.response_class is Response else super().get_route_handler()
