"""Runs a suite in a run's folder: first the training questions that choices need, then every planner and control.

The folder keeps the answers. The same command continues after a kill, and asks for no answer that is there. Nothing
here decides what may run (`opening`) or shows anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from podium.child_process import usable_cores
from podium.evals.suite.cells import Job, TrainingResults
from podium.evals.suite.job import run_job
from podium.evals.suite.open_table import OpenTable
from podium.evals.suite.opening import Checked
from podium.evals.suite.processes import run_in_children
from podium.evals.suite.results import GradedAnswer, Results, read_answers
from podium.executor import Dispatcher
from podium.planners import find_baseline
from podium.ratings.answers import NO_ANSWER
from podium.workers.answer import final_answer
from podium.workers.same_answer import answer_key

OnAnswer = Callable[[str, GradedAnswer], None]
"""Called with (label of the row, answer) for each new answer."""


async def run_suite(
    checked: Checked,
    run: Path,
    *,
    dispatcher: Dispatcher | None = None,
    given: OpenTable | None = None,
    on_answer: OnAnswer | None = None,
) -> Results:
    """Give every cell all of its answers.

    Args:
        run: the run's folder.
        dispatcher: has the response cache and the accounts. With one, or if anything costs money, one process runs all
            jobs, so that limits and budgets hold for all of them.
        given: as in `check_suite`; one process then runs all jobs.

    Raises:
        UsageError: questions that a planner cannot take.
        BudgetError: an account refused a call; the answers until then are kept.
    """
    results = Results(run)
    wanted = checked.settings.processes or usable_cores()
    processes = 1 if dispatcher or given or checked.pays else wanted

    async def run_all(jobs: Sequence[Job]) -> None:
        jobs = [job for job in jobs if _is_unfinished(job, checked, results)]
        labels = {cell.key: cell.label for job in jobs for cell in job.cells}

        def emit(cell: str, line: str) -> None:
            results.append(cell, line)
            if on_answer:
                on_answer(labels[cell], GradedAnswer.model_validate_json(line))

        if processes > 1 and len(jobs) > 1:
            groups = _that_share(jobs)
            filled = ((_with_kept(job, results) for job in group) for group in groups)
            await run_in_children(filled, min(processes, len(groups)), emit)
            return
        for job in jobs:
            await run_job(_with_kept(job, results), emit, dispatcher=dispatcher, given=given)

    # Tables that differ in what happens during the test alone share their training questions.
    training = {job.cells[0].key: job for jobs in checked.training.values() for job in jobs}
    await run_all(list(training.values()))
    learned = {label: _learned(jobs, results) for label, jobs in checked.training.items()}
    await run_all(
        [job.model_copy(update={"training": learned.get(job.cells[0].table.label)}) for job in checked.jobs]
    )
    return results


def answers_left(checked: Checked, run: Path) -> int:
    """How many answers a run still lacks, those to training questions included."""
    results = Results(run)
    return sum(max(0, size - len(results.lines(key))) for key, size in checked.answers.items())


def _is_unfinished(job: Job, checked: Checked, results: Results) -> bool:
    return any(len(results.lines(cell.key)) < checked.answers[cell.key] for cell in job.cells)


def _that_share(jobs: Iterable[Job]) -> list[list[Job]]:
    """The jobs, with those of routers that differ in their price alone together: one process then predicts once."""
    groups: dict[object, list[Job]] = {}
    for number, job in enumerate(jobs):
        own = job.cells[0]
        known = find_baseline(own.entry.planner)
        method = own.entry.planner.split(":")[:2] if known and known[0].learns else number
        groups.setdefault((own.table.label, own.seed, str(method)), []).append(job)
    return list(groups.values())


def _with_kept(job: Job, results: Results) -> Job:
    kept = {cell.key: results.lines(cell.key) for cell in job.cells}
    return job.model_copy(update={"kept": kept})


def _learned(jobs: Iterable[Job], results: Results) -> TrainingResults:
    """What the training questions taught, from the answers of each worker."""
    found = {
        job.cells[0].entry.planner.partition(":")[2]: list(
            read_answers(results.lines(job.cells[0].key), job.cells[0].key).values()
        )
        for job in jobs
    }
    columns = list(found.values())
    texts = tuple(answer.trace.question.text for answer in columns[0])
    return TrainingResults(
        workers=tuple(found),
        texts=texts,
        answer_QW=tuple(
            _equal_answers([answer.trace.answer for answer in row]) for row in zip(*columns, strict=True)
        ),
        score_QW=tuple(zip(*([answer.score for answer in column] for column in columns), strict=True)),
        cost_QW=tuple(
            zip(*([answer.trace.uncached_usd for answer in column] for column in columns), strict=True)
        ),
    )


def _equal_answers(responses: Iterable[str | None]) -> tuple[int, ...]:
    """A number for each response to a question; equal answers have equal numbers."""
    numbers: dict[str, int] = {}
    found = (None if response is None else final_answer(response) for response in responses)
    return tuple(
        NO_ANSWER if answer is None else numbers.setdefault(answer_key(answer), len(numbers))
        for answer in found
    )
