"""A task: a question with a way to grade answers; a task set: a source of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from podium.types import Question


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict of a grader."""

    score: float
    """In [0, 1]."""
    found: str | None = None
    """The answer that the grader found in the response; None when there was none."""
    cost_usd: float = 0.0
    """Dollars that judging took, where a model judges; no part of what the answer cost."""
    failure: str | None = None
    """Why the grader could not judge: then nothing is known, and the score stands for nothing."""

    @property
    def correct(self) -> bool:
        """Whether the answer is right, as accuracy counts it."""
        return self.score >= 0.999


class Grader(Protocol):
    """Judges a response. Extracts, then compares; never credits mere containment."""

    async def __call__(self, response: str, gold: str) -> Grade:
        """The verdict.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A question that can be graded."""

    id: str
    """Unique within its task set: one id, one question, for ever."""
    question: Question
    gold: str
    grader: Grader
    facts: Mapping[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    """What is known of the question for reports alone (hops, skills, shape); never shown to a planner."""

    async def grade(self, response: str) -> Grade:
        """Judge `response`.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """
        return await self.grader(response, self.gold)


class TaskSet(Protocol):
    """An ordered source of tasks; the same index gives the same task for ever."""

    @property
    def name(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of it, and what fell short, a sentence each."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Task: ...

    def __iter__(self) -> Iterator[Task]: ...


def told(tasks: TaskSet) -> Iterator[str]:
    """Its notes, as sentences that name it."""
    return (f"{tasks.name}: {note}." for note in tasks.notes)
