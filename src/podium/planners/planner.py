"""The planner interface: a planner reads a `PlanRequest` and returns a `Plan`. The executor runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podium.calls import AttemptLog, CallContext
from podium.spending import Ledger
from podium.trace import Plan, Trace, VoteCount
from podium.types import Profile, Question
from podium.workers.view import EarlierStep
from podium.workflow import AccessRule, PlanRules, Step, Workflow, parse


@dataclass(frozen=True, slots=True)
class EarlierRound:
    """What a planner sees of an earlier round: its plan and its final response."""

    workflow: Workflow
    response: str
    """The response of the latest step that succeeded and, if a tool's, had a result; "" if there is none."""
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
    rounds_left: int = 1
    """Rounds that the planner still has, this one included."""
    seed: str = "0"
    unloaded_models: tuple[str, ...] = ()
    """Names of workers whose machine would first have to load their models. Empty in evaluations and trainings, and
    where replies are cached, so that the same question always has the same request."""
    call_context: CallContext = field(default_factory=CallContext.unlimited, compare=False, repr=False)
    """The context in which the planner's model is called."""
    attempts: AttemptLog = field(default_factory=AttemptLog, compare=False, repr=False)
    """Each try of a call of the planner's model is added to it, also if planning fails."""
    on_steps: Callable[[tuple[Step, ...]], None] | None = field(default=None, compare=False, repr=False)
    """The planner may call it with the first steps of the plan while the rest is being written, and again when there
    are more. They are run at once, so none may still change or be the last. If it is None, the caller waits for the
    whole plan."""

    def rules(self, access: AccessRule) -> PlanRules:
        """What the plan may contain, if its access lists may contain `access`."""
        names = tuple(profile.name for profile in self.pool)
        return PlanRules(len(names), names, self.max_steps, bool(self.earlier_rounds), access)

    @property
    def ledger(self) -> Ledger:
        """The budget of the question. A planner that costs money reserves dollars here before each call, and counts
        here what each call took, also if it failed."""
        return self.call_context.ledger


def visible_steps(plan: Plan, earlier_rounds: Sequence[EarlierRound]) -> tuple[EarlierStep, ...]:
    """The steps that `plan.visible_responses` names, without those that gave no response."""
    return tuple(
        EarlierStep(step, earlier_rounds[round].workflow.steps[step].subtask, response, round)
        for round, step in plan.visible_responses
        if (response := earlier_rounds[round].responses[step]) is not None
    )


class Planner(ABC):
    """The base of all that write plans. A planner does not know how its plans are run.

    The smallest planner::

        class Cheapest(Planner):
            name = "cheapest"

            async def plan(self, request: PlanRequest) -> Plan:
                prices = [profile.price.output for profile in request.pool]
                step = Step(worker=prices.index(min(prices)), subtask="Answer the whole question.")
                return Plan("the cheapest worker alone", Workflow((step,)))
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The planner's name in traces and tables."""

    @property
    def rounds(self) -> int:
        """The number of rounds that the planner's method needs."""
        return 1

    @property
    def streams_steps(self) -> bool:
        """Whether the planner gives the first steps of a plan to `PlanRequest.on_steps` while it writes the others."""
        return False

    @abstractmethod
    async def plan(self, request: PlanRequest) -> Plan:
        """Decide on the next round: a workflow, an acceptance of the answer so far, or an error.

        Raises:
            WorkerError: the planner's model did not answer.
            BudgetExceededError: a limit refuses the plan.
        """


@dataclass(frozen=True, slots=True)
class PlannerWrapper(Planner):
    """The base of planners that change the plans of another planner. Steps wait for the change, so none is streamed."""

    planner: Planner

    @property
    def rounds(self) -> int:
        return self.planner.rounds


@dataclass(frozen=True, slots=True)
class PrewrittenPlans(Planner):
    """A planner that returns plans which exist already, one for each round, such as completions that a trainer sampled.
    A text is parsed as a live Conductor's would be. A `Plan` is returned unchanged: it was paid when it was written, so
    it counts in the question's budget, but no spend limit is charged again."""

    plans: tuple[str | Plan, ...]
    """The plans in the order of the rounds. Further rounds get the last plan again."""
    name: str = "written"
    access: AccessRule = "lists"
    """What the access lists of a text may contain."""
    truncated: bool = False
    """Whether the last text reached a limit of tokens. Then a draft inside an unfinished thought is no plan."""

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of the request's round. If its text is not valid, the plan's decision is a `PlanError`."""
        number = min(len(request.earlier_rounds), len(self.plans) - 1)
        written = self.plans[number]
        if isinstance(written, Plan):
            request.ledger.count_only(written.spent)
            return written
        truncated = self.truncated and number == len(self.plans) - 1
        return Plan(written, parse(written, request.rules(self.access), truncated=truncated))


class OnlinePlanner(Planner):
    """A planner that learns while it serves, from scores of the answers that its plans gave."""

    __slots__ = ()

    @property
    @abstractmethod
    def replayed_outcomes(self) -> int:
        """How many of the latest traces with an outcome a server lets the planner learn from."""

    @abstractmethod
    def learn(self, trace: Trace, score: float) -> None:
        """Learn from the score, in [0, 1], of an answer that this planner planned. Calls come in the order of the
        questions."""

    @abstractmethod
    def forget(self) -> None:
        """Forget everything that was learned."""


class BatchPlanner(Planner):
    """A planner that decides on many questions at once much faster than one by one."""

    __slots__ = ()

    @abstractmethod
    def prefetch(self, questions: Sequence[str]) -> None:
        """Prepare for the texts of questions that will be asked. This changes no plan."""
