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
    """The answer of the round: the response of the latest step that succeeded, or "" if none did. A tool's step counts
    only if the tool had a result."""
    votes: VoteCount | None = None
    """The count of votes. None unless the step that gave the answer was a vote with a winner."""
    responses: tuple[str | None, ...] = ()
    """The response of each step of the plan. None for a step that failed or was not run."""


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
    """Earlier rounds, oldest first. Empty in the first round."""
    max_steps: int = 5
    rounds: int = 1
    """How many rounds are left, including this one."""
    seed: str = "0"
    """Seeds all randomness of this plan."""
    unloaded_models: tuple[str, ...] = ()
    """Names of workers whose machine would first have to load their models, in place of models that it holds now. It is
    empty in evaluations and trainings, and where replies are cached, so that the same question always has the same
    request."""
    ledger: Ledger = field(default_factory=lambda: Ledger(Budget()), compare=False, repr=False)
    """The budget of the question. A planner that costs money reserves dollars here before each call, and counts here
    what each call took, also if the call failed. A planner that counts nothing here reports its spending in
    `Plan.spent`. The default has no limits."""
    on_steps: Callable[[tuple[Step, ...]], None] | None = field(default=None, compare=False, repr=False)
    """The planner may call it with the first steps of the plan while the rest is being written, and again when there
    are more steps. The steps are run at once. So they must not include a step that may still change or that may be the
    last. If it is None, the caller waits for the whole plan."""


def responses_shown(plan: Plan, earlier_rounds: Sequence[EarlierRound]) -> tuple[EarlierStep, ...]:
    """The steps that `plan.visible_responses` names, without those that gave no response."""
    return tuple(
        EarlierStep(step, earlier_rounds[round].workflow.steps[step].subtask, response, round)
        for round, step in plan.visible_responses
        if (response := earlier_rounds[round].responses[step]) is not None
    )


class Planner(Protocol):
    """Writes plans. A planner does not know how its plans are run.

    A planner may also have an attribute `rounds` (see `rounds_of`), an attribute `streams_steps`, or the methods of a
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
        """The planner's name in traces and tables."""
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
    """The base of planners that change the plans of another planner."""

    planner: Planner

    @property
    def rounds(self) -> int:
        """The rounds of the other planner."""
        return rounds_of(self.planner)


@dataclass(frozen=True, slots=True)
class PrewrittenPlans:
    """A planner that returns plans which exist already, one for each round, such as completions that a trainer sampled.

    A text is parsed for the request's pool, as a live Conductor's text would be. A `Plan` is returned unchanged. It was
    paid for when it was written, so it counts in the question's budget, but no spend limit is charged again.
    """

    plans: tuple[str | Plan, ...]
    """The plans in the order of the rounds. Further rounds get the last plan again."""
    name: str = "written"
    access: AccessRule = "lists"
    """What the access lists of a text may contain."""
    cut: bool = False
    """Whether a token limit cut off the last text. Then a draft inside an unfinished thought does not count as a
    plan."""

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of the request's round. If its text is not valid, the plan's decision is a `PlanError`."""
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
    """A planner that learns while it serves, from scores of the answers that its plans gave."""

    @property
    def replayed_outcomes(self) -> int:
        """How many of the latest traces with an outcome a server lets the planner learn from."""
        ...

    def learn(self, trace: Trace, score: float) -> None:
        """Learn from the score, in [0, 1], of the answer in a trace that this planner planned. Calls come in the order
        of the questions."""

    def forget(self) -> None:
        """Forget everything that was learned."""


def is_learner(planner: Planner) -> TypeGuard[Learner]:
    """Whether the planner learns while it serves."""
    return hasattr(planner, "learn")


@runtime_checkable
class BatchPlanner(Planner, Protocol):
    """A planner that decides on many questions at once much faster than one by one."""

    def prefetch(self, questions: Sequence[str]) -> None:
        """Prepare for the texts of questions that will be asked. This changes no plan."""
