"""GET /api/runs: what runs there are, what each measured, and its rows as they are written.

A run is a folder in the server's folder of runs. Nothing is changed here.


@@The run folders under one folder, as their files say; read anew each time, for they may be written meanwhile.

A name is looked up among those that are found, so none leads out of the folder. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from podium.server.api_errors import error_responses, missing
from podium.server.service import Service
from podium.server.streaming import EventStream, Write, sse_event

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

    @router.get("/api/runs", responses=error_responses(401, 429))
    async def runs(request: Request) -> dict[str, Any]:
        """The runs there are, the latest first."""
        await service.authenticate(request.headers.get("authorization"))
        return {"runs": await asyncio.to_thread(_summaries, service)}

    @router.get(
        "/api/runs/{name:path}/events",
        response_class=Response,
        responses={**error_responses(401, 404, 422, 429), 200: {"content": {"text/event-stream": {}}}},
    )
    async def events(request: Request, name: str, after: Annotated[int, Query(ge=0)] = 0) -> Response:
        """Rows after the first `after`, as they are written: `row`; `rewound` where it goes on from an earlier one;
        `comparison` when that is written. The stream ends after a while and can be taken up again."""
        await service.authenticate(request.headers.get("authorization"))
        run = await find(name)

        async def tell(write: Write) -> None:
            await write(b": rows\n\n")
            try:
                async with asyncio.timeout(_LONGEST_S):
                    await _tell(run, after, write)
            except TimeoutError:
                return

        return EventStream(tell, {})

    @router.get("/api/runs/{name:path}", responses=error_responses(401, 404, 429))
    async def run(request: Request, name: str) -> dict[str, Any]:
        """One run: its settings, its rows, and what it was compared with, if it was."""
        await service.authenticate(request.headers.get("authorization"))
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
        await write(sse_event({"rows": 0}, "rewound"))
    for row in known[number:]:
        await write(sse_event({"number": number, "row": row}, "row"))
        number += 1
    while True:
        await asyncio.sleep(_EVERY_S)
        anew, found = await asyncio.to_thread(rows.read)
        if anew:
            number = 0
            await write(sse_event({"rows": 0}, "rewound"))
        for row in found:
            await write(sse_event({"number": number, "row": row}, "row"))
            number += 1
        at = run.compared_at()
        if at != compared:
            compared = at
            await write(sse_event({"comparison": run.comparison()}, "comparison"))


_METRICS, _CONFIG, _COMPARISON = "metrics.jsonl", "config.json", "comparison.json"
_DEEPEST = 3
_MOST = 2000
"""Runs that are listed."""
_LATEST = ("reward", "accuracy", "valid", "loss")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run folder."""

    name: str
    """Its path from the folder of runs, with slashes."""
    path: Path

    def summary(self) -> dict[str, Any]:
        """What a list shows of it."""
        content = _bytes(self.path / _METRICS)
        lines = content.split(b"\n")[:-1]
        comparison = None if lines else self.comparison()
        if lines:
            row = _json(lines[-1])
            latest = {key: row[key] for key in _LATEST if key in row} if isinstance(row, dict) else {}
        else:
            latest = _compared(comparison)
        return {
            "name": self.name,
            "kind": "training" if lines or comparison is None else "evaluation",
            "iterations": len(lines),
            "updated_at": datetime.fromtimestamp(self._changed(), UTC).isoformat(timespec="seconds"),
            "latest": latest,
        }

    def configuration(self) -> Any:
        """Its settings; None where it has none that can be read."""
        return _json(_bytes(self.path / _CONFIG))

    def comparison(self) -> Any:
        """What it was compared with; None where it was not."""
        return _json(_bytes(self.path / _COMPARISON))

    def compared_at(self) -> int:
        """When that was written, as a mark that changes with it; 0: never."""
        try:
            return (self.path / _COMPARISON).stat().st_mtime_ns
        except OSError:
            return 0

    def rows(self) -> RowReader:
        """All whole rows of its metrics."""
        return RowReader(self.path / _METRICS)

    def _changed(self) -> float:
        found = []
        for name in (_METRICS, _COMPARISON, _CONFIG):
            try:
                found.append((self.path / name).stat().st_mtime)
            except OSError:
                continue
        return max(found, default=0.0)


class RowReader:
    """Reads a file of rows on and on, as it grows. A line that is not whole yet waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._file = 0
        """The file's number: another, when it was written anew."""

    def read(self) -> tuple[bool, list[Any]]:
        """Whether it was written anew, so that what was read before no longer holds; and the rows since then."""
        try:
            with self._path.open("rb") as file:
                at = os.fstat(file.fileno())
                anew = bool(self._file) and (at.st_ino != self._file or at.st_size < self._place)
                if anew:
                    self._place = 0
                self._file = at.st_ino
                file.seek(self._place)
                content = file.read()
        except OSError:
            return False, []
        whole = content[: content.rfind(b"\n") + 1]
        self._place += len(whole)
        return anew, [_json(line) for line in whole.split(b"\n")[:-1]]


def find_runs(folder: Path) -> dict[str, RunFiles]:
    """The run folders under `folder` by name, the latest first."""
    found = list(_found(folder, folder, _DEEPEST))
    found.sort(key=lambda run: (-run._changed(), run.name))
    return {run.name: run for run in found[:_MOST]}


def _found(folder: Path, root: Path, depth: int) -> Iterator[RunFiles]:
    try:
        with os.scandir(folder) as entries:
            folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in folders:
        path = folder / name
        if name.startswith("."):
            continue
        if any((path / file).is_file() for file in (_METRICS, _COMPARISON)):
            yield RunFiles(path.relative_to(root).as_posix(), path)
        elif depth > 1:
            yield from _found(path, root, depth - 1)


def _compared(comparison: Any) -> dict[str, float]:
    try:
        return {"accuracy": float(comparison["rows"][0]["accuracy"]["mean"])}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _json(content: bytes) -> Any:
    """What it says, with null for what JSON has no word for; None where it says nothing."""
    try:
        return json.loads(content, parse_constant=lambda word: None)
    except ValueError:
        return None
