"""Trains TRINITY's head on whole answers: sep-CMA-ES, rewarded by what the planner with this head gets right.

Any live pool answers, so the head learns which worker to ask and in which role. The
trainer keeps no file: its caller keeps the rewards of each generation, and gives them back to continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from podium.calls import Dispatcher
from podium.config import suggestion
from podium.errors import BudgetError, ConfigError, UsageError
from podium.evals.evaluation import evaluate
from podium.executor import ExecutionSettings
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget
from podium.workers.pool import Pool
from podium_research.planners.trinity import Trinity
from podium_research.planners.trinity_head import Evolution, Head
from podium_research.search.settings import HeadSearch

_START = 2.0
"""How far the first head's choices of roles lie apart, in deviations of the first generation: about one head in five
then chooses another role."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The heads of one generation, as far as a run has to keep them."""

    number: int
    """The number of the generation, from 1."""
    rewards: tuple[float, ...]
    """The mean reward of each head."""
    cost_usd: float
    """What its answers cost, the cached ones included."""
    head: Head
    """The mean of the heads that the next generation is drawn around."""


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
    dispatcher: Dispatcher | None = None,
) -> AsyncIterator[Generation]:
    """Train a head, and yield each new generation.

    The heads of a generation answer the same questions with the same seeds. So identical calls are paid once if the
    dispatcher has a response cache, and rewards differ only by the heads.

    Args:
        tasks: the questions that generations are drawn from. Do not evaluate the head on them later.
        resume_from: the rewards of the generations that an earlier start has made. They are not made again, and the
            next generations are those of an uninterrupted training.

    Raises:
        ConfigError: the package `cmaes` is missing, or a worker.
        UsageError: workers or the grader failed on all answers of a generation.
        BudgetError: a spend limit refused a call; calls in flight have ended, so a cache has their answers.
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
        trials = await _trials(heads, drawn_tasks, pool, settings, dispatcher)
        rewards = _without_gaps([trial.reward for trial in trials], number)
        search.tell(rewards)
        cost_usd = sum(trial.cost_usd for trial in trials)
        yield Generation(number, rewards, cost_usd, Head.of(workers, search.mean))


@dataclass(frozen=True, slots=True)
class _Trial:
    reward: float | None
    """The mean reward. Is None if workers or the grader failed on all questions."""
    cost_usd: float


async def _trials(
    heads: Sequence[Head],
    tasks: Sequence[Task],
    pool: Pool,
    settings: HeadSearch,
    dispatcher: Dispatcher | None,
) -> list[_Trial]:
    """Try all heads on the same questions, with at most `settings.concurrency` questions at once."""
    shared = dispatcher or Dispatcher()
    trials: dict[int, _Trial] = {}
    refusals: list[BudgetError] = []
    pending = enumerate(heads)

    async def work() -> None:
        for number, head in pending:
            if refusals:
                return
            try:
                trials[number] = await _trial(head, tasks, pool, settings, shared)
            except BudgetError as error:
                # Not raised here: the other heads' calls in flight are paid for, so they may end.
                refusals.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, settings.concurrency // len(tasks))):
            group.create_task(work())
    if refusals:
        raise refusals[0]
    return [trials[number] for number in range(len(heads))]


async def _trial(
    head: Head, tasks: Sequence[Task], pool: Pool, settings: HeadSearch, dispatcher: Dispatcher
) -> _Trial:
    evaluation = await evaluate(
        Runner(
            Trinity(head),
            pool,
            budget=Budget(rounds=Trinity.rounds),
            settings=ExecutionSettings(early_stop=settings.early_stop),
            dispatcher=dispatcher or Dispatcher(),
        ),
        tasks,
        concurrency=settings.concurrency,
        seed=f"head-search/{settings.seed}",
    )
    rewards = [
        rollout.correct - settings.per_usd * rollout.trace.uncached_usd
        for rollout in evaluation.rollouts
        if not rollout.infrastructure_failed
    ]
    spent = sum(rollout.trace.uncached_usd for rollout in evaluation.rollouts)
    return _Trial(sum(rewards) / len(rewards) if rewards else None, spent)


def _without_gaps(rewards: Sequence[float | None], number: int) -> tuple[float, ...]:
    """The rewards; heads that could not be tried have the mean of the others."""
    known = [reward for reward in rewards if reward is not None]
    if not known:
        raise UsageError(
            f"Workers or the grader failed on all questions of generation {number}: run podium pool check, and then "
            "the same command again to continue."
        )
    mean = sum(known) / len(known)
    return tuple(mean if reward is None else reward for reward in rewards)
