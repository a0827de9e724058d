"""GET /api/runs: training and evaluation runs; one run's settings, metrics and comparison; and its traces.

A run is a folder in the server's folder of runs. Its files are read again for each request, since a run may be writing
them. Names are looked up among the found folders, so no name leads outside. Nothing is changed here.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Response

from podium.errors import APIError, UnknownTraceError, UsageError
from podium.server.api_errors import not_found
from podium.server.requests import find_caller
from podium.server.service import Service
from podium.store import TraceStore
from podium.trace import Trace
from podium.trace.serialization import to_json

_METRICS, _CONFIG, _COMPARISON = "metrics.jsonl", "config.json", "comparison.json"
_MAX_DEPTH = 3
"""How deep run folders may lie in the folder of runs."""
_MAX_RUNS = 2000
"""The most runs that are listed."""
_SUMMARY_METRICS = ("reward", "accuracy", "valid", "loss")


def add_routes(app: FastAPI, service: Service) -> None:
    """The routes under /api/runs."""
    router = APIRouter(dependencies=[Depends(find_caller)])
    folder = service.settings.serve.runs

    async def find(name: str) -> RunFiles:
        by_name = await asyncio.to_thread(find_runs, folder)
        if name not in by_name:
            raise not_found(f"There is no run {name[:100]!r} in the server's folder of runs.", "name")
        return by_name[name]

    @router.get("/api/runs")
    async def runs() -> dict[str, Any]:
        """All runs, the latest first."""
        return {
            "runs": await asyncio.to_thread(lambda: [run.summary() for run in find_runs(folder).values()])
        }

    @router.get(
        "/api/runs/{name:path}/traces/{id}",
        response_class=Response,
        responses={200: {"model": Trace}},
    )
    async def trace(name: str, id: str) -> Response:
        """One rollout of the run, by the id of its trace."""
        run = await find(name)
        rollout = await asyncio.to_thread(run.trace, id)
        return Response(to_json(rollout), media_type="application/json")

    @router.get(
        "/api/runs/{name:path}",
        responses={304: {"description": "Nothing was written since the ETag in If-None-Match."}},
    )
    async def run(
        name: str, response: Response, if_none_match: Annotated[str | None, Header()] = None
    ) -> dict[str, Any] | None:
        """One run: its settings, its metrics, and its comparison if there is one. To watch a run, send the ETag of the
        latest reply as `If-None-Match`.
        """
        run = await find(name)
        # A file that is written meanwhile gets another tag next time.
        response.headers["etag"] = tag = await asyncio.to_thread(run.tag)
        if tag == if_none_match:
            response.status_code = 304
            return None
        return await asyncio.to_thread(run.document)

    app.include_router(router)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run folder."""

    name: str
    """The run's path within the folder of runs, with slashes."""
    path: Path

    def summary(self) -> dict[str, Any]:
        """The entry of this run in the list of runs."""
        lines = self._lines()
        comparison = None if lines else self.comparison()
        if lines:
            row = _row(lines[-1]) or {}
            latest = {key: row[key] for key in _SUMMARY_METRICS if key in row}
        else:
            latest = _accuracy(comparison)
        return {
            "name": self.name,
            "kind": "training" if lines or comparison is None else "evaluation",
            "iterations": len(lines),
            "updated_at": datetime.fromtimestamp(self.changed_s, UTC).isoformat(timespec="seconds"),
            "latest": latest,
            "questions": self.questions(),
        }

    def document(self) -> dict[str, Any]:
        """All that is known about this run."""
        return {
            "configuration": self.configuration(),
            "questions": self.questions(),
            "metrics": [_row(line) for line in self._lines()],
            "comparison": self.comparison(),
        }

    def questions(self) -> dict[str, Any]:
        """The task set and split of the run's training questions, and of its comparison's questions.

        They are None if there are no such questions, or the folder does not name them. GRPO trains on the split train.
        """
        configuration = self.configuration()
        settings = configuration if isinstance(configuration, dict) else {}
        training = evaluation = None
        if isinstance(settings.get("tasks"), str):
            grpo = isinstance(settings.get("grpo"), dict) and settings.get("stage") in (None, "grpo")
            training = {"set": settings["tasks"], "split": "train" if grpo else None}
        compared = self.comparison()
        if isinstance(compared, dict) and isinstance(compared.get("tasks"), str) and compared["tasks"]:
            name, _, split = compared["tasks"].rpartition("/")
            evaluation = {"set": name or split, "split": split if name else None}
        return {"training": training, "evaluation": evaluation}

    def configuration(self) -> Any:
        """The run's settings. None if they cannot be read."""
        return _parse(_read(self.path / _CONFIG))

    def comparison(self) -> Any:
        """The run's comparison. None if there is none."""
        return _parse(_read(self.path / _COMPARISON))

    def tag(self) -> str:
        """An ETag, which changes whenever a file of this run is written."""
        written = (f"{at.st_mtime_ns:x}-{at.st_size:x}" for at in self._stats())
        return f'"{"-".join(written)}"'

    def trace(self, id_: str) -> Trace:
        """The trace of one of the run's rollouts.

        Raises:
            APIError: 404, the run has no trace with this id, or keeps no traces.
            StoreError: the file cannot be read.
        """
        from podium.rollout.run_folder import TRACES  # noqa: PLC0415 - brings every grader, which no server needs

        path = self.path / TRACES
        if not path.is_file():
            raise _no_trace(f"The run {self.name!r} keeps no traces of its rollouts.")
        try:
            with TraceStore(path, read_only=True) as store:
                return store.get(id_)
        except UnknownTraceError:
            raise _no_trace(f"The run {self.name!r} has no trace {id_[:64]!r}.") from None
        except UsageError:
            raise _no_trace(
                f"The file {TRACES} of the run {self.name!r} is no trace store that can be read."
            ) from None

    @property
    def changed_s(self) -> float:
        """When a file of this run was last written, in seconds since 1970. 0 if the run has no file."""
        return max((at.st_mtime for at in self._stats()), default=0.0)

    def _stats(self) -> Iterator[os.stat_result]:
        for name in (_METRICS, _COMPARISON, _CONFIG):
            with suppress(OSError):
                yield (self.path / name).stat()

    def _lines(self) -> list[bytes]:
        """The lines of metrics. One that is not finished yet is left out."""
        return _read(self.path / _METRICS).split(b"\n")[:-1]


def find_runs(folder: Path) -> dict[str, RunFiles]:
    """The run folders under `folder` by name, the latest first."""
    runs = list(_runs_under(folder, folder, _MAX_DEPTH))
    runs.sort(key=lambda run: (-run.changed_s, run.name))
    return {run.name: run for run in runs[:_MAX_RUNS]}


def _runs_under(folder: Path, root: Path, depth: int) -> Iterator[RunFiles]:
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
            yield from _runs_under(path, root, depth - 1)


def _no_trace(message: str) -> APIError:
    return not_found(message, "id", code="trace_not_found")


def _accuracy(comparison: Any) -> dict[str, float]:
    try:
        return {"accuracy": float(comparison["rows"][0]["accuracy"]["mean"])}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of metrics in a line. None if the line is damaged."""
    row = _parse(line)
    return row if isinstance(row, dict) else None


def _parse(content: bytes) -> Any:
    """The parsed content, with None for NaN and infinities. None if the content is not JSON."""
    try:
        return json.loads(content, parse_constant=lambda word: None)
    except ValueError:
        return None
