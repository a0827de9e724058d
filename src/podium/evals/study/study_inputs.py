"""What a study is made of: the workers of a team, questions, settings, and the folder that keeps the answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.calls import CallState
from podium.errors import UsageError
from podium.evals.question_table import open_run_call_state
from podium.evals.study.decision import MARGIN
from podium.evals.study.judges import PoolJudge
from podium.evals.study.questions import StudyQuestions
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool


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


@dataclass(frozen=True)
class StudyInputs:
    """The inputs of a study. All presets have them."""

    team: TeamSettings
    """The team. Its `budget.run_usd` is the most dollars of the study, over all its starts. It is needed if a worker
    costs money."""
    pool: Pool
    questions: StudyQuestions
    settings: StudySettings
    run: Path
    """The folder of the study."""

    @contextmanager
    def open_call_state(self, *, pays: bool = False) -> Iterator[tuple[CallState, StudyQuestions]]:
        """The call state of the study, and its questions. If there is a judge, the call state pays for its calls.

        Args:
            pays: whether something besides workers costs money.
        """
        with open_run_call_state(self.team, self.pool, self.run, pays=pays) as call_state:
            questions = self.questions
            if self.settings.judge is not None:
                questions = questions.with_judge(PoolJudge(self.pool, self.settings.judge, call_state))
            yield call_state, questions
