"""Scores plans in this process, with one call state whose limits, cache and budget hold for all plans.

Trainers, ranks and environments share a session, directly or through the service. The session keeps a trace of each
rollout. The id of the trace is a hash of the rollout's task, group, number and plans, so a rollout that is scored twice
has one trace.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any, Self

from podium.calls import CallState
from podium.conductor.prompt import build_prompt
from podium.config import closest_name
from podium.errors import BudgetExceededError, ConfigError
from podium.executor import ExecutionSettings
from podium.planners.planner import EarlierRound, PlanRequest, PrewrittenPlans, earlier_rounds_of
from podium.rollout import RewardSettings, Rollout, reward, round_reward, run_rollout
from podium.rollout.collapse import PlanStructure
from podium.rollout.pool_sampling import PoolSampler
from podium.scoring.protocol import RolloutRequest, Score, SessionInfo
from podium.scoring.settings import ScoringSettings
from podium.scoring.training_tasks import open_training_tasks
from podium.tasks import Task
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.trace import Span, Trace
from podium.types import Budget, Message, Question
from podium.workers.pool import Pool
from podium.workflow import render

KEPT_ROLLOUTS = 1024
"""How many rollouts a session keeps if nobody says how large its batches are."""


@dataclass(frozen=True, slots=True)
class RolloutSeeds:
    """The seeds of everything that a rollout draws besides its plans."""

    pool: str
    """The seed of the pool, which the rollouts of a group share."""
    level: str
    """The seed of the level of cost sensitivity, which the rollouts of a group share."""
    calls: str
    """The seed of the workers' calls. Each rollout has its own."""
    earlier_levels: int = 0
    """How many levels are drawn with the seed `level` before this rollout's."""

    @classmethod
    def of(cls, request: RolloutRequest) -> Self:
        """Seeds that are made from the group, the task and the number of the rollout."""
        name = f"{request.group}/{request.task}"
        return cls(name, f"cost sensitivity/{name}", f"{name}/{request.rollout}")


