"""The application: every part's routes on one service, in one place.

Each part has `routes(service)`. What the server is run by (sockets, signals, draining) is `serving`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from podium import __version__
from podium.server import (
    api_errors,
    ask,
    chat,
    guards,
    health,
    metrics,
    models,
    pool_page,
    responses,
    runs,
    traces,
    viewer,
)
from podium.server.service import Service
from podium.server.traffic import Traffic


def create_app(service: Service) -> FastAPI:
    """The application over `service`, which is closed when the application's life ends."""
    desk = ask.BackgroundQuestions(service)
    traffic = Traffic()
    figures = metrics.Metrics(service, traffic)
    service.watches.append(figures.watch)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        del app
        try:
            yield
        finally:
            await desk.close()
            await service.close()

    app = FastAPI(
        title="Podium",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        responses=api_errors.responses(*api_errors.GUARDED),
    )
    app.state.service = service
    app.state.traffic = traffic
    api_errors.install(app)
    for part in (
        chat,
        responses,
        models,
        pool_page,
        traces,
        runs,
        *([viewer] if service.settings.viewer else []),
    ):
        app.include_router(part.routes(service))
    app.include_router(ask.routes(service, desk))
    app.include_router(health.routes(service, traffic))
    app.include_router(metrics.routes(service, figures))
    guards.install(app, service, traffic)
    app.add_middleware(metrics.Measured, metrics=figures)
    return app
