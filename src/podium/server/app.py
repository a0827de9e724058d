"""The application: one service, the routes of every part, and the middleware around them.

Each module of routes has a function `routes(service)`. `serving` runs the application: sockets, signals, draining.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from podium import __version__
from podium.server import api_errors, operations, viewer
from podium.server.anthropic import messages
from podium.server.api import ask, outcomes, pool, runs, spend, traces
from podium.server.background import BackgroundQuestions
from podium.server.body_limits import BodyLimits
from podium.server.host_check import HostCheck, SecurityHeaders
from podium.server.in_flight import InFlightRequests, RequestTimeLimit
from podium.server.openai import (
    chat_completions,
    models,
    responses,
    stored_responses,
)
from podium.server.routing import PathNormalizer
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
    metrics = operations.Metrics(service, in_flight)
    service.observers.append(metrics.observer)

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
        redirect_slashes=False,  # `PathNormalizer` drops the slash again, so a redirect would never end.
        responses=api_errors.error_responses(*api_errors.ANY_ROUTE),
    )
    app.state.service = service
    app.state.in_flight = in_flight
    api_errors.add_error_handlers(app)
    routers = [
        *(
            module.routes(service)
            for module in (chat_completions, messages, models, pool, traces, outcomes, runs, spend)
        ),
        *(module.routes(service, background) for module in (responses, stored_responses)),
    ]
    for router in routers:
        app.include_router(router)
    if service.settings.serve.viewer:
        app.include_router(viewer.routes(service))
    app.include_router(ask.routes(service, background))
    app.include_router(operations.routes(service, in_flight, metrics))
    _add_middleware(app, service, in_flight)
    # This is the outermost middleware, so that requests that other middleware refuses are counted too.
    app.add_middleware(operations.RequestCounter, metrics=metrics)
    app.add_middleware(PathNormalizer)
    return app


def _add_middleware(app: FastAPI, service: Service, in_flight: InFlightRequests) -> None:
    """Wrap `app`. The middleware that is added last sees a request first."""
    settings = service.settings.serve
    app.add_middleware(
        BodyLimits,
        max_bytes=settings.body_bytes,
        max_seconds=settings.body_seconds,
    )
    app.add_middleware(RequestTimeLimit, in_flight=in_flight, seconds=settings.timeout)
    if settings.cors:
        # This is inside the host check, since a page that the check refuses may not read the refusal anyway.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=_EXPOSED_HEADERS,
            max_age=600,
        )
    app.add_middleware(HostCheck, service=service)
    app.add_middleware(SecurityHeaders)
