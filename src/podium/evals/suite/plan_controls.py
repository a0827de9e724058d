"""Controls: planners that take one thing away from another planner, to show whether its lead needs that thing.

A control wraps a planner. It changes the planner's plans or its requests, or replaces the planner. `PLAN_CONTROLS`
names all controls. Tools such as the vote keep their steps, subtasks and access lists, because without responses they
have nothing to work on. Only `steps-shuffled` moves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planner import Planner, PlannerWrapper, PlanRequest
from podium.planners.constant_and_random import Constant, RandomPlans
from podium.planners.plans import worker_number
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


@dataclass(frozen=True, slots=True)
class ControlContext:
    """The arguments of a control. A field that the control does not need may keep its default."""

    pool: Sequence[Profile]
    tools: frozenset[str] = frozenset()
    """Names of the pool's tools."""
    seed: str = "0"
    best_worker: str = ""
    """The worker that was most accurate on training questions."""
    plans: Sequence[Workflow] = ()
    """The planner's first plans for training questions."""
    samples: int = 1
    """How many answers of the best worker the planner's dollars buy, at most `MAX_SAMPLES`."""
    vote: Planner | None = None
    """The most accurate vote on training questions, among the votes that the planner's dollars buy."""
    untrained: Planner | None = None


@dataclass(frozen=True, slots=True)
class PlanControl:
    """One control."""

    name: str
    rules_out: str
    """What explains the planner's accuracy if this control is as accurate."""
    wrap: Callable[[Planner, ControlContext], Planner]
    needs: frozenset[Need] = frozenset()
    on_recordings: bool = True
    """Whether a recording of single answers can answer the control's plans, if it can answer the planner's plans."""


@dataclass(frozen=True, slots=True)
class ControlInput:
    """The arguments of a function that changes one plan."""

    models: Sequence[int]
    """The numbers of all workers except tools."""
    context: ControlContext
    pool: Sequence[Profile]
    random: Random

    def change_steps(self, workflow: Workflow, change: Callable[[Step], Step]) -> Workflow:
        """The workflow with `change` applied to each step, except to steps of tools."""
        return Workflow(
            tuple(change(step) if step.worker in self.models else step for step in workflow.steps)
        )


Change = Callable[[Workflow, ControlInput], Workflow]
"""A function from a planner's workflow to the control's."""


@dataclass(frozen=True, slots=True)
class ControlledPlanner(PlannerWrapper):
    """A planner whose workflows are changed before they run. Acceptances and unreadable plans stay."""

    control: str
    change: Change
    context: ControlContext

    @property
    def name(self) -> str:
        return f"{self.planner.name}, {self.control}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan with its workflow changed."""
        plan = await self.planner.plan(request)
        if not isinstance(plan.decision, Workflow):
            return plan
        request_seed = f"{self.control}/{self.context.seed}/{request.seed}/{len(request.earlier_rounds)}"
        random = Random(f"plan-control/{request_seed}/{request.question.text[:SEED_PREFIX_CHARS]}")
        setting = ControlInput(_models(request.pool, self.context), self.context, request.pool, random)
        workflow = self.change(plan.decision, setting)
        return replace(plan, text=render(workflow), decision=workflow)


@dataclass(frozen=True, slots=True)
class PermutedProfilesPlanner(PlannerWrapper):
    """A planner that sees the descriptions, skills and ratings of the workers permuted.

    Names, prices and the workers themselves stay. All questions get the same permutation.
    """

    context: ControlContext

    @property
    def name(self) -> str:
        return f"{self.planner.name}, wrong-ratings"

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan for the permuted profiles."""
        other = _exchange(
            _models(request.pool, self.context), Random(f"plan-control/wrong-ratings/{self.context.seed}")
        )
        permuted = tuple(
            profile.model_copy(
                update={key: getattr(request.pool[other.get(k, k)], key) for key in _ABILITY},
            )
            for k, profile in enumerate(request.pool)
        )
        return await self.planner.plan(replace(request, pool=permuted))


_ABILITY = ("description", "skills", "rating")
"""The fields of a profile that describe a worker's ability."""


def _models(pool: Sequence[Profile], context: ControlContext) -> list[int]:
    return [k for k, profile in enumerate(pool) if profile.name not in context.tools]


def _exchange(numbers: Sequence[int], random: Random) -> dict[int, int]:
    """Map each number to another number, in a random circle. A single number is mapped to itself."""
    circle = list(numbers)
    random.shuffle(circle)
    return dict(zip(circle, [*circle[1:], *circle[:1]], strict=True))


