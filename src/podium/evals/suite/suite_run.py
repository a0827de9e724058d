"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. After a kill, the same command continues and makes only missing answers. What costs
nothing runs in child processes, each of which runs this file as a module, one job at a time, and sends its answers back
as lines. Only the parent writes files. If the parent has ended, a child ends at its next answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from podium.calls import CallState
from podium.concurrency.child_process import ChildEndedError, ChildProcess, usable_cores
from podium.errors import PodiumError, UsageError, flatten_group
from podium.evals.answer_files import AnswerFiles, OnAnswer
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.job import run_jobs
from podium.evals.suite.manifest import SuiteJob, SuiteManifest
from podium.evals.suite.training_answers import SuiteJobContext
from podium.planners import find_baseline
from podium.rollout import Rollout


async def run_suite(
    manifest: SuiteManifest,
    run: Path,
    *,
    call_state: CallState | None = None,
    open_inputs: ComparisonInputs | None = None,
    on_answer: OnAnswer = lambda label, answer: None,
) -> AnswerFiles:
    """Make all missing answers of all rows, and grade again those whose grader failed.

    Args:
        call_state: the response cache and the spend limits. If it is given, or if anything costs money, one process
            runs all jobs, so that limits and budgets hold for all of them.
        open_inputs: as in `check_suite`. If it is given, one process runs all jobs.

    Raises:
        UsageError: a planner cannot take the questions.
        BudgetExceededError: a spend limit refused a call. The answers until then are kept.
        PodiumError: a child process ended before its job ended.
    """
    results, sizes = AnswerFiles(run, on_answer), manifest.answers
    shared = SuiteJobContext(results, call_state, open_inputs)
    wanted = manifest.settings.processes or usable_cores()
    processes = 1 if call_state or open_inputs or manifest.pays else wanted
    for jobs in (manifest.training_jobs, manifest.jobs):
        left = [job for job in jobs if any(results.unfinished(key, sizes[key]) for key in job.keys)]
        if processes > 1 and len(left) > 1:
            groups = _grouped(left, _predictions)
            await _run_in_children(results, groups, min(processes, len(groups)))
        else:
            for group in _grouped(left, _asked_together):
                await run_jobs(group, shared)
    return results


def answers_left(manifest: SuiteManifest, run: Path) -> int:
    """How many answers or verdicts a run still lacks, including those of training questions."""
    results = AnswerFiles(run)
    return sum(results.unfinished(key, answers) for key, answers in manifest.answers.items())


def _grouped(jobs: Iterable[SuiteJob], shares: Callable[[SuiteJob], object | None]) -> list[list[SuiteJob]]:
    """The jobs in groups of those that share something. None shares nothing."""
    groups: dict[object, list[SuiteJob]] = {}
    for number, job in enumerate(jobs):
        groups.setdefault(shares(job) or number, []).append(job)
    return list(groups.values())


def _asked_together(job: SuiteJob) -> object | None:
    """Single workers with the same questions are asked together, so that after a budget that ends early all have
    answered the same questions."""
    return (job.table, job.seed) if job.worker and not job.control_keys else None


def _predictions(job: SuiteJob) -> object | None:
    """Routers that differ only in their price run in one process, which predicts once for all."""
    known = find_baseline(job.entry.planner)
    learns = known is not None and known[0].learns
    return (job.table.label, job.seed, *job.entry.planner.split(":")[:2]) if learns else None


async def _run_in_children(results: AnswerFiles, groups: Iterable[list[SuiteJob]], processes: int) -> None:
    """Run all jobs, `processes` at a time. The jobs of a group run in one process, one after the other."""
    waiting = iter(groups)
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(processes):
                tasks.create_task(_run_child(results, waiting))
    except BaseExceptionGroup as errors:
        own = errors.subgroup(PodiumError)
        if own is None:
            raise
        raise next(flatten_group(own)) from None


async def _run_child(results: AnswerFiles, waiting: Iterator[list[SuiteJob]]) -> None:
    child = ChildProcess(("-m", __name__, str(results.folder.parent)))
    try:
        for job in chain.from_iterable(waiting):
            try:
                await asyncio.to_thread(child.write_line, job.to_json().encode())
                while (message := json.loads(await asyncio.to_thread(child.read_line))) != "done":
                    if "refused" in message:
                        raise UsageError(message["refused"])
                    answer = Rollout.model_validate_json(message["line"])
                    results.add(message["key"], message["label"], answer)
            except ChildEndedError as error:
                raise PodiumError(
                    f"A process that ran {job.entry.row} {error}; run the same command again: all answers until "
                    "then are kept."
                ) from None
    finally:
        # A thread that still reads then gets the end of the output.
        child.stop()


def _run_as_child(run: Path) -> None:
    """Read jobs from standard input, one per line, and write answers to standard output."""
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

    shared = SuiteJobContext(SentAnswers(run))
    for text in sys.stdin:
        try:
            asyncio.run(run_jobs([SuiteJob.model_validate_json(text)], shared))
        except UsageError as error:
            send({"refused": str(error)})
        send("done")


if __name__ == "__main__":
    _run_as_child(Path(sys.argv[1]))
