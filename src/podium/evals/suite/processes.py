"""Runs jobs in child processes: each child runs one job at a time and sends the answers back as lines.

The parent alone writes files. A child ends when its parent has ended, at its next answer. Run as a module, this file is
the child.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any

from podium.errors import PodiumError, UsageError, flatten_group
from podium.evals.suite.cells import Job
from podium.evals.suite.job import Emit, run_job

_LONGEST = 2**30
"""Most bytes of a line: a job on a recording has the scores of all training questions."""


def cores() -> int:
    """How many processes this machine can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def run_in_children(groups: Iterable[Iterable[Job]], processes: int, emit: Emit) -> None:
    """Run all jobs, `processes` at a time; those of a group run in one process, one after the other.

    Raises:
        UsageError: a child raised it.
        PodiumError: a child ended before its job had.
    """
    waiting = iter(groups)
    await side_by_side(processes, lambda: _run_child(waiting, emit))


async def side_by_side(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Await `count` coroutines of `work` at once; of the errors that Podium makes, the first one is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        own = errors.subgroup(PodiumError)
        if own is None:
            raise
        raise next(flatten_group(own)) from None


def job_environment() -> dict[str, str]:
    """The environment of a process that runs jobs: it imports what ours would import, and uses one core."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return one_thread | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


async def _run_child(waiting: Iterable[Iterable[Job]], emit: Emit) -> None:
    """A child that runs jobs until none waits."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST,
        env=os.environ | job_environment(),
        start_new_session=True,  # The terminal's Ctrl-C reaches the parent alone, which then ends its children.
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        for job in chain.from_iterable(waiting):
            child.stdin.write(job.model_dump_json().encode() + b"\n")
            await child.stdin.drain()
            while (found := json.loads(await child.stdout.readline() or b'"ended"')) != "done":
                if found == "ended":
                    raise PodiumError(
                        f"A process that ran {job.cells[0].label} ended with status {await child.wait()}; run the same "
                        "command again: all answers until then are kept."
                    )
                if "refused" in found:
                    raise UsageError(found["refused"])
                emit(found["cell"], found["line"])
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def main() -> None:
    """The child: reads jobs from standard input, a line each, and writes answers to standard output."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # What a grader prints is no answer.

    def send(found: object) -> None:
        try:
            out.write(json.dumps(found) + "\n")
            out.flush()
        except BrokenPipeError:  # The parent has ended.
            os._exit(1)

    def emit(cell: str, line: str) -> None:
        send({"cell": cell, "line": line})

    for text in sys.stdin:
        try:
            asyncio.run(run_job(Job.model_validate_json(text), emit))
        except UsageError as error:
            send({"refused": str(error)})
        send("done")


if __name__ == "__main__":
    main()
