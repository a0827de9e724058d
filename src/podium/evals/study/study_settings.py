"""The settings of a study."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import UsageError
from podium.evals.study.decision import MARGIN


@dataclass(frozen=True)
class StudySettings:
    """How a study is made."""

    repeats: int = 1
    """Answers of each worker to each question. With 1, a fifth of the questions is asked twice."""
    judge: str | None = None
    """The worker of the pool that judges answers to questions without a known right answer."""
    conductor: str | None = None
    """The checkpoint of a trained Conductor that reads ratings. At the end it plans every question."""
    margin: float = MARGIN
    """How much accuracy a cheaper method may lose and still count as good, from 0 to 1."""
    concurrency: int = 16
    """The most calls at once."""
    seed: int = 0
    """Seeds the choice of questions and the division into folds."""

    def check(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: a study cannot use one of the numbers.
        """
        if self.repeats < 1 or self.concurrency < 1:
            raise UsageError(
                f"--repeats {self.repeats}, --concurrency {self.concurrency}: give at least 1 of each."
            )
        if not 0 <= self.margin < 1:
            raise UsageError(f"--margin {self.margin:g}: give a share from 0 to 1, such as 0.02.")
