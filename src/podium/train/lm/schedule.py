"""Assigns a task and a round to each row of the trainer's dataset, before the run starts.

The trainer does not shuffle: it takes the rows in order, so a resumed run continues with the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random


@dataclass(frozen=True, slots=True)
class Row:
    """One group of samples: a task in one round of one iteration."""

    iteration: int
    question: int
    """The number of the question in its iteration."""
    round: int
    task: str
    """The id of the task."""
    seed: str
    """Names the group for the scoring session; the rounds of one question share it."""

    @property
    def label(self) -> str:
        """What the trainer's own logs show as the prompt."""
        return f"iteration {self.iteration}, question {self.question}: {self.task}, round {self.round}"


def schedule(tasks: Sequence[str], *, iterations: int, questions: int, rounds: int, seed: int) -> list[Row]:
    """All rows of a run, in order. The rounds of a question are consecutive rows, so that one rank has them all.

    Each task comes once before any comes again, in a new order in each pass.
    """

    @cache
    def order(epoch: int) -> list[str]:
        shuffled = list(tasks)
        Random(f"tasks/{seed}/epoch {epoch}").shuffle(shuffled)
        return shuffled

    rows = []
    for iteration in range(iterations):
        for question in range(questions):
            epoch, place = divmod(iteration * questions + question, len(tasks))
            name = f"train/{seed}/{iteration}/{question}"
            rows += [Row(iteration, question, round_, order(epoch)[place], name) for round_ in range(rounds)]
    return rows


def by_label(rows: Sequence[Row]) -> Mapping[str, Row]:
    """Rows by what the trainer calls them."""
    return {row.label: row for row in rows}
