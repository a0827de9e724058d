"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. The same command continues after a kill, and asks for no answer that is there. Nothing
here decides what may run (`check`) or shows anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from podium.child_process import usable_cores
from podium.evals.suite.check import CheckedSuite
from podium.evals.suite.job import run_job
from podium.evals.suite.plan import SuiteJob, TrainingResults
from podium.evals.suite.processes import run_in_children
from podium.evals.suite.results import GradedAnswer, Results, read_answers
from podium.evals.suite.setup import TableSetup, TrainingCache
from podium.executor import Dispatcher
from podium.planners import find_baseline
from podium.ratings.answers import NO_ANSWER
from podium.workers.answer import final_answer
from podium.workers.same_answer import answer_key

OnAnswer = Callable[[str, GradedAnswer], None]
"""Called with (label of the row, answer) for each new answer."""


async def run_suite(
    checked: CheckedSuite,
    run: Path,
    *,
    dispatcher: Dispatcher | None = None,
    given: TableSetup | None = None,
    on_answer: OnAnswer | None = None,
) -> Results:
    """Give every row all of its answers.

    Args:
        run: the run's folder.
        dispatcher: has the response cache and the accounts. With one, or if anything costs money, one process runs all
            jobs, so that limits and budgets hold for all of them.
        given: as in `check_suite`; one process then runs all jobs.

    Raises:
        UsageError: questions that a planner cannot take.
        BudgetError: an account refused a call; the answers until then are kept.
    """
    results, sizes, cache = Results(run), checked.answers, TrainingCache()
    wanted = checked.settings.processes or usable_cores()
    processes = 1 if dispatcher or given or checked.pays else wanted

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
            filled = ((_with_kept(job, results) for job in group) for group in groups)
            await run_in_children(filled, min(processes, len(groups)), emit)
            return
        for job in jobs:
            await run_job(_with_kept(job, results), emit, cache, dispatcher=dispatcher, given=given)

    # Tables that differ in what happens during the test alone share their training questions.
    training = checked.training
    await run_all({tuple(job.keys.values()): job for jobs in training.values() for job in jobs}.values())
    learned = {label: _learned(jobs, results) for label, jobs in training.items()}
    await run_all(job.model_copy(update={"training": learned.get(job.table.label)}) for job in checked.jobs)
    return results


def answers_left(checked: CheckedSuite, run: Path) -> int:
    """How many answers a run still lacks, those to training questions included."""
    results = Results(run)
    return sum(max(0, size - len(results.lines(key))) for key, size in checked.answers.items())


def _that_share(jobs: Iterable[SuiteJob]) -> list[list[SuiteJob]]:
    """The jobs, with those of routers that differ in their price alone together: one process then predicts once."""
    groups: dict[object, list[SuiteJob]] = {}
    for number, job in enumerate(jobs):
        known = find_baseline(job.entry.planner)
        method = job.entry.planner.split(":")[:2] if known and known[0].learns else number
        groups.setdefault((job.table.label, job.seed, str(method)), []).append(job)
    return list(groups.values())


def _with_kept(job: SuiteJob, results: Results) -> SuiteJob:
    return job.model_copy(update={"kept": {key: results.lines(key) for key in job.keys.values()}})


def _learned(jobs: Sequence[SuiteJob], results: Results) -> TrainingResults:
    """What the training questions taught, from the answers of each worker."""
    keys = [key for job in jobs for key in job.keys.values()]
    columns = [[*read_answers(results.lines(key), key).values()] for key in keys]
    rows = list(zip(*columns, strict=True))
    return TrainingResults(
        workers=tuple(job.entry.planner.partition(":")[2] for job in jobs),
        texts=tuple(answer.trace.question.text for answer in columns[0]),
        answer_QW=tuple(_equal_answers(answer.trace.answer for answer in row) for row in rows),
        score_QW=tuple(tuple(answer.score for answer in row) for row in rows),
        cost_QW=tuple(tuple(answer.trace.uncached_usd for answer in row) for row in rows),
    )


def _equal_answers(responses: Iterable[str | None]) -> tuple[int, ...]:
    """A number for each response to a question; equal answers have equal numbers."""
    numbers: dict[str, int] = {}
    found = (None if response is None else final_answer(response) for response in responses)
    return tuple(
        NO_ANSWER if answer is None else numbers.setdefault(answer_key(answer), len(numbers))
        for answer in found
    )
