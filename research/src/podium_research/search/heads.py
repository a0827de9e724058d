"""Trains TRINITY's head on whole answers: sep-CMA-ES, rewarded by what the planner with this head gets right.

Any live pool answers, so the head learns which worker to ask and in which role. The trainer keeps no file: its caller
keeps the rewards of each generation, and gives them back to continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from podium.calls import CallState
from podium.config import suggestion
from podium.errors import BudgetExceededError, ConfigError, UsageError
from podium.evals.evaluation import Evaluation, evaluate
from podium.executor import ExecutionSettings
from podium.rollout import Rollout
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget
from podium.workers.pool import Pool
from podium_research.planners.masrouter_controller import Controller
from podium_research.planners.trinity import Trinity
from podium_research.planners.trinity_head import Evolution, Head
from podium_research.search.settings import ControllerSearch, HeadSearch

_START = 2.0
"""How far the first head's choices of roles lie apart, in deviations of the first generation: about one head in five
then chooses another role."""


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One generation of heads, or one epoch of a controller, as far as a run has to keep it."""

    number: int
    """From 1."""
    scores: tuple[float | None, ...]
    """The mean reward of each head, or the utility of each team in the order of the draws; None where workers or the
    grader failed."""
    cost_usd: float
    """What its answers cost, the cached ones included."""
    found: Head | Controller
    """The mean of the heads that the next generation is drawn around, or the controller as trained so far."""


def head_workers(pool: Pool, named: Sequence[str]) -> tuple[str, ...]:
    """The workers that a head chooses among; `ConfigError` if the pool lacks one, or has none."""
    models = pool.answering
    for name in named:
        if name not in models:
            raise ConfigError(
                f"workers names {name!r}, which answers no questions here; {suggestion(name, models)}"
            )
    if not models:
        raise ConfigError("The pool has only tools; a head needs workers that answer questions.")
    return tuple(dict.fromkeys(named)) or models


async def train_head_live(
    pool: Pool,
    tasks: Sequence[Task],
    settings: HeadSearch,
    *,
    resume_from: Iterable[Sequence[float]] = (),
    call_state: CallState | None = None,
) -> AsyncIterator[TrainingStep]:
    """Train a head, and yield each new generation.

    The heads of a generation answer the same questions with the same seeds. So identical calls are paid once if the
    call_state has a response cache, and rewards differ only by the heads.

    Args:
        tasks: the questions that generations are drawn from. Do not evaluate the head on them later.
        resume_from: the rewards of the generations that an earlier start has made. They are not made again, and the
            next generations are those of an uninterrupted training.

    Raises:
        ConfigError: the package `cmaes` is missing, or a worker.
        UsageError: workers or the grader failed on all answers of a generation.
        BudgetExceededError: a spend limit refused a call; calls in flight have ended, so a cache has their answers.
    """
    workers = head_workers(pool, settings.workers)
    start = settings.sigma * _START * np.asarray(Head.untrained(workers).weights)
    search = Evolution(start, population=settings.population, sigma=settings.sigma, seed=settings.seed)
    earlier = list(resume_from)
    for number in range(1, settings.generations + 1):
        heads = [Head.of(workers, weights) for weights in search.ask()]
        if number <= len(earlier):
            search.tell(earlier[number - 1])
            continue
        random = Random(f"head-search/{settings.seed}/{number}")
        drawn_tasks = random.sample(list(tasks), min(len(tasks), settings.replications))
        tried = await _try(heads, drawn_tasks, pool, settings, call_state or CallState())
        rewards = [
            [score for rollout in each.rollouts if (score := net_score(rollout, settings)) is not None]
            for each in tried
        ]
        known = [sum(each) / len(each) for each in rewards if each]
        if not known:
            raise all_failed(settings, number)
        # Heads that could not be tried have the mean of the others.
        scores = tuple(sum(each) / len(each) if each else sum(known) / len(known) for each in rewards)
        search.tell(scores)
        cost_usd = sum(rollout.trace.uncached_usd for each in tried for rollout in each.rollouts)
        yield TrainingStep(number, scores, cost_usd, Head.of(workers, search.mean))


def net_score(rollout: Rollout, settings: HeadSearch | ControllerSearch) -> float | None:
    """1 for a right answer minus what its dollars cost; None if workers or the grader failed."""
    if rollout.infrastructure_failed:
        return None
    return rollout.correct - settings.per_usd * rollout.trace.uncached_usd


def all_failed(settings: HeadSearch | ControllerSearch, number: int) -> UsageError:
    """The error of a generation or epoch in which nobody answered."""
    return UsageError(
        f"Workers or the grader failed on all questions of {settings.unit} {number}: run podium pool check, and then "
        "the same command again to continue."
    )


async def _try(
    heads: Sequence[Head], tasks: Sequence[Task], pool: Pool, settings: HeadSearch, call_state: CallState
) -> list[Evaluation]:
    """Try all heads on the same questions, with at most `settings.concurrency` questions at once."""
    tried: dict[int, Evaluation] = {}
    refusals: list[BudgetExceededError] = []
    pending = enumerate(heads)

    async def work() -> None:
        for number, head in pending:
            if refusals:
                return
            runner = Runner(
                Trinity(head),
                pool,
                budget=Budget(rounds=Trinity.rounds),
                settings=ExecutionSettings(early_stop=settings.early_stop),
                call_state=call_state,
            )
            try:
                tried[number] = await evaluate(
                    runner, tasks, concurrency=settings.concurrency, seed=f"head-search/{settings.seed}"
                )
            except BudgetExceededError as error:
                # Not raised here: the other heads' calls in flight are paid for, so they may end.
                refusals.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, settings.concurrency // len(tasks))):
            group.create_task(work())
    if refusals:
        raise refusals[0]
    return [tried[number] for number in range(len(heads))]