def _permute_workers(workflow: Workflow, setting: ControlInput) -> Workflow:
    other = _exchange(setting.models, setting.random)
    return setting.change_steps(workflow, lambda step: replace(step, worker=other[step.worker]))


def _give_all_to_best(workflow: Workflow, setting: ControlInput) -> Workflow:
    best = worker_number(setting.context.best_worker, setting.pool)
    return setting.change_steps(workflow, lambda step: replace(step, worker=best))


def _without_subtasks(workflow: Workflow, setting: ControlInput) -> Workflow:
    return setting.change_steps(workflow, lambda step: replace(step, subtask=ANSWER_WHOLE_QUESTION))


def _without_access(workflow: Workflow, setting: ControlInput) -> Workflow:
    return setting.change_steps(workflow, lambda step: replace(step, access=Access()))


def _with_all_access(workflow: Workflow, setting: ControlInput) -> Workflow:
    return setting.change_steps(workflow, lambda step: replace(step, access=Access(all=True)))


def _shuffle_steps(workflow: Workflow, setting: ControlInput) -> Workflow:
    """The steps in a random order. Each step still reads those of its steps that now come before it."""
    order = list(range(len(workflow.steps)))
    setting.random.shuffle(order)
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


def _most_frequent_plan(planner: Planner, context: ControlContext) -> Planner:
    names = tuple(profile.name for profile in context.pool)
    return Constant(most_frequent(context.plans), names, f"{planner.name}, most-frequent-plan")


def _untrained_planner(planner: Planner, context: ControlContext) -> Planner:
    assert context.untrained is not None
    return context.untrained


def _best_vote(planner: Planner, context: ControlContext) -> Planner:
    assert context.vote is not None
    return context.vote


def _change_plans(name: str, change: Change) -> Callable[[Planner, ControlContext], Planner]:
    return lambda planner, context: ControlledPlanner(planner, name, change, context)


_ALL = (
    PlanControl(
        "workers-permuted",
        "which worker does which step does not matter",
        _change_plans("workers-permuted", _permute_workers),
    ),
    PlanControl(
        "best-worker",
        "the steps help, and not the choice of workers",
        _change_plans("best-worker", _give_all_to_best),
        frozenset({"best worker"}),
    ),
    PlanControl(
        "whole-question",
        "the wording of the subtasks does not matter",
        _change_plans("whole-question", _without_subtasks),
    ),
    PlanControl(
        "no-access",
        "workers do not need to see each other's responses",
        _change_plans("no-access", _without_access),
    ),
    PlanControl(
        "all-access",
        "the choice of who sees what does not matter",
        _change_plans("all-access", _with_all_access),
        on_recordings=False,
    ),
    PlanControl(
        "steps-shuffled",
        "the order of the steps does not matter",
        _change_plans("steps-shuffled", _shuffle_steps),
    ),
    PlanControl(
        "most-frequent-plan",
        "one plan for all questions is enough",
        _most_frequent_plan,
        frozenset({"plans"}),
    ),
    PlanControl(
        "random-plans",
        "any valid plan is as good",
        lambda planner, context: RandomPlans(context.seed),
        on_recordings=False,
    ),
    PlanControl("untrained", "training adds nothing", _untrained_planner, frozenset({"untrained"})),
    PlanControl(
        "wrong-ratings",
        "the planner does not use what it is told of the workers",
        PermutedProfilesPlanner,
        frozenset({"ability"}),
    ),
    PlanControl(
        "self-consistency",
        "the same dollars are as well spent on votes of the best worker",
        lambda planner, context: SelfConsistency(context.best_worker, context.samples),
        frozenset({"best worker"}),
    ),
    PlanControl(
        "best-vote",
        "one vote for all questions, of the same dollars, is as good",
        _best_vote,
        frozenset({"best worker", "vote"}),
    ),
)
PLAN_CONTROLS: Mapping[str, PlanControl] = {control.name: control for control in _ALL}
"""All controls by name."""


CHOSEN_CONTROLS = ("self-consistency", "best-vote")
"""The controls that replace the planner by a vote of equal cost, which is chosen on training questions."""


def find_control(name: str) -> PlanControl:
    """The control of this name. Raises `ConfigError` if there is none."""
    if name not in PLAN_CONTROLS:
        raise ConfigError(f"There is no control {name!r}; {suggestion(name, list(PLAN_CONTROLS))}")
    return PLAN_CONTROLS[name]
