"""Middleware that resolves paths: it normalizes careless paths, and calls the endpoints of question routes itself.

These endpoints read and check their own bodies, so FastAPI need only describe them. Its way to an endpoint would take a
tenth of a question's CPU time. All other requests go to FastAPI.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from podium.errors import PodiumError
from podium.server.api_errors import to_api_error, to_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


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


def direct_routes(routers: Iterable[APIRouter]) -> dict[str, APIRoute]:
    """The routes of these routers that answer a POST with a response that they make from the request alone, by path."""
    return {
        route.path: route
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        and route.methods == {"POST"}
        and route.response_class is Response
        and not route.param_convertors
    }


class DirectRoutes:
    """Calls the endpoint of a request's route, if `routes` has it.

    Args:
        routes: the result of `direct_routes`.
    """

    def __init__(self, app: ASGIApp, routes: Mapping[str, APIRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route = self._routes.get(scope["path"]) if is_post else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route  # The metrics name it.
        begun = False

        async def note_begin(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            response = await route.endpoint(Request(scope, receive, send))
            await response(scope, receive, note_begin)
        except PodiumError as error:
            if begun:
                raise
            await to_response(to_api_error(error), scope["path"])(scope, receive, send)
