"""The embedded task set: questions of 1 to 4 hops over small operations, with computed answers.

With the specialists it simulates the structure of real coordination, not its content. The same (split, seed, index)
always gives the same question. Splits are disjoint by construction: the key of a problem, which ignores its wording,
decides its split, and some compositions of operations are reserved for the test split.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.lab import OPERATIONS, SKILLS, VALUE_TYPES, Hop, Operation, Problem, chance, fits, word_question
from podium.tasks.generated import GeneratedTasks, Split
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.types import Question

HOP_SHARES = (0.3, 0.35, 0.2, 0.15)
"""Shares of questions with 1, 2, 3 and 4 hops."""
_HELD_OUT_SHARE = 0.2
_EXACT = Exact()
_NOT_GIVEN = frozenset({"yesno"})
"""Types of values that a question never gives as an input."""


def held_out(composition: tuple[str, str]) -> bool:
    """Whether this composition, the first operation into the second, is reserved for the test split."""
    return chance("held out composition", *composition) < _HELD_OUT_SHARE


def split_of(problem: Problem) -> Split:
    """The split that `problem` belongs to."""
    if any(map(held_out, problem.compositions)):
        return "test"
    place = chance("split", problem.key)
    return "train" if place < 0.8 else "validation" if place < 0.9 else "test"


@dataclass(frozen=True)
class EmbeddedTasks(GeneratedTasks):
    """Embedded tasks of one split, in a fixed order."""

    set_name = "embedded"
    hop_shares: tuple[float, ...] = HOP_SHARES
    """Shares of questions with 1, 2, ... hops: a curriculum changes them."""

    def draw(self, rng: Random, index: int) -> Task:
        """See `GeneratedTasks`."""
        (hops,) = rng.choices(range(1, len(self.hop_shares) + 1), self.hop_shares)
        problem = draw_problem(rng, hops)
        while split_of(problem) != self.split:
            problem = draw_problem(rng, hops)
        return Task(
            id=f"{self.name}/{self.seed}/{index}",
            question=Question(text=word_question(problem, rng)),
            gold=problem.answer,
            grader=_EXACT,
            facts={
                "hops": hops,
                "skills": problem.skills,
                "shape": problem.shape,
                "held_out": int(any(map(held_out, problem.compositions))),
            },
        )


def draw_problem(rng: Random, hops: int) -> Problem:
    """A problem with this many hops: a chain, or two branches and a join (from 3 hops on)."""
    while True:
        before, after = _shape(rng, hops)
        try:
            if before is None:
                return Problem(tuple(_branch(rng, hops, 0)))
            return _joined(rng, before, after)
        except ValueError:
            continue  # a result fell outside the next operation's domain: draw again


def _shape(rng: Random, hops: int) -> tuple[tuple[int, int] | None, int]:
    """The lengths of the two branches (None: a chain), and the number of hops after the join."""
    if hops < 3 or rng.random() < 0.5:
        return None, 0
    return rng.choice({3: [((1, 1), 0)], 4: [((1, 1), 1), ((2, 1), 0), ((1, 2), 0)]}[hops])


def _joined(rng: Random, lengths: tuple[int, int], after: int) -> Problem:
    first = _branch(rng, lengths[0], 0)
    second = _branch(rng, lengths[1], len(first))
    hops = first + second
    given = (first[-1].operation.gives, second[-1].operation.gives)
    join = _choose(rng, given)
    hops.append(Hop(join, (len(first) - 1, len(hops) - 1), _number(rng, join)))
    for _ in range(after):
        hops.append(_following(rng, hops))
    return _valid(hops)


def _branch(rng: Random, length: int, start: int) -> list[Hop]:
    """A chain of hops whose first takes values from the question; positions begin at `start`."""
    source = rng.choice(
        [
            operation
            for operation in _of_skill(rng.choice(SKILLS))
            if not _NOT_GIVEN & set(operation.takes) and (length == 1 or not operation.joins)
        ]
    )
    inputs = tuple(VALUE_TYPES[kind].write(VALUE_TYPES[kind].draw(rng)) for kind in source.takes)
    hops = [Hop(source, inputs, _number(rng, source))]
    while len(hops) < length:
        hops.append(_following(rng, hops))
    _valid(hops)
    return [
        Hop(hop.operation, tuple(i + start if isinstance(i, int) else i for i in hop.inputs), hop.number)
        for hop in hops
    ]


def _following(rng: Random, hops: list[Hop]) -> Hop:
    operation = _choose(rng, (hops[-1].operation.gives,))
    return Hop(operation, (len(hops) - 1,), _number(rng, operation))


def _choose(rng: Random, given: tuple[str, ...]) -> Operation:
    """An operation that takes values of the types `given`; draws its skill first, so that skills are equally likely."""
    fitting = [
        operation
        for operation in OPERATIONS.values()
        if len(operation.takes) == len(given) and all(map(fits, given, operation.takes))
    ]
    if not fitting:
        raise ValueError(f"nothing takes {given}")
    skill = rng.choice(sorted({operation.skill for operation in fitting}))
    return rng.choice([operation for operation in fitting if operation.skill == skill])


def _of_skill(skill: str) -> list[Operation]:
    return [operation for operation in OPERATIONS.values() if operation.skill == skill]


def _number(rng: Random, operation: Operation) -> int | None:
    return None if operation.number is None else rng.choice(operation.number)


def _valid(hops: list[Hop]) -> Problem:
    """The problem of these hops; ValueError when a value is outside an operation's domain."""
    problem = Problem(tuple(hops))
    problem.truths  # noqa: B018 (computed for its ValueError)
    return problem
