"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. After a kill, the same command continues and makes only missing answers. `check` decides
what may run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from podium.calls import Dispatcher
from podium.child_process import usable_cores
from podium.evals.answering.answer_files import AnswerFiles, OnAnswer
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.job import run_jobs
from podium.evals.suite.manifest import SuiteJob, SuiteManifest
from podium.evals.suite.processes import run_in_children
from podium.evals.suite.training_answers import SharedByJobs
from podium.planners import find_baseline


async def run_suite(
    manifest: SuiteManifest,
    run: Path,
    *,
    dispatcher: Dispatcher | None = None,
    open_inputs: ComparisonInputs | None = None,
    on_answer: OnAnswer = lambda label, answer: None,
) -> AnswerFiles:
    """Make all missing answers of all rows, and grade again those whose grader failed.

    Args:
        run: the run's folder.
        dispatcher: the response cache and the spend limits. If it is given, or if anything costs money, one process
            runs all jobs, so that limits and budgets hold for all of them.
        open_inputs: as in `check_suite`. If it is given, one process runs all jobs.

    Raises:
        UsageError: a planner cannot take the questions.
        BudgetError: a spend limit refused a call. The answers until then are kept.
    """
    results, sizes = AnswerFiles(run, on_answer), manifest.answers
    shared = SharedByJobs(results, dispatcher, open_inputs)
    wanted = manifest.settings.processes or usable_cores()
    processes = 1 if dispatcher or open_inputs or manifest.pays else wanted
    for jobs in (manifest.training_jobs, manifest.jobs):
        left = [job for job in jobs if any(results.unfinished(key, sizes[key]) for key in job.keys.values())]
        if processes > 1 and len(left) > 1:
            groups = _grouped(left, _predictions)
            await run_in_children(results, groups, min(processes, len(groups)))
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
    return (job.table, job.seed) if job.worker and len(job.keys) == 1 else None


def _predictions(job: SuiteJob) -> object | None:
    """Routers that differ only in their price run in one process, which predicts once for all."""
    known = find_baseline(job.entry.planner)
    learns = known is not None and known[0].learns
    return (job.table.label, job.seed, *job.entry.planner.split(":")[:2]) if learns else None
