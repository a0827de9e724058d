"""GET /v1/models: the names that a request's `model` may have, and the planner or worker behind each."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from podium.server.api_errors import not_found
from podium.server.keys import Caller
from podium.server.requests import RequestCaller
from podium.server.service import Service

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
    pool, planners = service.pool, service.planners
    allowed = caller.allowed(pool.names)
    kinds: dict[str, dict[str, Any]] = {
        profile.name: {"kind": "worker", "profile": profile.model_dump(mode="json", exclude={"rating"})}
        for profile in pool.profiles
        if profile.name in allowed
    }
    kinds["podium"] = {"kind": "planner", "planner": planners.configured}
    for name in planners.names:
        # A request reaches a worker of the pool before a planner of the same name.
        if f"podium/{name}" not in pool.names:
            kinds[f"podium/{name}"] = {"kind": "planner", "planner": name}
    return {
        name: {"id": name, "object": "model", "created": _CREATED, "owned_by": "podium", "podium": kind}
        for name, kind in kinds.items()
    }
