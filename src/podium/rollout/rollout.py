"""A rollout: one task, answered by a planner over a pool, and graded.

A rollout is a line in an evaluation's file, and what a trainer learns from. Evaluations and all trainers call
`run_rollout`, so they run, charge and grade in the same way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field
from pydantic_core import PydanticSerializationError

from podium.calls import CallContext, CallState
from podium.errors import BudgetExceededError, GraderError
from podium.rollout.data_fingerprint import grader_settings, value_digest
from podium.spending import Ledger
from podium.tasks.graders.base import GraderSettings
from podium.tasks.task import Grade, Task
from podium.team import Runner
from podium.trace import RoundTrace, Span, Trace
from podium.trace.serialization import without_surrogates
from podium.types import Budget, FrozenModel, Profile, Spent
from podium.workers.replacements import ENVIRONMENT
from podium.workflow import needed_steps

_MAX_GOLD_CHARS = 2000
"""The most characters of a gold answer that are kept, since tests of programs may have megabytes."""


class Rollout(FrozenModel):
    """A trace with its grade, and with the task and the grader that led to the grade."""

    task: str
    """The task's id."""
    sample: int
    """The number, from 0, of this answer among independent answers to the same question."""
    grade: Grade
    gold: str = ""
    """The beginning of the right answer."""
    grader: str = ""
    """Digest of the grader."""
    facts: dict[str, str | int | tuple[str, ...]] = Field(default_factory=dict)
    """Known facts about the question."""
    trace: Trace

    @classmethod
    def of(cls, task: Task, sample: int, trace: Trace, grade: Grade) -> Self:
        """The rollout of a task."""
        gold, grader = _judging(task)
        return cls(
            task=task.id,
            sample=sample,
            grade=grade,
            gold=gold,
            grader=grader,
            facts=dict(task.facts),
            trace=trace,
        )

    def to_json_line(self) -> str:
        """One line of JSON, without what no report needs, such as workers' messages. Half a surrogate pair, which UTF-8
        cannot hold, becomes "?"."""
        short = self.model_copy(update={"trace": _short(self.trace)})
        try:
            return short.model_dump_json(exclude_defaults=True)
        except PydanticSerializationError:
            return without_surrogates(json.dumps(short.model_dump(exclude_defaults=True), ensure_ascii=False))

    def matches(self, task: Task) -> bool:
        """Whether the task still has the question, the right answer and the grader of this rollout."""
        return (self.trace.question, self.gold, self.grader) == (task.question, *_judging(task))

    @property
    def plan_text(self) -> str:
        """The planner's exact text in the first round. It is empty if the planner wrote nothing."""
        return self.trace.rounds[0].plan.text if self.trace.rounds else ""

    @property
    def valid(self) -> bool:
        """Whether the first plan could be parsed and checked."""
        rounds = self.trace.rounds
        return bool(rounds) and (rounds[0].workflow is not None or rounds[0].accepted)

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.grade.correct

    @property
    def steps(self) -> int:
        """Planned steps over all rounds. Steps that the answer does not need are left out."""
        return sum(len(needed_steps(round_.workflow)) for round_ in self.trace.rounds if round_.workflow)

    @property
    def infrastructure_failed(self) -> bool:
        """Whether a worker or the grader failed. Then the rollout is no evidence about its plan, and has no reward."""
        return self.worker_failed or self.grade.failure is not None

    @property
    def worker_failed(self) -> bool:
        """Whether the planner's own model gave no plan, or a step failed that the answer needs.

        The model gave none if its call failed or if the budget refused the call: there is no plan to judge. A step that
        the budget refused does not count, since the plan spent too much. A step whose worker was made to fail
        (`PoolSampling.failure_probability`) does not count either, since plans must learn to cope with that.
        """
        return any(_failed(round_) for round_ in self.trace.rounds)


def _judging(task: Task) -> tuple[str, str]:
    """The beginning of the right answer, and a digest of the grader."""
    return task.gold[:_MAX_GOLD_CHARS], value_digest(grader_settings(task.grader))


def _short(trace: Trace) -> Trace:
    """The trace with only the names of the workers, and without messages and parameters."""
    rounds = tuple(
        round_.model_copy(
            update={
                "plan": replace(round_.plan, messages=()),
                "spans": tuple(map(_short_span, round_.spans)),
                "abandoned": tuple(map(_short_span, round_.abandoned)),
            }
        )
        for round_ in trace.rounds
    )
    pool = tuple(Profile(name=profile.name) for profile in trace.pool)
    return trace.model_copy(update={"rounds": rounds, "pool": pool})


def _short_span(span: Span) -> Span:
    reply = span.reply
    if reply is not None:
        nested = None if reply.nested is None else _short(reply.nested)
        reply = replace(reply, parameters=None, logprobs=None, nested=nested)
    return span.model_copy(update={"messages": (), "reply": reply})


