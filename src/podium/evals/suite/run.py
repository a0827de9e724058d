"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. The same command continues after a kill, and asks for no answer that is there. Nothing
here decides what may run (`check`) or shows anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from podium.calls import Dispatcher
from podium.child_process import usable_cores
from podium.evals.suite.job import run_job
from podium.evals.suite.plan import SuiteJob, SuiteManifest
from podium.evals.suite.processes import run_in_children
from podium.evals.suite.results import AnswerFiles, GradedAnswer
from podium.evals.suite.setup import TableSetup
from podium.evals.suite.training import TrainingCache
from podium.planners import find_baseline

OnAnswer = Callable[[str, GradedAnswer], None]
"""Called with (label of the row, answer) for each new answer."""


async def run_suite(
    manifest: SuiteManifest,
    run: Path,
    *,
    dispatcher: Dispatcher | None = None,
    given: TableSetup | None = None,
    on_answer: OnAnswer | None = None,
) -> AnswerFiles:
    """Give every row all of its answers.

    Args:
        run: the run's folder.
        dispatcher: has the response cache and the spend limits. With one, or if anything costs money, one process runs
            all jobs, so that limits and budgets hold for all of them.
        given: as in `check_suite`; one process then runs all jobs.

    Raises:
        UsageError: questions that a planner cannot take.
        BudgetError: a spend limit refused a call; the answers until then are kept.
    """
    results, sizes, cache = AnswerFiles(run), manifest.answers, TrainingCache()
    wanted = manifest.settings.processes or usable_cores()
    processes = 1 if dispatcher or given or manifest.pays else wanted

    async def run_all(jobs: Iterable[SuiteJob]) -> None:
        jobs = [job for job in jobs if any(len(results.lines(key)) < sizes[key] for key in job.keys.values())]
        labels = {
            key: f"{job.entry.row}: {control}" if control else job.entry.row
            for job in jobs
            for control, key in job.keys.items()
        }

        def emit(key: str, line: str) -> None:
            results.append(key, line)
            if on_answer:
                on_answer(labels[key], GradedAnswer.model_validate_json(line))

        if processes > 1 and len(jobs) > 1:
            groups = _that_share(jobs)
            await run_in_children(run, groups, min(processes, len(groups)), emit)
            return
        for job in jobs:
            await run_job(job, results, emit, cache, dispatcher=dispatcher, given=given)

    await run_all(manifest.training_jobs)
    await run_all(manifest.jobs)
    return results


def answers_left(manifest: SuiteManifest, run: Path) -> int:
    """How many answers a run still lacks, those to training questions included."""
    results = AnswerFiles(run)
    return sum(max(0, size - len(results.lines(key))) for key, size in manifest.answers.items())


def _that_share(jobs: Iterable[SuiteJob]) -> list[list[SuiteJob]]:
    """The jobs, with those of routers that differ in their price alone together: one process then predicts once."""
    groups: dict[object, list[SuiteJob]] = {}
    for number, job in enumerate(jobs):
        known = find_baseline(job.entry.planner)
        method = job.entry.planner.split(":")[:2] if known and known[0].learns else number
        groups.setdefault((job.table.label, job.seed, str(method)), []).append(job)
    return list(groups.values())
