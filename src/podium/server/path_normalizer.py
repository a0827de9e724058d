"""Middleware that normalizes careless paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

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
