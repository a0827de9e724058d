"""The application: one service, the routes of every part, and the middleware around them.

Each module of routes has a function `add_routes`. `serving` runs the application: sockets, signals, draining.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import signature
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from podium import __version__
from podium.server import monitoring, viewer
from podium.server.anthropic import messages
from podium.server.api import ask, pool, runs, spend, traces
from podium.server.api_errors import ERROR_RESPONSES, add_error_handlers
from podium.server.background import BackgroundQuestions
from podium.server.body_limits import BodyLimits
from podium.server.in_flight import InFlightRequests, RequestTimeLimit
from podium.server.openai import chat_completions, responses
from podium.server.outer_middleware import OuterMiddleware
from podium.server.service import Service

_EXPOSED_HEADERS = (
    "x-podium-trace-id",
    "x-podium-cost-usd",
    "x-podium-ignored",
    "x-request-id",
    "retry-after",
)
"""Response headers that pages of other origins may read."""


def create_app(service: Service) -> FastAPI:
    """The application over `service`. It closes the service when it shuts down."""
    background = BackgroundQuestions(service)
    in_flight = InFlightRequests()
    metrics = monitoring.Metrics(service, in_flight)
    service.observers.append(metrics.observe)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        background.open()
        try:
            yield
        finally:
            await background.close()
            await service.close()

    app = FastAPI(
        title="Podium",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,  # `OuterMiddleware` drops the slash again, so a redirect would never end.
        responses=ERROR_RESPONSES,
    )
    app.state.service = service
    app.state.in_flight = in_flight
    app.router.route_class = _Route
    add_error_handlers(app)
    for module in (chat_completions, messages, pool, traces, runs, spend):
        module.add_routes(app, service)
    for module in (responses, ask):
        module.add_routes(app, service, background)
    if service.settings.serve.viewer:
        viewer.add_routes(app)
    monitoring.add_routes(app, service, in_flight, metrics)
    # The middleware that is added last sees a request first.
    settings = service.settings.serve
    app.add_middleware(BodyLimits, max_bytes=settings.body_bytes, max_seconds=settings.body_seconds)
    app.add_middleware(RequestTimeLimit, in_flight=in_flight, seconds=settings.timeout)
    if settings.cors:
        # This is inside `OuterMiddleware`, since a page that it refuses may not read the refusal anyway.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=_EXPOSED_HEADERS,
            max_age=600,
        )
    app.add_middleware(OuterMiddleware, service=service, metrics=metrics)
    return app


class _Route(APIRoute):
    """A route whose endpoint, if all it takes is the request, is called without FastAPI.

    Such an endpoint reads and checks the body itself, so FastAPI need only describe it. FastAPI's own way to an
    endpoint would be a tenth of the function calls of a question.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if signature(endpoint).parameters.keys() == {"request"} and self.response_class is Response:
            self.app = self._call

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.endpoint(Request(scope, receive))
        await response(scope, receive, send)
