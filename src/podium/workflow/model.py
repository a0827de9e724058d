"""The workflow: a sequence of steps, each a subtask, a worker and an access list.

Frozen values without behaviour beyond resolving an access list. Text forms live in `parse` and `render`,
validity in `check`, facts about the graph in `graph`.
"""

from __future__ import annotations

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
    """What the worker is told to do: stripped, not empty."""
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
