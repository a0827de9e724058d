"""GET /v1/models: the names that a request's `model` may have, and the planner or worker behind each."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from podium.server.api_errors import not_found
from podium.server.keys import Caller
from podium.server.requests import RequestCaller
from podium.server.service import Service
from podium.types import Profile

_CREATED = 0
"""OpenAI's format requires a number; models here have no creation time."""


def add_routes(app: FastAPI, service: Service) -> None:
    """GET /v1/models and /v1/models/{name}."""

    @app.get("/v1/models")
    async def models(caller: RequestCaller) -> dict[str, Any]:
        return {"object": "list", "data": list(_models(service, caller).values())}

    @app.get("/v1/models/{name:path}")
    async def model(caller: RequestCaller, name: str) -> dict[str, Any]:
        entry = _models(service, caller).get(name)
        if entry is None:
            raise not_found(
                f"The model {name[:100]!r} does not exist; GET /v1/models lists them.",
                "model",
                code="model_not_found",
            )
        return entry


def _models(service: Service, caller: Caller) -> dict[str, dict[str, Any]]:
    allowed = caller.allowed(service.pool.names)
    workers = {
        profile.name: _worker_model(profile) for profile in service.pool.profiles if profile.name in allowed
    }
    planned = [f"podium/{name}" for name in service.planners.names]
    # A request reaches a worker of the pool before a planner of the same name; "podium" is always the planner.
    planners = ["podium", *(name for name in planned if name not in service.pool.names)]
    return workers | {name: _planner_model(name, service) for name in planners}


def _planner_model(name: str, service: Service) -> dict[str, Any]:
    planner = name.partition("/")[2] or service.planners.configured
    return _model(name, {"kind": "planner", "planner": planner})


def _worker_model(profile: Profile) -> dict[str, Any]:
    return _model(
        profile.name, {"kind": "worker", "profile": profile.model_dump(mode="json", exclude={"rating"})}
    )


def _model(name: str, podium: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "podium", "podium": podium}
