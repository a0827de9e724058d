"""A rollout: one task, answered by a planner over a pool, and graded.

Evaluation and every trainer call `run_rollout`, so they run, charge and grade in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.errors import BudgetError
from podium.rollout.judging import grade_answer
from podium.rollout.reward import Reward, RewardSettings, reward
from podium.tasks.task import Grade, Task
from podium.team import Runner
from podium.trace import RoundTrace, Span, Trace
from podium.workers.failing import ENVIRONMENT
from podium.workflow import live_steps


@dataclass(frozen=True, slots=True)
class Rollout:
    """A trace that has been graded."""

    task_id: str
    trace: Trace
    grade: Grade
    reward: Reward

    @property
    def plan_text(self) -> str:
        """The planner's exact text in the first round; empty if it wrote nothing."""
        return self.trace.rounds[0].plan.text if self.trace.rounds else ""

    @property
    def valid(self) -> bool:
        """Whether the first plan could be parsed and checked."""
        return self.reward.format > 0

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.grade.correct

    @property
    def steps(self) -> int:
        """Planned steps over all rounds, without those that the answer does not need."""
        return sum(len(live_steps(round_.workflow)) for round_ in self.trace.rounds if round_.workflow)

    @property
    def infrastructure_failed(self) -> bool:
        """Whether a worker or the grader failed. Then the rollout is no evidence about its plan."""
        return self.worker_failed or self.grade.failure is not None

    @property
    def worker_failed(self) -> bool:
        """Whether a step that the answer needs failed, or the planner's own model did.

        A step that the budget refused does not count: the plan spent too much. A step whose worker was made to fail
        (`PoolSampling.failure_probability`) does not count either: plans must learn to cope with that.
        """
        return any(_failed(round_) for round_ in self.trace.rounds)


def _failed(round_: RoundTrace) -> bool:
    if round_.error_kind in ("planner_failed", "budget_refused"):
        return True
    failed = {span.position for span in round_.spans if span.status == "failed" and not _was_drawn(span)}
    return bool(failed) and round_.workflow is not None and not failed.isdisjoint(live_steps(round_.workflow))


def _was_drawn(span: Span) -> bool:
    """Whether a step failed only because its worker, or the workers of the steps that it reads, were made to fail.

    A vote fails if all steps that it reads failed. If these failures were real, `_failed` counts those steps instead.
    """
    kinds = {attempt.error_kind for attempt in span.attempts}
    return bool(kinds) and kinds <= {ENVIRONMENT, "missing"}


async def run_rollout(
    runner: Runner,
    task: Task,
    *,
    seed: str,
    sample: int = 0,
    settings: RewardSettings | None = None,
    trace_id: str | None = None,
) -> Rollout:
    """Answer `task` and grade the answer. A question without an answer has score 0.

    Args:
        seed: seeds the randomness of planner and workers: the same arguments give the same rollout.
        sample: number of this independent answer to the question; equal numbers share cached responses.
        settings: the reward's weights; None: the reward has no penalties.
        trace_id: as for `Runner.answer`.

    Raises:
        BudgetError: a spend limit refused a call. Then the rollout is no evidence about its plan.
    """
    trace = await runner.answer(task.question, seed=seed, sample=sample, trace_id=trace_id)
    _check_spend_limits(runner, trace)
    grade = await grade_answer(task, trace.answer, runner.dispatcher)
    return Rollout(
        task_id=task.id,
        trace=trace,
        grade=grade,
        reward=reward(trace, grade, settings or RewardSettings()),
    )


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """A rollout that is to be made: the arguments of `run_rollout`, and who gets it."""

    runner: Runner
    task: Task
    seed: str
    sample: int
    on_rollout: Callable[[Rollout], None]


async def run_rollouts(jobs: Iterable[RolloutJob], *, concurrency: int) -> None:
    """Make rollouts, at most `concurrency` at once. The next job is taken when there is room for it.

    Raises:
        BudgetError: a spend limit refused a call. The others in flight have ended: they are paid for, and kept.
    """
    waiting, refusals = iter(jobs), list[BudgetError]()

    async def work() -> None:
        while not refusals and (job := next(waiting, None)) is not None:
            try:
                rollout = await run_rollout(job.runner, job.task, seed=job.seed, sample=job.sample)
            except BudgetError as error:
                refusals.append(error)
                return
            job.on_rollout(rollout)
            await asyncio.sleep(0)  # Questions that wait for dollars come before the next one.

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    if refusals:
        raise refusals[0]


def _check_spend_limits(runner: Runner, trace: Trace) -> None:
    """Raise if a spend limit refused a call that this question needed. If every step was answered, none was refused."""
    refusal = runner.dispatcher.refusal
    unanswered = (span for span in trace.spans if span.error is not None and span.status != "skipped")
    if refusal is not None and any(unanswered):
        if runner.dispatcher.cache is not None:
            refusal += " The answers that were paid for are kept; run the same command again to continue."
        raise BudgetError(refusal)
