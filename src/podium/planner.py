"""The planner interface: a planner reads a `PlanRequest` and returns a `Plan`. The executor runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard, runtime_checkable

from podium.calls import Ledger
from podium.trace import Plan, Trace, VoteCount
from podium.types import Budget, Profile, Question
from podium.workers.view import EarlierStep
from podium.workflow import AccessRule, Step, Workflow, parse


@dataclass(frozen=True, slots=True)
class EarlierRound:
    """What a planner sees of an earlier round: its plan and its final response."""

    workflow: Workflow
    response: str
    """The answer of the round: the response of the latest step that succeeded (of a tool: with a result), or ""."""
    votes: VoteCount | None = None
    """The count of votes, if that step was a vote with a winner; else None."""
    responses: tuple[str | None, ...] = ()
    """The response of each step of the plan, or None if it was not run or failed."""


def earlier_rounds_of(trace: Trace) -> tuple[EarlierRound, ...]:
    """The rounds of a trace as its planner saw them, without the counts of votes."""
    return tuple(
        EarlierRound(
            round_.workflow, round_.response or "", responses=tuple(span.response for span in round_.spans)
        )
        for round_ in trace.rounds
        if round_.workflow is not None
    )


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Everything that a planner knows when it writes a plan."""

    question: Question
    pool: tuple[Profile, ...]
    """Worker k of a plan is `pool[k]`."""
    earlier_rounds: tuple[EarlierRound, ...] = ()
    """Earlier rounds, oldest first; empty in the first round."""
    max_steps: int = 5
    rounds: int = 1
    """Rounds that are left, this one included."""
    seed: str = "0"
    """Seeds all randomness of this plan."""
    unloaded_models: tuple[str, ...] = ()
    """Names of workers whose machine would first have to load their models, in place of others. Empty in evaluations
    and trainings, and where replies are cached: there the same question has the same request."""
    ledger: Ledger = field(default_factory=lambda: Ledger(Budget()), compare=False, repr=False)
    """The budget of the question. A planner that costs money reserves it here before each call, and counts here what
    each took, also one that failed: all of it, or nothing (`Plan.spent`). The default has no limits."""
    on_steps: Callable[[tuple[Step, ...]], None] | None = field(default=None, compare=False, repr=False)
    """Called with the first steps of the plan, each time there are more of them while the rest is being written. They
    are run at once, so a step that may be the last, or may still change, must not be among them. With None, the caller
    waits for the whole plan."""


def responses_shown(plan: Plan, earlier_rounds: Sequence[EarlierRound]) -> tuple[EarlierStep, ...]:
    """The steps that `plan.visible_responses` names, without those that gave no response."""
    return tuple(
        EarlierStep(step, earlier_rounds[round].workflow.steps[step].subtask, response, round)
        for round, step in plan.visible_responses
        if (response := earlier_rounds[round].responses[step]) is not None
    )


class Planner(Protocol):
    """Writes plans. It does not know how they are run.

    Some planners have more: an attribute `rounds` (`rounds_of`), an attribute `streams_steps`, or the methods of a
    `Learner` or a `BatchPlanner`. The smallest planner::

        @dataclass(frozen=True)
        class Cheapest:
            name: str = "cheapest"

            async def plan(self, request: PlanRequest) -> Plan:
                prices = [profile.price.output for profile in request.pool]
                step = Step(worker=prices.index(min(prices)), subtask="Answer the whole question.")
                return Plan("the cheapest worker alone", Workflow((step,)))
    """

    @property
    def name(self) -> str:
        """Its name in traces and tables."""
        ...

    async def plan(self, request: PlanRequest) -> Plan:
        """Decide on the next round: a workflow, an acceptance of the answer so far, or an error.

        Raises:
            WorkerError: the planner's model did not answer, or the budget refuses the plan (kind "budget").
        """
        ...


def rounds_of(planner: Planner) -> int:
    """The number of rounds that the planner's method needs; 1 unless the planner says otherwise."""
    rounds: int = getattr(planner, "rounds", 1)
    return rounds


def streams_steps(planner: Planner) -> bool:
    """Whether the planner gives the first steps of a plan to `PlanRequest.on_steps` while it writes the others."""
    streams: bool = getattr(planner, "streams_steps", False)
    return streams


@dataclass(frozen=True, slots=True)
class PlannerWrapper:
    """The base of planners that change the plans of another planner: they have its rounds."""

    planner: Planner

    @property
    def rounds(self) -> int:
        """The rounds that the planner's method needs."""
        return rounds_of(self.planner)


@dataclass(frozen=True, slots=True)
class PrewrittenPlans:
    """A planner of plans that exist already, one for each round, such as the completions that a trainer sampled.

    A text is parsed for the request's pool and not changed, so it is run exactly as a live Conductor's would be. A
    `Plan` is returned as it is. It was paid for when it was written, so it counts in the question's budget, and no
    spend limit is charged again.
    """

    plans: tuple[str | Plan, ...]
    """The plans in the order of the rounds. Further rounds get the last one again."""
    name: str = "written"
    access: AccessRule = "lists"
    """What the access lists of a text may hold."""
    cut: bool = False
    """Whether the last text was cut off at a limit of tokens. A draft in an unfinished thought is then no plan."""

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of the request's round. If a text is no valid plan, the decision is an error value."""
        number = min(len(request.earlier_rounds), len(self.plans) - 1)
        written = self.plans[number]
        if isinstance(written, Plan):
            request.ledger.count_only(written.spent)
            return written
        decision = parse(
            written,
            workers=len(request.pool),
            names=[profile.name for profile in request.pool],
            max_steps=request.max_steps,
            later_round=bool(request.earlier_rounds),
            access=self.access,
            cut=self.cut and number == len(self.plans) - 1,
        )
        return Plan(text=written, decision=decision)


class Learner(Planner, Protocol):
    """A planner that learns while it serves, from reports of how good its answers were."""

    @property
    def replayed_outcomes(self) -> int:
        """How many of the latest traces with an outcome it learns from."""
        ...

    def learn(self, trace: Trace, score: float) -> None:
        """Take in the score, in [0, 1], of the answer of a trace that it planned. Later calls are later questions."""

    def forget(self) -> None:
        """Forget all that it learned."""


def is_learner(planner: Planner) -> TypeGuard[Learner]:
    """Whether the planner learns while it serves."""
    return hasattr(planner, "learn")


@runtime_checkable
class BatchPlanner(Planner, Protocol):
    """A planner that decides on many questions at once in much less time than on one after the other."""

    def prefetch(self, questions: Sequence[str]) -> None:
        """Take in the texts of questions that will be asked. It changes no plan."""
