"""GET /api/runs: what runs there are, what each measured, and its rows as they are written.

A run is a folder in the server's folder of runs. Nothing is changed here.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from podium.server.api_errors import missing, responses
from podium.server.event_stream import EventStream, Write, event
from podium.server.run_files import RunFiles, find_runs
from podium.server.service import Service

_EVERY_S = 0.4
"""From look to look."""
_LONGEST_S = 20.0
"""Of one stream, which the viewer then takes up again: a server that ends need not wait for it longer."""


def routes(service: Service) -> APIRouter:
    """The routes of the runs in the service's folder of runs."""
    router = APIRouter(tags=["runs"])
    folder = service.settings.runs

    async def find(name: str) -> RunFiles:
        found = await asyncio.to_thread(find_runs, folder)
        if name not in found:
            raise missing(f"There is no run {name[:100]!r} in the server's folder of runs.", "name")
        return found[name]

    @router.get("/api/runs", responses=responses(401, 429))
    async def runs(request: Request) -> dict[str, Any]:
        """The runs there are, the latest first."""
        await service.admitted(request.headers.get("authorization"))
        return {"runs": await asyncio.to_thread(_summaries, service)}

    @router.get(
        "/api/runs/{name:path}/events",
        response_class=Response,
        responses={**responses(401, 404, 422, 429), 200: {"content": {"text/event-stream": {}}}},
    )
    async def events(request: Request, name: str, after: Annotated[int, Query(ge=0)] = 0) -> Response:
        """Rows after the first `after`, as they are written: `row`; `rewound` where it goes on from an earlier one;
        `comparison` when that is written. The stream ends after a while and can be taken up again."""
        await service.admitted(request.headers.get("authorization"))
        run = await find(name)

        async def tell(write: Write) -> None:
            await write(b": rows\n\n")
            try:
                async with asyncio.timeout(_LONGEST_S):
                    await _tell(run, after, write)
            except TimeoutError:
                return

        return EventStream(tell, {})

    @router.get("/api/runs/{name:path}", responses=responses(401, 404, 429))
    async def run(request: Request, name: str) -> dict[str, Any]:
        """One run: its settings, its rows, and what it was compared with, if it was."""
        await service.admitted(request.headers.get("authorization"))
        return await asyncio.to_thread(_whole, await find(name))

    return router


def _summaries(service: Service) -> list[dict[str, Any]]:
    return [run.summary() for run in find_runs(service.settings.runs).values()]


def _whole(run: RunFiles) -> dict[str, Any]:
    return {
        "configuration": run.configuration(),
        "metrics": run.rows().read()[1],
        "comparison": run.comparison(),
    }


async def _tell(run: RunFiles, after: int, write: Write) -> None:
    """Tell of new rows for ever."""
    rows = run.rows()
    _, known = await asyncio.to_thread(rows.read)
    compared = run.compared_at()
    number = after
    if len(known) < after:
        number = 0
        await write(event({"rows": 0}, "rewound"))
    for row in known[number:]:
        await write(event({"number": number, "row": row}, "row"))
        number += 1
    while True:
        await asyncio.sleep(_EVERY_S)
        anew, found = await asyncio.to_thread(rows.read)
        if anew:
            number = 0
            await write(event({"rows": 0}, "rewound"))
        for row in found:
            await write(event({"number": number, "row": row}, "row"))
            number += 1
        at = run.compared_at()
        if at != compared:
            compared = at
            await write(event({"comparison": run.comparison()}, "comparison"))
