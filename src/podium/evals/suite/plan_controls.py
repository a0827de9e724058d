"""Controls: planners that take one thing away from another planner, to show whether its lead needs that thing.

A control changes the planner's plans or its requests, or replaces the planner. Tools such as the vote keep their steps,
subtasks and access lists, because without responses they have nothing to work on. Only `steps-shuffled` moves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from podium.planners.baseline import worker_number
from podium.planners.controls import Constant, RandomPlans
from podium.planners.planner import Planner, PlannerWrapper, PlanRequest
from podium.planners.voting import SelfConsistency
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION, SEED_PREFIX_CHARS, Profile
from podium.workflow import Access, Step, Workflow, render

Need = Literal["best worker", "plans", "ability", "vote", "untrained"]
"""What a control needs besides the planner: the worker that was best on training questions, the planner's plans for
training questions, workers with descriptions, skills or ratings, the best vote on training questions, or the planner
before training."""
MAX_SAMPLES = 15
"""The most answers of a self-consistency vote, however cheap the worker is."""
_ABILITY = ("description", "skills", "rating")
"""The fields of a profile that describe a worker's ability."""


@dataclass(frozen=True, slots=True)
class PlanControl:
    rules_out: str
    """What explains the planner's accuracy if this control is as accurate."""
    needs: frozenset[Need] = frozenset()
    on_recordings: bool = True
    """Whether a recording of single answers can answer the control's plans, if it can answer the planner's plans."""


PLAN_CONTROLS: Mapping[str, PlanControl] = {
    "workers-permuted": PlanControl("which worker does which step does not matter"),
    "best-worker": PlanControl("the steps help, and not the choice of workers", frozenset({"best worker"})),
    "whole-question": PlanControl("the wording of the subtasks does not matter"),
    "no-access": PlanControl("workers do not need to see each other's responses"),
    "all-access": PlanControl("the choice of who sees what does not matter", on_recordings=False),
    "steps-shuffled": PlanControl("the order of the steps does not matter"),
    "most-frequent-plan": PlanControl("one plan for all questions is enough", frozenset({"plans"})),
    "random-plans": PlanControl("any valid plan is as good", on_recordings=False),
    "untrained": PlanControl("training adds nothing", frozenset({"untrained"})),
    "wrong-ratings": PlanControl(
        "the planner does not use what it is told of the workers", frozenset({"ability"})
    ),
    "self-consistency": PlanControl(
        "the same dollars are as well spent on votes of the best worker", frozenset({"best worker"})
    ),
    "best-vote": PlanControl(
        "one vote for all questions, of the same dollars, is as good", frozenset({"best worker", "vote"})
    ),
}
CHOSEN_CONTROLS = ("self-consistency", "best-vote")
"""The controls that replace the planner by a vote of equal cost, which is chosen on training questions."""


@dataclass(frozen=True, slots=True)
class ControlContext:
    """The arguments of a control. A field that the control does not need may keep its default."""

    pool: Sequence[Profile]
    tools: frozenset[str] = frozenset()
    seed: str = "0"
    best_worker: str = ""
    """The worker that was most accurate on training questions."""
    plans: Sequence[Workflow] = ()
    samples: int = 1
    """How many answers of the best worker the planner's dollars buy, at most `MAX_SAMPLES`."""
    replacement: Planner | None = None
    """The planner before training, or the most accurate vote on training questions among the votes that the planner's
    dollars buy."""


def with_control(name: str, planner: Planner, context: ControlContext) -> Planner:
    """The control of this name, of a planner."""
    match name:
        case "most-frequent-plan":
            names = tuple(profile.name for profile in context.pool)
            return Constant(most_frequent(context.plans), names, f"{planner.name}, {name}")
        case "random-plans":
            return RandomPlans(context.seed)
        case "self-consistency":
            return SelfConsistency(context.best_worker, context.samples)
        case "untrained" | "best-vote":
            assert context.replacement is not None
            return context.replacement
    return ControlledPlanner(planner, name, context)


@dataclass(frozen=True, slots=True)
class ControlledPlanner(PlannerWrapper):
    """A planner whose workflows are changed before they run. Acceptances and unreadable plans stay.

    With `wrong-ratings`, the planner instead sees the descriptions, skills and ratings of the workers permuted. Names,
    prices and the workers themselves stay. All questions get the same permutation.
    """

    control: str
    context: ControlContext

    @property
    def name(self) -> str:
        return f"{self.planner.name}, {self.control}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan with its workflow changed."""
        seed = self.context.seed
        models = [k for k, profile in enumerate(request.pool) if profile.name not in self.context.tools]
        if self.control == "wrong-ratings":
            other = _exchange(models, Random(f"plan-control/wrong-ratings/{seed}"))
            permuted = tuple(
                profile.model_copy(
                    update={key: getattr(request.pool[other.get(k, k)], key) for key in _ABILITY}
                )
                for k, profile in enumerate(request.pool)
            )
            return await self.planner.plan(replace(request, pool=permuted))
        plan = await self.planner.plan(request)
        if not isinstance(plan.decision, Workflow):
            return plan
        request_seed = f"{self.control}/{seed}/{request.seed}/{len(request.earlier_rounds)}"
        random = Random(f"plan-control/{request_seed}/{request.question.text[:SEED_PREFIX_CHARS]}")
        if self.control == "steps-shuffled":
            workflow = _shuffled(plan.decision, random)
        else:
            changes = self._changes(models, request.pool, random)
            workflow = Workflow(
                tuple(
                    replace(step, **changes[step.worker]) if step.worker in changes else step
                    for step in plan.decision.steps
                )
            )
        return replace(plan, text=render(workflow), decision=workflow)

    def _changes(
        self, models: Sequence[int], pool: Sequence[Profile], random: Random
    ) -> Mapping[int, dict[str, Any]]:
        if self.control == "workers-permuted":
            return {worker: {"worker": other} for worker, other in _exchange(models, random).items()}
        change: dict[str, Any]
        match self.control:
            case "best-worker":
                change = {"worker": worker_number(self.context.best_worker, pool)}
            case "whole-question":
                change = {"subtask": ANSWER_WHOLE_QUESTION}
            case "no-access":
                change = {"access": Access()}
            case _:
                change = {"access": Access(all=True)}
        return dict.fromkeys(models, change)


def _exchange(numbers: Sequence[int], random: Random) -> dict[int, int]:
    """Map each number to another number, in a random circle. A single number is mapped to itself."""
    circle = list(numbers)
    random.shuffle(circle)
    return dict(zip(circle, [*circle[1:], *circle[:1]], strict=True))


def _shuffled(workflow: Workflow, random: Random) -> Workflow:
    """The steps in a random order. Each step still reads those of its steps that now come before it."""
    order = list(range(len(workflow.steps)))
    random.shuffle(order)
    new_position = {old: new for new, old in enumerate(order)}

    def move(old: int) -> Step:
        access = workflow.steps[old].access
        reads = sorted(new_position[read] for read in access.steps if new_position[read] < new_position[old])
        return replace(workflow.steps[old], access=replace(access, steps=tuple(reads)))

    return Workflow(tuple(map(move, order)))


def most_frequent(plans: Sequence[Workflow]) -> Workflow:
    """The most frequent workers and access lists, with the most frequent subtasks among these. There must be a plan."""
    shape, _ = Counter(map(_shape, plans)).most_common(1)[0]
    return Counter(plan for plan in plans if _shape(plan) == shape).most_common(1)[0][0]


def _shape(plan: Workflow) -> tuple[tuple[int, Access], ...]:
    return tuple((step.worker, step.access) for step in plan.steps)
