"""Scores of workers' answers to other questions, from which planners learn, and the types of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import ConfigError

Floats = npt.NDArray[np.float64]
Members = tuple[int, ...]
"""The workers of a vote, by number; one that is named again gives another answer."""


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The scores and costs of each worker alone, on questions that are not those of the comparison."""

    workers: tuple[str, ...]
    texts: tuple[str, ...]
    """The texts of the Q questions."""
    score_QW: Floats
    """The score of each worker's answer, in [0, 1]; the mean over its samples."""
    cost_QW: Floats
    """Dollars of one answer."""
    votes: Callable[[Members], tuple[Floats, Floats]] | None = None
    """A function from the workers of a vote to its score and dollars, [Q] each. None if equal answers are not known."""
    right_counts: Callable[[Members], Floats] | None = None
    """A function from the M workers of a vote to [Q, M + 1]: how often r of its answers are right. None if unknown."""
    samples: int = 1
    """How often a worker may be named in a vote: as many different answers are known of each."""
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """Results that planners have computed from these answers, such as predictors, so that others need not."""

    def of(self, names: Sequence[str], planner: str) -> ScoredAnswers:
        """The answers of the workers among `names`; `ConfigError`, which names the planner, if there are none."""
        columns = [w for w, worker in enumerate(self.workers) if worker in names]
        if not columns or not self.texts:
            raise ConfigError(
                f"The planner {planner!r} learns from answers of the pool's workers, and there are none; "
                "give training questions that they answered."
            )

        def of_all(members: Members) -> Members:
            return tuple(columns[member] for member in members)

        votes, right_counts = self.votes, self.right_counts
        return ScoredAnswers(
            tuple(self.workers[w] for w in columns),
            self.texts,
            self.score_QW[:, columns],
            self.cost_QW[:, columns],
            votes and (lambda members: votes(of_all(members))),
            right_counts and (lambda members: right_counts(of_all(members))),
            self.samples,
            self.memo,
        )
