"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. After a kill, the same command continues and makes only missing answers. `check` decides
what may run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from podium.calls import Dispatcher
from podium.child_process import usable_cores
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.job import run_jobs
from podium.evals.suite.manifest import SuiteJob, SuiteManifest
from podium.evals.suite.processes import run_in_children
from podium.evals.suite.results import AnswerFiles, OnAnswer
from podium.evals.suite.training import SuiteCache
from podium.planners import find_baseline
from podium.rollout import Rollout

ShowProgress = Callable[[str, int, int], None]
"""A function that is called with (what is done, how many, of how many)."""


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
    results, sizes, cache = AnswerFiles(run, on_answer), manifest.answers, SuiteCache()
    wanted = manifest.settings.processes or usable_cores()
    processes = 1 if dispatcher or open_inputs or manifest.pays else wanted

    async def run_all(jobs: Iterable[SuiteJob]) -> None:
        jobs = [job for job in jobs if any(results.unfinished(key, sizes[key]) for key in job.keys.values())]
        if processes > 1 and len(jobs) > 1:
            groups = _that_share(jobs)
            await run_in_children(results, groups, min(processes, len(groups)))
        else:
            await run_here(jobs, results, cache, dispatcher=dispatcher, open_inputs=open_inputs)

    await run_all(manifest.training_jobs)
    await run_all(manifest.jobs)
    return results


async def run_here(
    jobs: Iterable[SuiteJob],
    results: AnswerFiles,
    cache: SuiteCache,
    *,
    dispatcher: Dispatcher | None = None,
    open_inputs: ComparisonInputs | None = None,
) -> None:
    """Run jobs in this process. Single workers with the same questions are asked together (`run_jobs`), so that after a
    budget that ends early all have answered the same questions.

    Raises:
        UsageError, BudgetError: see `run_suite`.
    """
    groups: dict[object, list[SuiteJob]] = {}
    for number, job in enumerate(jobs):
        groups.setdefault((job.table, job.seed) if job.worker and len(job.keys) == 1 else number, []).append(
            job
        )
    for group in groups.values():
        await run_jobs(group, results, cache, dispatcher=dispatcher, open_inputs=open_inputs)


def accuracy_so_far(show: ShowProgress, left: int, dispatcher: Dispatcher | None = None) -> OnAnswer:
    """A listener that shows, after each of the `left` answers, the row, its accuracy so far and all dollars so far.

    Args:
        dispatcher: a dispatcher whose spend limit of the run has the paid dollars, including judging. If there is no
            such limit, the dollars are those of the answers, as if nothing had been cached.
    """
    paid = None if dispatcher is None else dispatcher.run_limit
    graded: dict[str, list[bool]] = {}
    count, dollars = 0, 0.0
    show("Asking", 0, left)

    def on_answer(label: str, answer: Rollout) -> None:
        nonlocal count, dollars
        count += 1
        dollars += answer.trace.uncached_usd
        verdicts = graded.setdefault(label, [])
        if answer.grade.failure is None:
            verdicts.append(answer.grade.correct)
        right = f"{sum(verdicts) / len(verdicts):.1%} right, " if verdicts else ""
        show(f"{label}: {right}${dollars if paid is None else paid.spent_usd:.4f} so far", count, left)

    return on_answer


def answers_left(manifest: SuiteManifest, run: Path) -> int:
    """How many answers or verdicts a run still lacks, including those of training questions."""
    results = AnswerFiles(run)
    return sum(results.unfinished(key, answers) for key, answers in manifest.answers.items())


def _that_share(jobs: Iterable[SuiteJob]) -> list[list[SuiteJob]]:
    """The jobs in groups. Routers that differ only in their price are in one group, so that one process predicts once
    for all."""
    groups: dict[object, list[SuiteJob]] = {}
    for number, job in enumerate(jobs):
        known = find_baseline(job.entry.planner)
        method = job.entry.planner.split(":")[:2] if known and known[0].learns else number
        groups.setdefault((job.table.label, job.seed, str(method)), []).append(job)
    return list(groups.values())
