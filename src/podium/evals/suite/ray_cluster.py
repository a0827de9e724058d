"""Runs the jobs of a suite on a Ray cluster (https://docs.ray.io), as many at once as its machines have cores.

Every machine needs this version of Podium, and the suite's files under the same paths. A job sends its answers when it
has all of them, so a run that is killed repeats the jobs that were running. The answers are those of one process.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podium.child_process import python_environment
from podium.errors import UsageError
from podium.evals.suite.cells import Job
from podium.evals.suite.job import Emit, run_job
from podium.evals.suite.processes import side_by_side


class RayCluster:
    """Connected from the first jobs until it is closed: a new cluster takes seconds to start.

    Args:
        address: of the cluster's head, such as "10.0.0.1:6379"; "auto" is the cluster that runs on this machine,
            "local" a new one on this machine alone, which ends when this is closed. None: there are no jobs for it.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._ray: Any = None

    async def run(self, jobs: Iterable[Job], emit: Emit) -> None:
        """Run all jobs.

        Raises:
            UsageError: Ray is not installed, there is no such cluster, or a job raised it.
        """
        if self._ray is None:
            self._ray = _connected(self._address)
        ray, waiting = self._ray, iter(jobs)
        run = ray.remote(max_retries=3)(_answers)

        async def one_core() -> None:
            for job in waiting:
                lines, refused = await run.remote(job.to_json(), str(Path.cwd()))
                if refused is not None:
                    raise UsageError(refused)
                for cell, line in lines:
                    emit(cell, line)

        await side_by_side(max(1, int(ray.cluster_resources().get("CPU", 1))), one_core)

    def close(self) -> None:
        """Disconnect. Calling twice is fine."""
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None


def _connected(address: str | None) -> Any:
    try:
        import ray  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise UsageError(
            "ray = ... needs Ray, which is not installed: pip install 'podium-conductor[ray]'."
        ) from None
    try:
        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False if address == "local" else None,
            runtime_env={"env_vars": python_environment()},
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise UsageError(
            f"There is no Ray cluster at {address!r} ({why}); start one with: ray start --head."
        ) from None
    return ray


def _answers(job: str, folder: str) -> tuple[list[tuple[str, str]], str | None]:
    """The lines of a job as (cell, line), or why it is refused; runs on one of the cluster's machines."""
    os.chdir(folder)
    lines: list[tuple[str, str]] = []
    try:
        asyncio.run(run_job(Job.model_validate_json(job), lambda cell, line: lines.append((cell, line))))
    except UsageError as error:
        return [], str(error)
    return lines, None
