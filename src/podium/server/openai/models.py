"""GET /v1/models: the names that a request's `model` may have, and the planner or worker behind each."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from podium.server.keys import Caller
from podium.server.requests import RequestCaller
from podium.server.service import Service
from podium.server.worker_selection import unknown_model


def add_routes(app: FastAPI, service: Service) -> None:
    @app.get("/v1/models")
    async def models(caller: RequestCaller) -> dict[str, Any]:
        return {"object": "list", "data": list(_models(service, caller).values())}

    @app.get("/v1/models/{name:path}")
    async def model(caller: RequestCaller, name: str) -> dict[str, Any]:
        entry = _models(service, caller).get(name)
        if entry is None:
            raise unknown_model(name, service.pool, caller)
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
    # OpenAI's format requires a number, and models here have no creation time.
    return {
        name: {"id": name, "object": "model", "created": 0, "owned_by": "podium", "podium": kind}
        for name, kind in kinds.items()
    }
