"""A task: a question with a way to grade answers. A task set: an ordered source of tasks.

Everything in `podium.tasks` produces these values; rollouts and evaluations consume them. Nothing here reads a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import ClassVar, Literal, Protocol, get_args

from podium.errors import NoTasksError
from podium.types import Question

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
"""All splits. A question stands in the last of its splits alone."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict of a grader."""

    score: float
    """The verdict as a number in [0, 1]."""
    found: str | None = None
    """The answer that the grader found in the response; None when there was none."""
    cost_usd: float = 0.0
    """Dollars that grading by a model cost; not part of the answer's cost."""
    failure: str | None = None
    """Why the grader could not grade; then the score means nothing."""

    @property
    def correct(self) -> bool:
        """Whether the answer is right, as accuracy counts it."""
        return self.score >= 0.999


class Grader(Protocol):
    """Grades a response: extracts the answer, then compares it. Merely containing the gold answer earns nothing.

    A grader that is no `GraderSettings`, and whose verdicts depend on more than its class, has an `identity`: what
    tells its verdicts from those of another one of its class, as JSON.

    The smallest one::

        async def same_last_line(response: str, gold: str) -> Grade:
            found = response.strip().rpartition("\\n")[2]
            return Grade(float(found == gold), found)
    """

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A question that can be graded."""

    id: str
    """The id, unique within the task set: the same id always means the same question."""
    question: Question
    gold: str
    grader: Grader
    facts: Mapping[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    """Metadata for reports (hops, skills, shape); never shown to a planner."""
    key: str = ""
    """The question without its prompt, normalised, if its source says it: by it questions are compared (`task_key`)."""

    async def grade(self, response: str) -> Grade:
        """Grade a response.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """
        return await self.grader(response, self.gold)


class TaskSet(Protocol):
    """An ordered source of tasks; the same index always gives the same task."""

    @property
    def name(self) -> str: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out and what is missing, half a sentence each."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Task: ...

    def __iter__(self) -> Iterator[Task]: ...


def warnings_of(tasks: TaskSet) -> Iterator[str]:
    """The warnings of a task set, as sentences that name it."""
    return (f"{tasks.name}: {warning}." for warning in tasks.warnings)


class TaskList:
    """A task set in memory: the first `size` of some tasks, in an order that the seed decides.

    A larger size appends tasks to these.

    Args:
        name: the name in reports and traces.
        size: the most tasks; all by default.
        seed: decides the order. Without one it stays as given.
        warnings: what was left out and what is missing, half a sentence each.

    Raises:
        NoTasksError: there are none.
    """

    def __init__(
        self,
        name: str,
        tasks: Iterable[Task],
        *,
        size: int | None = None,
        seed: int | None = 0,
        warnings: Sequence[str] = (),
    ) -> None:
        listed = list(tasks) if seed is None else shuffled(tasks, seed)
        if not listed:
            why = "; ".join(warnings) or "its source is empty"
            raise NoTasksError(f"{name} has no tasks ({why}); use another split, or check its source.")
        self.name = name
        self.warnings = tuple(warnings)
        self._tasks = listed[:size]

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[index]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)


@dataclass(frozen=True)
class GeneratedTasks(ABC):
    """A task set whose questions are generated: the same (split, seed, index) always gives the same question.

    A subclass draws each task, and has a name for the set.
    """

    set_name: ClassVar[str]
    warnings: ClassVar[tuple[str, ...]] = ()
    split: Split = "train"
    size: int = 500
    seed: int = 0

    @property
    def name(self) -> str:
        """The name in reports and traces."""
        return f"{self.set_name}/{self.split}"

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Task]:
        return (self[index] for index in range(self.size))

    def __getitem__(self, index: int) -> Task:
        if not 0 <= index < self.size:
            raise IndexError(f"{self.name} has {self.size} tasks; there is no task {index}")
        return self.draw(Random(f"{self.set_name}/{self.split}/{self.seed}/{index}"), index)

    @abstractmethod
    def draw(self, rng: Random, index: int) -> Task:
        """The task of this index. All randomness comes from `rng`."""


def shuffled(tasks: Iterable[Task], seed: int) -> list[Task]:
    """Tasks in an order that depends on their ids and the seed alone, so rows may move in their file."""
    return sorted(tasks, key=lambda task: named_uniform("listed", seed, task.id))


def named_uniform(*name: object) -> float:
    """A uniform number in [0, 1), the same for the same name on every machine."""
    digest = blake2b("\x1f".join(map(str, name)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
