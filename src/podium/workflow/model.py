"""The workflow: a sequence of steps, each a subtask, a worker and an access list; and its canonical text.

A policy learns to write the canonical text, and people are shown it (design §4.7). `parse` reads it back, `check` holds
the rules of validity, and `graph` the facts about the graph.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """Which earlier work a step's worker sees (design: access list).

    `Access()` sees nothing, `Access(all=True)` everything, `Access(steps=(0, 2))` two earlier steps.
    """

    steps: tuple[int, ...] = ()
    """Positions of earlier steps, ascending, without repeats."""
    all: bool = False
    """Sees every earlier step and, in a later round, the final response of the round before."""
    previous: bool = False
    """Sees the final response of the round before (later rounds only)."""

    def resolve(self, position: int) -> tuple[int, ...]:
        """The earlier steps that a step at `position` reads, ascending."""
        return tuple(range(position)) if self.all else self.steps

    @property
    def sees_previous(self) -> bool:
        """Whether the final response of the round before is shown, if there is one."""
        return self.all or self.previous


@dataclass(frozen=True, slots=True)
class Step:
    """One subtask given to one worker."""

    worker: int
    """Number of the worker in the pool as the prompt shows it, from 0."""
    subtask: str
    """What the worker is to do: stripped, not empty."""
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class Workflow:
    """What is to happen. The response of the last step is the answer."""

    steps: tuple[Step, ...]

    def reads(self, position: int) -> tuple[int, ...]:
        """Positions of the steps that the step at `position` reads, ascending."""
        return self.steps[position].access.resolve(position)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Three empty lists in a later round: the answer that we have is good."""


@dataclass(frozen=True, slots=True)
class PlanError:
    """Why a text is not a plan: a value, since it is a training signal and a prompt for a second try."""

    kind: str
    """A stable word for metrics, such as "missing_list" or "unknown_worker"."""
    message: str
    """One sentence that says what was expected and what was found."""
    text: str = ""
    """The line of the completion that is at fault, if there is one."""
    column: int | None = None
    """Where in `text`, from 0."""

    def __str__(self) -> str:
        """The sentence and, where there is a place, the line with a caret under it."""
        if self.column is None:
            return self.message
        return f"{self.message}\n    {self.text}\n    {' ' * self.column}^"


def render(plan: Workflow | Acceptance) -> str:
    """The three lists, a line each, as JSON writes them.

    For every workflow that `check` lets pass, `parse` reads the same workflow back.
    """
    steps = plan.steps if isinstance(plan, Workflow) else ()
    return (
        f"model_id = {_written([step.worker for step in steps])}\n"
        f"subtasks = {_written([step.subtask for step in steps])}\n"
        f"access_list = {_written([_entries(step.access) for step in steps])}"
    )


def _entries(access: Access) -> list[int | str]:
    if access.all:
        return ["all"]
    return [*access.steps, *(["previous"] if access.previous else [])]


def _written(entries: object) -> str:
    return json.dumps(entries, ensure_ascii=False)
