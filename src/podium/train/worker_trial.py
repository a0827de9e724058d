"""Tries the workers of a run before it starts: each answers at least one question, which its grader judges.

The calls are paid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from podium.calls import CallState
from podium.executor.plan_estimate import Range, estimate_answer
from podium.rollout.rollout import run_rollout
from podium.tasks import Task
from podium.team import Runner
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class WorkerTrial:
    """How one worker answered one of the run's tasks, and how its grader judged the answer."""

    worker: str
    task: str
    answered: bool
    seconds: float
    """The time that the worker says it took. If the worker says none, the measured time."""
    cost_usd: float
    """Dollars of the answer and of its grading."""
    paid: bool
    """Whether the dollars are really paid. They are not if the worker is scripted or recorded."""
    score: float | None
    """The grade of the answer. None if there was no answer to grade, or if the grader failed."""
    error: str | None = None


def pair_workers(pool: Pool, tasks: Iterable[Task]) -> list[tuple[int, Task]]:
    """Pairs of a worker's number in the pool and the task that it is tried on.

    Each worker and each part of the task set occurs at least once. One task stands for each part, since a part has one
    grader.
    """
    by_part: dict[object, Task] = {}
    for task in tasks:
        by_part.setdefault((type(task.grader), task.facts.get("set")), task)
    chosen = list(by_part.values())
    return [(k % len(pool), chosen[k % len(chosen)]) for k in range(max(len(pool), len(chosen)))]


def trial_usd(pool: Pool, pairs: Iterable[tuple[int, Task]]) -> Range:
    """The likely dollars of the answers. Graders that are models cost extra."""
    return Range.sum(estimate_answer(pool, worker, task.question).cost_usd for worker, task in pairs)


async def try_workers(
    pool: Pool, pairs: Iterable[tuple[int, Task]], call_state: CallState
) -> list[WorkerTrial]:
    """Ask all workers at once.

    Raises:
        BudgetExceededError: the dollars of the day are spent.
    """
    async with asyncio.TaskGroup() as group:
        trials = [group.create_task(_try_worker(worker, task, pool, call_state)) for worker, task in pairs]
    return [trial.result() for trial in trials]


async def _try_worker(worker: int, task: Task, pool: Pool, call_state: CallState) -> WorkerTrial:
    runner = Runner.for_single_worker(pool.names[worker], pool, call_state)
    rollout = await run_rollout(runner, task, seed=f"dry run/{worker}")
    trace = rollout.trace
    spans = [span for round_ in trace.rounds for span in round_.spans]
    answered = trace.answer is not None
    return WorkerTrial(
        worker=pool[worker].profile.name,
        task=task.id,
        answered=answered,
        seconds=sum(span.seconds for span in spans),
        cost_usd=trace.cost_usd + rollout.grade.cost_usd,
        paid=pool[worker].is_costly,
        score=rollout.grade.score if answered and rollout.grade.failure is None else None,
        error=rollout.grade.failure
        if answered
        else next((span.error for span in spans if span.error), trace.error),
    )
