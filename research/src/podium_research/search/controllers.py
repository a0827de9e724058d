"""Trains MASRouter's controller on whole answers, by policy gradient on what its teams get right and cost.

Any live pool answers, so the controller learns modes, roles and workers. The trainer keeps no file: its caller keeps
the utilities of each epoch, and gives them back to continue.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.calls import CallState
from podium.evals.evaluation import evaluate
from podium.executor import ExecutionSettings
from podium.planners.baseline import plan_once
from podium.planners.planner import Planner, PlanRequest
from podium.rollout import Rollout
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Plan
from podium.workers.pool import Pool
from podium.workers.vote import VOTE, VoteWorker
from podium_research.planners.masrouter import team_workflow
from podium_research.planners.masrouter_controller import Controller, ControllerTraining, RoutedTeam
from podium_research.search.heads import TrainingStep, all_failed, head_workers, net_score
from podium_research.search.settings import ControllerSearch


async def train_controller_live(
    pool: Pool,
    tasks: Sequence[Task],
    settings: ControllerSearch,
    *,
    resume_from: Iterable[Sequence[float | None]] = (),
    call_state: CallState | None = None,
) -> AsyncIterator[TrainingStep]:
    """Train a controller, and yield each new epoch. If the pool has no voting tool, it gets one.

    The controller's classifier learns the tasks' families, where they are known.

    Args:
        tasks: the questions. Do not evaluate the controller on them later.
        resume_from: the utilities of the epochs that an earlier start has made. They are not made again, and the next
            epochs are those of an uninterrupted training.

    Raises:
        ConfigError: the pool lacks a worker.
        UsageError: workers or the grader failed on all answers of an epoch.
        BudgetExceededError: a spend limit refused a call; calls in flight have ended, so a cache has their answers.
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
        is_known = number <= len(earlier)
        known = iter(earlier[number - 1] if is_known else ())
        utilities: list[float | None] = []
        cost_usd = 0.0
        for batch in training.batches(number):
            teams = training.ask(batch)
            if is_known:
                told = [next(known) for _ in batch]
            else:
                rollouts = await _try(
                    teams, [questions[question] for question in batch], pool, settings, call_state
                )
                told = [net_score(rollout, settings) for rollout in rollouts]
                cost_usd += sum(rollout.trace.uncached_usd for rollout in rollouts)
            training.tell(told)
            utilities += told
        if is_known:
            continue
        if all(utility is None for utility in utilities):
            raise all_failed(settings, number)
        yield TrainingStep(number, tuple(utilities), cost_usd, training.controller)


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
    call_state: CallState | None,
) -> Sequence[Rollout]:
    """Have each team answer its question."""
    evaluation = await evaluate(
        Runner(
            _Drawn({task.question.text: team for task, team in zip(tasks, teams, strict=True)}),
            pool,
            settings=ExecutionSettings(early_stop=settings.early_stop),
            call_state=call_state or CallState(),
        ),
        tasks,
        concurrency=settings.concurrency,
        seed=f"controller-search/{settings.seed}",
    )
    return evaluation.rollouts
