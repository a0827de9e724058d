"""The result of a study: one JSON file, from which its page is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from podium.evals.json_file import JsonFile
from podium.evals.stats import Interval
from podium.study.decision import Decision, Finding, Verdict
from podium.study.diversity import Diversity
from podium.study.questions import JudgedBy
from podium.types import Value

RESULT = "study.json"
"""Its name in a study's folder."""


class StudyRow(Value):
    """One method. Dollars are a question's."""

    name: str
    choice: str
    """What the method chose on all questions, in words."""
    planner: str | None
    """The name of its planner; None: a Conductor."""
    is_team: bool
    questions: int
    accuracy: Interval
    cost_usd: float
    difference: Interval | None
    """Its accuracy minus that of the best single worker, paired. Its interval is that of `podium.study.decision`."""
    verdict: Verdict
    more_questions: int = 0
    """How many more questions would decide it, if it is open."""
    note: str = ""


class Bounds(Value):
    """What the pool's diversity allows at most (`podium.study.diversity`)."""

    any_right: Interval
    none_right: float
    repeated: int
    any_right_of_repeated: float | None
    again: Interval | None
    best_of_repeated: float | None

    @classmethod
    def of(cls, found: Diversity) -> Bounds:
        """The bounds as they are stored."""
        return cls(
            any_right=found.any_right,
            none_right=found.none_right,
            repeated=found.repeated,
            any_right_of_repeated=_known(found.any_right_of_repeated),
            again=found.again,
            best_of_repeated=_known(found.best_of_repeated),
        )


class Study(JsonFile):
    """All that a study found."""

    description: ClassVar[str] = "a study"

    tasks: str
    """The questions' name."""
    questions: int
    """Questions that every worker answered."""
    judged_by: JudgedBy
    judge: str | None = None
    """The worker that judged."""
    workers: tuple[str, ...]
    rows: tuple[StudyRow, ...]
    """The first is the best single worker."""
    recommended: int
    """The number of the recommended row."""
    cheaper: int | None
    """The number of the cheapest row that is as good as the best single worker; None: there is none."""
    margin: float
    detectable: float | None
    """The smallest gain of the best team that a study of so many questions is likely to find (80 %)."""
    bounds: Bounds
    spent_usd: float = 0.0
    recorded: bool = False
    """Whether workers answered from a recording or a script, so that the dollars are not paid."""
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = Field(default=())
    """The settings files that serve the recommendation, and the cheaper choice if it is another one."""

    @property
    def reference(self) -> StudyRow:
        """The best single worker."""
        return self.rows[0]

    @property
    def best(self) -> StudyRow:
        """The recommended row."""
        return self.rows[self.recommended]

    @property
    def cheaper_row(self) -> StudyRow | None:
        """The cheaper choice, if it is not the recommended one."""
        return None if self.cheaper in (None, self.recommended) else self.rows[self.cheaper or 0]


def rows_of(decision: Decision) -> tuple[StudyRow, ...]:
    """The rows of a decision, in its order."""
    return tuple(map(_row, decision.findings))


def number_of(findings: Sequence[Finding], finding: Finding | None) -> int | None:
    """The place of a finding among others."""
    return next((place for place, found in enumerate(findings) if found is finding), None)


def _row(finding: Finding) -> StudyRow:
    method = finding.method
    return StudyRow(
        name=method.name,
        choice=method.choice,
        planner=None if method.chosen is None else method.chosen.planner,
        is_team=method.is_team,
        questions=finding.questions,
        accuracy=finding.accuracy,
        cost_usd=finding.cost_usd,
        difference=finding.difference,
        verdict=finding.verdict,
        more_questions=finding.more_questions,
        note=method.note,
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
