"""GET /healthz and /readyz: whether the process lives, and whether it is of use to send it questions.

For whoever runs servers; no key is needed, and nothing is told that is anybody's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from podium.errors import APIError
from podium.server.api_errors import responses
from podium.server.service import Service
from podium.server.traffic import Traffic

_SILENT = "The Conductor does not answer; the server's log says why."


def routes(service: Service, traffic: Traffic) -> APIRouter:
    """The routes on `service`."""
    router = APIRouter(tags=["operations"])
    checks: set[asyncio.Task[object]] = set()

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """The process lives."""
        return {"status": "ok"}

    @router.head("/readyz", include_in_schema=False)
    @router.get("/readyz", responses=responses(503))
    async def readyz() -> dict[str, Any]:
        """Questions can be answered and their traces kept; else 503, and why.

        Where the Conductor does not answer and one worker takes all questions, the status is "degraded".
        """
        if service.planners.check_is_due:
            checks.add(check := asyncio.create_task(service.planners.check()))
            check.add_done_callback(checks.discard)
        reason = unready(service, traffic)
        silent = None if service.planners.trouble is None else _SILENT
        if reason is None and service.planners.fallback is None:
            reason = silent
        if reason is not None:
            raise APIError(503, "server_error", reason, code="not_ready", headers={"Retry-After": "5"})
        if silent is not None:
            return {"status": "degraded", "reason": f"{silent} One worker takes all questions."}
        return {"status": "ready"}

    return router


def unready(service: Service, traffic: Traffic) -> str | None:
    """Why questions should go to another server for now, in one sentence; None: they need not."""
    if traffic.draining:
        return "The server is ending."
    if service.store is not None and service.store.trouble is not None:
        # The sentence of the store names files and hosts, and whoever asks here has shown no key.
        return "Traces cannot be written; the server's log says why."
    resting = {status.worker for status in service.dispatcher.status if status.state != "closed"}
    if resting.issuperset(service.pool.names):
        return "All workers rest after failures."
    return None
