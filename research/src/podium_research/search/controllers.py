"""Trains MASRouter's controller on whole answers, by policy gradient on what its teams get right and cost.

Any live pool answers, so the controller learns modes, roles and workers. The trainer
keeps no file: its caller keeps the utilities of each epoch, and gives them back to continue.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.calls import Dispatcher
from podium.errors import UsageError
from podium.evals.evaluation import evaluate
from podium.executor import ExecutionSettings
from podium.planner import Planner, PlanRequest
from podium.planners.baseline import plan_once
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Plan
from podium.workers.pool import Pool
from podium.workers.vote import VOTE, VoteWorker
from podium_research.planners.masrouter import team_workflow
from podium_research.planners.masrouter_controller import Controller, ControllerTraining, RoutedTeam
from podium_research.search.heads import head_workers
from podium_research.search.settings import ControllerSearch


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch, as far as a run has to keep it."""

    number: int
    """The number of the epoch, from 1."""
    utilities: tuple[float | None, ...]
    """The utility of each team, in the order of the draws. Is None where workers or the grader failed."""
    cost_usd: float
    """What the answers cost, the cached ones included."""
    controller: Controller


async def train_controller_live(
    pool: Pool,
    tasks: Sequence[Task],
    settings: ControllerSearch,
    *,
    resume_from: Iterable[Sequence[float | None]] = (),
    dispatcher: Dispatcher | None = None,
) -> AsyncIterator[Epoch]:
    """Train a controller, and yield each new epoch. If the pool has no voting tool, it gets one.

    The controller's classifier learns the tasks' families, where they are known.

    Args:
        tasks: the questions. Do not evaluate the controller on them later.
        resume_from: the utilities of the epochs that an earlier start has made. They are not made again, and the next
            epochs are those of an uninterrupted training.

    Raises:
        ConfigError: the pool lacks a worker.
        UsageError: workers or the grader failed on all answers of an epoch.
        BudgetError: a spend limit refused a call; calls in flight have ended, so a cache has their answers.
    """
    pool = pool if VOTE in pool.names else pool.joined([VoteWorker()])
    questions = tuple({task.question.text: task for task in tasks}.values())
    families = [str(task.facts.get("family", "")) for task in questions]
    workers = head_workers(pool, settings.workers)
    training = ControllerTraining(
        Controller.untrained(workers, kinds=sorted(set(families)), seed=settings.seed),
        [task.question.text for task in questions],
        kinds=families,
        seed=settings.seed,
    )
    earlier = list(resume_from)
    for number in range(1, settings.epochs + 1):
        earlier_utilities = iter(earlier[number - 1] if number <= len(earlier) else ())
        tried: list[_Tried] = []
        for batch in training.batches(number):
            teams = training.ask(batch)
            if number <= len(earlier):
                training.tell([next(earlier_utilities) for _ in batch])
                continue
            trials = await _try(
                teams, [questions[question] for question in batch], pool, settings, dispatcher
            )
            training.tell([trial.utility for trial in trials])
            tried += trials
        if number <= len(earlier):
            continue
        if all(trial.utility is None for trial in tried):
            raise UsageError(
                f"Workers or the grader failed on all questions of epoch {number}: run podium pool check, and then the "
                "same command again to continue."
            )
        cost_usd = sum(trial.cost_usd for trial in tried)
        yield Epoch(number, tuple(trial.utility for trial in tried), cost_usd, training.controller)


@dataclass(frozen=True, slots=True)
class _Tried:
    utility: float | None
    cost_usd: float


@dataclass(frozen=True, slots=True)
class _Drawn(Planner):
    """Plans the team that was drawn for each question."""

    teams: Mapping[str, RoutedTeam]
    """The key is the question's text."""
    name: str = "masrouter"

    async def plan(self, request: PlanRequest) -> Plan:
        return plan_once(request, team_workflow(self.teams[request.question.text], request.pool))


async def _try(
    teams: Sequence[RoutedTeam],
    tasks: Sequence[Task],
    pool: Pool,
    settings: ControllerSearch,
    dispatcher: Dispatcher | None,
) -> list[_Tried]:
    """Have each team answer its question."""
    evaluation = await evaluate(
        Runner(
            _Drawn({task.question.text: team for task, team in zip(tasks, teams, strict=True)}),
            pool,
            settings=ExecutionSettings(early_stop=settings.early_stop),
            dispatcher=dispatcher or Dispatcher(),
        ),
        tasks,
        concurrency=settings.concurrency,
        seed=f"controller-search/{settings.seed}",
    )
    return [
        _Tried(
            None
            if rollout.infrastructure_failed
            else rollout.correct - settings.per_usd * rollout.trace.uncached_usd,
            rollout.trace.uncached_usd,
        )
        for rollout in evaluation.rollouts
    ]