def _failed(round_: RoundTrace) -> bool:
    if round_.error_kind in ("planner_failed", "budget_exceeded"):
        return True
    failed = {
        span.position for span in round_.spans if span.status == "failed" and not _is_injected_failure(span)
    }
    return (
        bool(failed) and round_.workflow is not None and not failed.isdisjoint(needed_steps(round_.workflow))
    )


def _is_injected_failure(span: Span) -> bool:
    """Whether a step failed only because its worker, or the workers of the steps that it reads, were made to fail.

    A vote fails if all steps that it reads failed. If these failures were real, `_failed` counts these steps instead.
    """
    kinds = {attempt.error_kind for attempt in span.attempts}
    return bool(kinds) and kinds <= {ENVIRONMENT, "missing"}


async def run_rollout(
    runner: Runner,
    task: Task,
    *,
    seed: str,
    sample: int = 0,
    trace_id: str | None = None,
    after: Trace | None = None,
) -> Rollout:
    """Answer `task` and grade the answer. A question without an answer has score 0.

    Args:
        seed: seeds the randomness of planner and workers. The same arguments give the same rollout.
        sample: the number of this answer among the answers to the same question. Equal numbers share cached responses.
        trace_id, after: as for `Runner.answer`.

    Raises:
        BudgetExceededError: a spend limit refused a call. Then the rollout is no evidence about its plan.
    """
    trace = await runner.answer(task.question, seed=seed, sample=sample, trace_id=trace_id, after=after)
    _check_spend_limits(runner, trace)
    return Rollout.of(task, sample, trace, await grade_answer(task, trace.answer, runner.call_state))


async def grade_answer(task: Task, answer: str | None, call_state: CallState) -> Grade:
    """Grade the answer. If there is no answer, the score is 0. Only here does a grader's failure become data.

    A judge's calls use the response cache and the spend limits of the workers' calls. It belongs to its task and not to
    a pool, so of the call state's limits only the budgets in dollars apply to it.

    Raises:
        BudgetExceededError: a spend limit refused a judge's call.
    """
    if answer is None:
        return Grade(score=0.0)
    ledger = Ledger(Budget(), spend_limits=call_state.spend_limits)
    if isinstance(task.grader, GraderSettings):
        context = CallContext(
            ledger=ledger,
            call_state=call_state,
            queue_key=task.id,
            started=asyncio.get_running_loop().time(),
        )
        task = replace(task, grader=task.grader.called_in(context))
    try:
        grade = await task.grade(answer)
    except GraderError as error:
        if call_state.refusal is not None:  # A judge's call was not tried again.
            raise BudgetExceededError(call_state.refusal) from None
        grade = Grade(score=0.0, cost_usd=error.cost_usd, failure=str(error))
    # A grader of another package may call a model by itself. Then its cost is known only now.
    if (uncharged_usd := grade.cost_usd - ledger.spent.cost_usd) > 0:
        ledger.charge(Spent(cost_usd=uncharged_usd))
    return grade


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """A rollout to make: the arguments of `run_rollout`, and the function that gets the rollout."""

    runner: Runner
    task: Task
    seed: str
    sample: int
    on_rollout: Callable[[Rollout], None]
    ungraded: Rollout | None = None
    """The rollout, if only its grader failed. Then only its answer is graded again."""

    async def run(self) -> Rollout:
        """Make the rollout.

        Raises:
            BudgetExceededError: see `run_rollout`.
        """
        rollout = self.ungraded
        if rollout is None:
            return await run_rollout(self.runner, self.task, seed=self.seed, sample=self.sample)
        grade = await grade_answer(self.task, rollout.trace.answer, self.runner.call_state)
        grade = replace(grade, cost_usd=rollout.grade.cost_usd + grade.cost_usd)
        return rollout.model_copy(update={"grade": grade})


async def run_rollouts(jobs: Iterable[RolloutJob], *, concurrency: int) -> None:
    """Make rollouts, at most `concurrency` at once. The next job is taken when there is room for it.

    Raises:
        BudgetExceededError: a spend limit refused a call. Other rollouts in flight have ended and are kept, since they
            are paid for.
    """
    waiting, refusals = iter(jobs), list[BudgetExceededError]()

    async def work() -> None:
        while not refusals and (job := next(waiting, None)) is not None:
            try:
                rollout = await job.run()
            except BudgetExceededError as error:
                refusals.append(error)
                return
            job.on_rollout(rollout)
            await asyncio.sleep(0)  # Questions that wait for dollars come before the next question.

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    if refusals:
        raise refusals[0]


def _check_spend_limits(runner: Runner, trace: Trace) -> None:
    """Raise a BudgetExceededError if a spend limit refused a call that this question needed."""
    refusal = runner.call_state.refusal
    unanswered = (span for span in trace.spans if span.error is not None and span.status != "skipped")
    if refusal is not None and any(unanswered):
        if runner.call_state.cache is not None:
            refusal += " The answers that were paid for are kept; run the same command again to continue."
        raise BudgetExceededError(refusal)
