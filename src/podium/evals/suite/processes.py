"""Runs jobs in child processes: each child runs one job at a time and sends the answers back as lines.

Only the parent writes files. If the parent has ended, a child ends at its next answer. The child runs this file as a
module.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from podium.child_process import ChildEndedError, ChildProcess
from podium.errors import PodiumError, UsageError, flatten_group
from podium.evals.answering.answer_files import AnswerFiles
from podium.evals.suite.job import run_jobs
from podium.evals.suite.manifest import SuiteJob
from podium.evals.suite.training_answers import SharedByJobs
from podium.rollout import Rollout


async def run_in_children(results: AnswerFiles, groups: Iterable[Iterable[SuiteJob]], processes: int) -> None:
    """Run all jobs, `processes` at a time. The jobs of a group run in one process, one after the other.

    Args:
        results: the answers of the run. Each process reads earlier answers there.

    Raises:
        UsageError: a child raised it.
        PodiumError: a child ended before its job ended.
    """
    waiting = iter(groups)
    with ThreadPoolExecutor(processes, thread_name_prefix="suite") as threads:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(processes):
                    group.create_task(_run_child(results, waiting, threads))
        except BaseExceptionGroup as errors:
            own = errors.subgroup(PodiumError)
            if own is None:
                raise
            raise next(flatten_group(own)) from None


async def _run_child(
    results: AnswerFiles, waiting: Iterable[Iterable[SuiteJob]], threads: ThreadPoolExecutor
) -> None:
    """Run jobs in a child until no job waits."""
    loop = asyncio.get_running_loop()
    child = ChildProcess(("-m", __name__, str(results.folder.parent)))
    try:
        for job in chain.from_iterable(waiting):
            try:
                await loop.run_in_executor(threads, child.write_line, job.to_json().encode())
                while (message := json.loads(await loop.run_in_executor(threads, child.read_line))) != "done":
                    if "refused" in message:
                        raise UsageError(message["refused"])
                    results.add(
                        message["key"], message["label"], Rollout.model_validate_json(message["line"])
                    )
            except ChildEndedError as error:
                raise PodiumError(
                    f"A process that ran {job.entry.row} {error}; run the same command again: all answers until "
                    "then are kept."
                ) from None
    finally:
        # A thread that still reads then gets the end of the output.
        child.stop()


def main() -> None:
    """Run the child: read jobs from standard input, one per line, and write answers to standard output."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # The output is for answers, and not for what graders print.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: object) -> None:
        try:
            out.write(json.dumps(message) + "\n")
            out.flush()
        except BrokenPipeError:  # The parent has ended.
            os._exit(1)

    class SentAnswers(AnswerFiles):
        """Answers that the parent writes."""

        def add(self, key: str, label: str, answer: Rollout) -> None:
            send({"key": key, "label": label, "line": answer.to_json_line()})

    shared = SharedByJobs(SentAnswers(Path(sys.argv[1])))
    for text in sys.stdin:
        try:
            asyncio.run(run_jobs([SuiteJob.model_validate_json(text)], shared))
        except UsageError as error:
            send({"refused": str(error)})
        send("done")


if __name__ == "__main__":
    main()
