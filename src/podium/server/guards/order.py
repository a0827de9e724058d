"""Which guard stands where: the one that sees a request first is put up last."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from podium.server.guards.bodies import Bodies
from podium.server.guards.clock import Clock
from podium.server.guards.host_check import HostCheck
from podium.server.guards.security_headers import SecurityHeaders
from podium.server.service import Service
from podium.server.traffic import Traffic

_SHOWN = ("x-podium-trace-id", "x-podium-cost-usd", "retry-after")
"""Headers of answers that pages of other origins may read."""


def install(app: FastAPI, service: Service, traffic: Traffic) -> None:
    """Put up all guards around `app`."""
    settings = service.settings
    app.add_middleware(
        Bodies,
        most_bytes=settings.body_bytes,
        most_seconds=settings.body_seconds,
        most_depth=settings.depth,
        most_values=settings.values,
    )
    app.add_middleware(Clock, traffic=traffic, seconds=settings.request_seconds)
    if settings.origins:
        # Inside the doors: whoever they turn away is no page that could read why.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=_SHOWN,
            max_age=600,
        )
    app.add_middleware(HostCheck, service=service)
    app.add_middleware(SecurityHeaders)
