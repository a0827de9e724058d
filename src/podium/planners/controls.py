"""Planners that do not read the question: one constant plan, and random plans.

They are controls. A Conductor that does not beat the best constant plan does not use the question.
`podium search workflows` of podium-research looks for that plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from podium.config import read_file
from podium.errors import ConfigError
from podium.planners.baseline import BaselineContext, PlannerSpec, plan_once, worker_number
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION, SEED_PREFIX_CHARS
from podium.workflow import Access, AccessRule, PlanError, PlanRules, Step, Workflow, parse
from podium.workflow.check import MAX_TEXT

PARTS = ("Do part 1 only.", "Do part 2 only.", "Do part 3 only.", "Do part 4 only.")
NEXT = "Do the next part."
FINISH = "Finish the rest."
CHECK = "Check the work shown and mend it."
COMPARE = "Compare the answers shown and give the best one."

PHRASES = (ANSWER_WHOLE_QUESTION, *PARTS, NEXT, FINISH, CHECK, COMPARE)
"""The subtasks of random plans, which models read as ordinary instructions. Do not change the order: seeded draws
depend on it."""


@dataclass(frozen=True, slots=True)
class Constant(Planner):
    """The same workflow for every question. Workers are stored by name, so the order of the pool does not matter."""

    workflow: Workflow
    workers: tuple[str, ...]
    """Worker k of `workflow` is the one with this name."""
    name: str = "constant"

    async def plan(self, request: PlanRequest) -> Plan:
        """The workflow with the worker numbers of this pool; `ConfigError` if the pool lacks a worker."""
        steps = tuple(
            replace(step, worker=worker_number(self.workers[step.worker], request.pool))
            for step in self.workflow.steps
        )
        return plan_once(request, Workflow(steps))


def read_constant(text: str, workers: Sequence[str], *, name: str, max_steps: int = MAX_TEXT) -> Constant:
    """A constant plan from the text of a workflow; `ConfigError` that shows the fault if the text is no workflow."""
    decision = parse(text, PlanRules(workers=len(workers), max_steps=max_steps))
    if isinstance(decision, PlanError):
        raise ConfigError(f"The plan of {name} cannot be read: {decision}")
    if not isinstance(decision, Workflow):
        raise ConfigError(f"The plan of {name} has no steps; it needs at least one.")
    return Constant(workflow=decision, workers=tuple(workers), name=name)


@dataclass(frozen=True, slots=True)
class RandomPlans(Planner):
    """A random workflow for each question; the same seed and question give the same workflow."""

    seed: str = "0"
    name: str = "random"

    async def plan(self, request: PlanRequest) -> Plan:
        """A random valid plan for the pool of the request."""
        random = Random(
            f"random-plans/{self.seed}/{request.seed}/{request.question.text[:SEED_PREFIX_CHARS]}"
        )
        workflow = random_workflow(random, workers=len(request.pool), max_steps=request.max_steps)
        return plan_once(request, workflow)


def random_workflow(
    random: Random, *, workers: int, max_steps: int, access: AccessRule = "lists"
) -> Workflow:
    """A valid first-round workflow: the number of steps, then each step's parts, drawn uniformly."""
    steps = random.randint(1, max_steps)
    return Workflow(tuple(_random_step(random, position, workers, access) for position in range(steps)))


def _random_step(random: Random, position: int, workers: int, access: AccessRule) -> Step:
    return Step(
        worker=random.randrange(workers),
        subtask=random.choice(PHRASES),
        access=_random_access(random, position, access),
    )


def _random_access(random: Random, position: int, access: AccessRule) -> Access:
    """Draw none or all of the earlier steps; under the rule "lists" also some. The kinds are equally likely. The first
    step sees none."""
    if position == 0:
        return Access()
    kind = random.choice(("none", "all", "some") if access == "lists" else ("none", "all"))
    if kind == "some":
        size = random.randint(1, position)
        return Access(steps=tuple(sorted(random.sample(range(position), size))))
    return Access(all=kind == "all")


def _open_constant(context: BaselineContext) -> Constant:
    if not context.argument:
        raise ConfigError(
            "The baseline 'constant' names no file; write constant:FILE, a file with a plan's lists."
        )
    path = Path(context.argument)
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file; check the path.")
    try:
        text = read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); check the file.") from None
    workers = [profile.name for profile in context.pool]
    return read_constant(text, workers, name=context.name)


CONSTANT = PlannerSpec("constant:FILE", _open_constant, reads_files=True)
RANDOM = PlannerSpec(
    "random",
    lambda context: RandomPlans(seed=context.seed),
    rows=lambda workers: [("Random plans", "random")],
    on_recordings=False,
)