class ScoringSession:
    """Scores plans in this process.

    Args:
        tasks: the questions, in order.
        eval_tasks: further questions, on which the policy is evaluated. No worker is made to fail in them.
        pool: the workers. The caller closes the pool.
        call_state: holds the limits, the response cache and the budget of everything that is scored.
        kept_rollouts: how many rollouts are kept for a possible next round. It must be no smaller than the plans of a
            batch, over all rounds: a round that is not kept is run, and paid, once more.
        seeds: gives the seeds of a rollout.
        on_trace: called with the trace of each rollout.
    """

    def __init__(
        self,
        settings: ScoringSettings,
        tasks: Mapping[str, Task],
        pool: Pool,
        call_state: CallState,
        *,
        eval_tasks: Mapping[str, Task] = MappingProxyType({}),
        kept_rollouts: int = KEPT_ROLLOUTS,
        seeds: Callable[[RolloutRequest], RolloutSeeds] = RolloutSeeds.of,
        on_trace: Callable[[Trace], None] = lambda trace: None,
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self._eval_tasks = eval_tasks
        self.pool = pool
        self.call_state = call_state
        self._seeds = seeds
        self._on_trace = on_trace
        self._pools = PoolSampler(pool, settings.pool_sampling)
        self._pools_without_failures = PoolSampler(
            pool, settings.pool_sampling.model_copy(update={"failure_probability": 0.0})
        )
        self._kept_rollouts = kept_rollouts
        self._rollouts: OrderedDict[str, Rollout] = OrderedDict()
        """The rollouts, by the id of the trace."""

    @property
    def info(self) -> SessionInfo:
        """The session's tasks, pool and settings."""
        return SessionInfo(
            tasks=tuple(self.tasks),
            pool=self.pool.names,
            rounds=self.settings.rounds,
            digest=self.settings.digest,
            settings=self.settings.scoring,
        )

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        """The messages of the prompt for a rollout's next plan. None if no further round follows."""
        task = self.task(request.task)
        if len(request.plans) >= self.settings.rounds:
            return None
        earlier_rounds: tuple[EarlierRound, ...] = ()
        if request.plans:
            rollout = await self._run_rollout(request, task)
            if rollout.infrastructure_failed or is_finished(rollout.trace, self.settings.rounds):
                return None
            earlier_rounds = earlier_rounds_of(rollout.trace)
        return self.messages(task.question, request, earlier_rounds)

    def messages(
        self, question: Question, request: RolloutRequest, earlier_rounds: tuple[EarlierRound, ...] = ()
    ) -> tuple[Message, ...]:
        """The prompt for the next plan. `question` need not belong to one of the session's tasks.

        Args:
            request: decides the pool and the level of cost sensitivity.
            earlier_rounds: the earlier rounds of the rollout.
        """
        plan_request = PlanRequest(
            question=question,
            pool=self.pool_of(request).profiles_for(question.text),
            earlier_rounds=earlier_rounds,
            max_steps=self.settings.max_steps,
            rounds_left=self.settings.rounds - len(earlier_rounds),
        )
        prompt = self.settings.prompt
        if prompt.levels:
            prompt = prompt.model_copy(update={"cost_sensitivity": self._level(request)})
        return build_prompt(plan_request, prompt)

    async def score(self, request: RolloutRequest) -> Score:
        """Run the plans of a rollout, grade the answer and reward the latest plan."""
        task = self.task(request.task)
        if not 1 <= len(request.plans) <= self.settings.rounds:
            raise ConfigError(
                f"A rollout of {len(request.plans)} plans cannot be scored: this session has rounds = "
                f"{self.settings.rounds}."
            )
        rollout = await self._run_rollout(request, task)
        metadata = {"task": request.task, "group": request.group, "rollout": str(request.rollout)}
        self._on_trace(rollout.trace.model_copy(update={"metadata": metadata}))
        return _score(rollout, self._reward_settings(request), self.settings.rounds)

    def task(self, task_id: str) -> Task:
        """The task with this id.

        Raises:
            ConfigError: the session has no such task."""
        task = self.tasks.get(task_id) or self._eval_tasks.get(task_id)
        if task is None:
            near = closest_name(task_id, self.tasks)
            way_out = f"did you mean {near!r}?" if near else f"the first is {next(iter(self.tasks))!r}."
            raise ConfigError(f"None of the session's {len(self.tasks)} tasks is {task_id!r}; {way_out}")
        return task

    def pool_of(self, request: RolloutRequest) -> Pool:
        """The workers that a rollout may use."""
        pools = self._pools_without_failures if request.task in self._eval_tasks else self._pools
        return pools.draw(self._seeds(request).pool)

    def _level(self, request: RolloutRequest) -> int:
        levels, seeds = len(self.settings.cost_weights), self._seeds(request)
        random = Random(seeds.level)
        return [random.randrange(levels) for _ in range(seeds.earlier_levels + 1)][-1] if levels else 0

    def _reward_settings(self, request: RolloutRequest) -> RewardSettings:
        settings, weights = self.settings.reward, self.settings.cost_weights
        return settings.model_copy(update={"cost": weights[self._level(request)]}) if weights else settings

    async def _run_rollout(self, request: RolloutRequest, task: Task) -> Rollout:
        """Run the rollout. If it was just scored, reuse it for the prompt of its next round.

        If the round before is known, go on from it: the plan was written for the answers that its prompt showed.
        """
        key = trace_id(request)
        if key in self._rollouts:
            return self._rollouts[key]
        before = self._rollouts.get(trace_id(request.model_copy(update={"plans": request.plans[:-1]})))
        runner = Runner(
            PrewrittenPlans(
                request.plans, "policy", access=self.settings.prompt.access, truncated=request.truncated
            ),
            self.pool_of(request),
            budget=Budget(rounds=max(1, len(request.plans))),
            max_steps=self.settings.max_steps,
            settings=ExecutionSettings(layout=self.settings.layout, early_stop=self.settings.early_stop),
            call_state=self.call_state,
        )
        try:
            rollout = await run_rollout(
                runner,
                task,
                seed=self._seeds(request).calls,
                trace_id=key,
                after=None if before is None else _paid_before(before.trace),
            )
        except BudgetExceededError:
            # The caller gives up the whole batch. Let the calls in flight of its other rollouts end first, so that
            # their responses, which are paid for, are kept.
            for spend_limit in self.call_state.shared_limits:
                await spend_limit.wait_until_unreserved()
            raise
        if self.settings.rounds > 1 and not rollout.infrastructure_failed:
            self._rollouts[key] = rollout
            if len(self._rollouts) > self._kept_rollouts:
                self._rollouts.popitem(last=False)
        return rollout


@asynccontextmanager
async def open_session(
    settings: ScoringSettings,
    call_state: CallState,
    *,
    pool: Pool | None = None,
    on_trace: Callable[[Trace], None] = lambda trace: None,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> AsyncIterator[ScoringSession]:
    """A session over the tasks and the pool that the settings name.

    Raises:
        ConfigError: the tasks or the pool cannot be used.
    """
    workers = pool or open_pool(settings.pool)
    try:
        yield ScoringSession(
            settings,
            open_training_tasks(settings, workers, on_warning),
            workers,
            call_state,
            on_trace=on_trace,
        )
    finally:
        if pool is None:
            await workers.close()


def is_finished(trace: Trace, rounds: int) -> bool:
    """Whether the last round of a trace was final, so that no further round follows."""
    last = trace.rounds[-1]
    return len(trace.rounds) >= rounds or last.workflow is None


def trace_id(request: RolloutRequest) -> str:
    """The id of a rollout's trace: 32 hexadecimal digits that depend on the task, the group, the number and the
    plans."""
    return hashlib.sha256(request.model_dump_json(exclude={"truncated"}).encode()).hexdigest()[:32]


def _paid_before(trace: Trace) -> Trace:
    """The trace with its answers as a response cache gives them: what they cost is in the trace of their own round."""
    rounds = tuple(
        round_.model_copy(update={"spans": tuple(map(_span_paid_before, round_.spans))})
        for round_ in trace.rounds
    )
    return trace.model_copy(update={"rounds": rounds})


def _span_paid_before(span: Span) -> Span:
    changes: dict[str, Any] = {"spent": span.spent.paid_before}
    if span.reply is not None and span.called:
        changes |= {"reply": replace(span.reply, cached=True, latency_s=span.working_s), "attempts": ()}
    else:
        attempts = (
            attempt.model_copy(update={"spent": attempt.spent.paid_before}) for attempt in span.attempts
        )
        changes["attempts"] = tuple(attempts)
    return span.model_copy(update=changes)


def _score(rollout: Rollout, settings: RewardSettings, rounds: int) -> Score:
    trace = rollout.trace
    about: dict[str, Any] = {"calls": trace.calls, "cost_usd": trace.uncached_usd, "trace_id": trace.id}
    if trace.rounds:
        last = trace.rounds[-1]
        about |= {
            "valid": last.workflow is not None or last.accepted,
            "accepted": last.accepted,
            "plan": None if last.workflow is None else render(last.workflow),
            **dict(PlanStructure.of(last.workflow, trace.pool)),
        }
    whole, earned = reward(rollout, settings), round_reward(rollout, settings)
    if whole is None or earned is None:
        failures = (f"{span.worker}: {span.error}" for span in trace.spans if span.status == "failed")
        why = next(failures, None) or rollout.grade.failure or trace.error
        return Score(reward=None, error=f"This is no fault of the plan: {why}", **about)
    return Score(
        reward=earned.total,
        rollout_reward=whole.total,
        parts=earned,
        correct=rollout.correct,
        finished=is_finished(trace, rounds),
        error=None if last.error is None else str(last.error),
        recorded=any(span.recorded is not None for span in trace.spans),
        **about,
    )
