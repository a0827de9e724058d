"""The workflow: a sequence of steps, each with a subtask, a worker and an access list. It is written in two forms.

Trained policies write three lists, and untrained Conductors write a structured plan. `parse` reads both forms, and
`check` has the rules of validity. Of the graph, only needed steps count (except in `edges`): those that the last step
needs, directly or through others. The executor runs no other step, unless `run_all` is set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

PlanForm = Literal["lists", "structured"]
"""The two written forms of a plan: three lists of the same length, or one object with a list of steps."""
Topology = Literal["single", "chain", "parallel+join", "tree", "other"]


@dataclass(frozen=True, slots=True)
class Access:
    """The access list of a step: which earlier responses its worker sees. `Access()` shows no response,
    `Access(all=True)` shows all, and `Access(steps=(0, 2))` shows those of two steps."""

    steps: tuple[int, ...] = ()
    """Positions of earlier steps, ascending, without repeats."""
    all: bool = False
    """Whether every earlier step is shown and, in a later round, the final response of the previous round."""
    previous: bool = False
    """Whether the final response of the previous round is shown. Only a later round may set it."""

    def resolve(self, position: int) -> tuple[int, ...]:
        """The earlier steps that a step at `position` reads, ascending."""
        return tuple(range(position)) if self.all else self.steps

    @property
    def sees_previous(self) -> bool:
        """Whether the final response of the previous round is shown, if there is one."""
        return self.all or self.previous


@dataclass(frozen=True, slots=True)
class Step:
    """One subtask given to one worker."""

    worker: int
    """Number of the worker in the pool, from 0, as in the prompt."""
    subtask: str
    """What the worker should do. It is not empty and has no leading or trailing spaces."""
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class Workflow:
    """A plan: steps in order. The response of the last step is the answer."""

    steps: tuple[Step, ...]

    def reads(self, position: int) -> tuple[int, ...]:
        """Positions of the steps that the step at `position` reads, ascending."""
        return self.steps[position].access.resolve(position)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The planner accepts the previous answer, by three empty lists or `"accept": true` in a later round."""

    accept: Literal[True] = True
    """Distinguishes an acceptance from the other decisions in JSON."""


@dataclass(frozen=True, slots=True)
class PlanError:
    """Why a text is not a plan. It is a value, since it is a training signal and goes into the prompt of a retry."""

    kind: str
    """A stable word for metrics, such as "missing_list" or "unknown_worker"."""
    message: str
    """One sentence: what was expected and what was found."""
    text: str = ""
    """The faulty line of the completion. It is empty if the fault has no position."""
    column: int | None = None
    """The position of the fault in `text`, from 0. None if the fault has no position."""

    def __str__(self) -> str:
        """The message and, if the fault has a position, the line with a caret under it."""
        if self.column is None:
            return self.message
        return f"{self.message}\n    {self.text}\n    {' ' * self.column}^"


def render(
    plan: Workflow | Acceptance, form: PlanForm = "lists", *, names: Sequence[str] = (), thought: str = ""
) -> str:
    """The plan as JSON in one of the two forms. `parse` reads every workflow that passes `check` back unchanged. A
    structured plan has the names of workers, or their numbers if `names` is empty, and a thought."""
    if form == "structured":
        return _structured(plan, names, thought)
    steps = plan.steps if isinstance(plan, Workflow) else ()
    return (
        f"model_id = {_list(str(step.worker) for step in steps)}\n"
        f"subtasks = {_list(_ENCODER.encode(step.subtask) for step in steps)}\n"
        f"access_list = {_list(_entries(step.access) for step in steps)}"
    )


def _structured(plan: Workflow | Acceptance, names: Sequence[str], thought: str) -> str:
    begins = f'{{"thought": {_ENCODER.encode(thought)}'
    if isinstance(plan, Acceptance):
        return f'{begins}, "accept": true}}'
    steps = ",\n  ".join(
        f'{{"worker": {_ENCODER.encode(names[step.worker]) if names else step.worker}, '
        f'"subtask": {_ENCODER.encode(step.subtask)}, "sees": {_entries(step.access)}}}'
        for step in plan.steps
    )
    return f'{begins}, "steps": [\n  {steps}]}}'


def _entries(access: Access) -> str:
    if access.all:
        return '["all"]'
    return _list((*map(str, access.steps), *(('"previous"',) if access.previous else ())))


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _list(entries: Iterable[str]) -> str:
    return f"[{', '.join(entries)}]"


def needed_steps(workflow: Workflow) -> tuple[int, ...]:
    """The positions of the last step and of the steps that it needs, in ascending order."""
    if not workflow.steps:
        return ()
    last = len(workflow.steps) - 1
    return tuple(sorted({last, *_needs(workflow)[last]}))


def topology(workflow: Workflow) -> Topology:
    """The name of the graph's shape, after edges that longer paths imply are removed. "single": one step. "chain": no
    two steps can run at once. "parallel+join": all steps but the last are independent, and the last joins them. "tree":
    exactly one later step reads each response. "other": several steps that can run at once read the same response."""
    steps = needed_steps(workflow)
    if len(steps) <= 1:
        return "single"
    needs = _needs(workflow)
    if all(earlier in needs[later] for earlier, later in pairwise(steps)):
        return "chain"
    if not any(needs[position] for position in steps[:-1]):
        return "parallel+join"
    direct = {
        position: needs[position].difference(*(needs[read] for read in needs[position])) for position in steps
    }
    readers = [sum(position in reads for reads in direct.values()) for position in steps[:-1]]
    return "tree" if set(readers) == {1} else "other"


def edges(workflow: Workflow) -> str:
    """The earlier steps that each step reads, as text: "-;0;0,1" is a chain whose last step sees both."""
    return ";".join(
        ",".join(map(str, workflow.reads(position))) or "-" for position in range(len(workflow.steps))
    )


def _needs(workflow: Workflow) -> list[set[int]]:
    needs: list[set[int]] = []
    for position in range(len(workflow.steps)):
        reads = workflow.reads(position)
        needs.append(set(reads).union(*(needs[read] for read in reads)))
    return needs
