"""Decides from the figures of all methods what to recommend, and how many more questions would decide open cases.

The best of many methods looks better than it is. So the intervals are simultaneous: with 95 % probability all lower
ends of a family are below the true differences, and with 95 % probability all upper ends are above them (the bootstrap
of the largest t statistic; Westfall and Young 1993, section 2). So a method's bound still holds if the method is
selected after looking at the intervals. There are two families, so that few methods are tested for each claim: the
teams that may be better, and the methods that may be as good and cheaper, which are the single workers and the teams
with a capped cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from podium.evals.comparison import PlannerKind
from podium.evals.stats import Interval, accuracy_interval
from podium.evals.study.methods import MethodResult
from podium.planners.answer_matrix import Floats
from podium.types import FrozenModel

StudyVerdict = Literal["reference", "better", "cheaper", "same", "worse", "not better", "open"]
"""A method compared with the best single worker. "better": more accurate. "cheaper": at most the margin less accurate,
and at least a tenth cheaper. A team must also be cheaper than every single worker that is not worse. "same": the same
answers. "worse": less accurate. "not better": it gains less than the margin and is not cheaper. "open": there are too
few questions to say."""
MARGIN = 0.02
"""How much accuracy a method may lose and still count as good as the best single worker."""
_RESAMPLES = 2000
_ONE_SIDED = 1.645
"""The quantile of the normal distribution at 95 %. Each side counts separately: calling a method better by mistake, and
calling it worse."""
_POWER = 0.8416
"""The quantile of the normal distribution at 80 %, the probability with which an open case is decided."""
_PSEUDO_PAIRS = 4
"""Two wins and two losses that widen each interval. With fewer, an end would hold with less than 95 % if differences
are rare (tests/evals/study/test_study_decision.py)."""
_SAVING = 0.9
"""A method is cheaper than another if it costs at most this share of the other's price."""
FEWEST = 20
"""With fewer questions only the best single worker is recommended, since intervals of few questions mean little."""


_KINDS: Mapping[str, PlannerKind] = {
    "single": "single", "committee": "committee", "cascade": "cascade", "by-ratings": "chosen",
}  # fmt: skip


class StudyRow(FrozenModel):
    """The results of one method. Dollars are those of one question."""

    label: str
    choice: str
    """What the method chose on all questions, in words."""
    planner: str | None
    is_team: bool
    questions: int
    accuracy: Interval
    cost_usd: float
    difference: Interval | None
    """The method's accuracy minus the best single worker's, on the same questions. None if the method is this worker,
    or if there is only one question."""
    verdict: StudyVerdict
    more_questions: int = 0
    """How many more questions would decide an open case with a probability of 80 %, if the true difference is the
    measured one. 0 if no such number is known."""
    saves: bool = False
    """Whether the method is cheaper than the best single worker. A team must also be cheaper than every other single
    worker that is not worse."""
    note: str = ""

    @property
    def kind(self) -> PlannerKind:
        if self.planner is None:
            return "conductor"
        return _KINDS.get(self.planner.partition(":")[0], "other")


class StudyDecision(FrozenModel):
    """The rows of a study, and the recommendation."""

    rows: tuple[StudyRow, ...]
    margin: float
    detectable: float | None
    """The smallest gain of the best tried team that a study of so many questions finds with a probability of 80 %. None
    if no team was tried."""
    recommended_index: int
    """The recommended row: a method that is certainly better, else one that is as good and cheaper, else the best
    single worker."""
    cheaper_index: int | None
    """The cheapest row that is as good as the best single worker. None if there is none, or if it is recommended."""

    @property
    def reference(self) -> StudyRow:
        return self.rows[0]

    @property
    def recommended(self) -> StudyRow:
        return self.rows[self.recommended_index]

    @property
    def cheaper(self) -> StudyRow | None:
        return None if self.cheaper_index is None else self.rows[self.cheaper_index]


def decide(measured: Sequence[MethodResult], *, margin: float = MARGIN) -> StudyDecision:
    """Compare all methods with the first, the best single worker.

    Args:
        measured: the results on the same questions in the same order. A method may lack some questions. Single workers
            come first.
        margin: see `MARGIN`.
    """
    reference, *others = measured
    difference_QM = np.stack([m.score_Q - reference.score_Q for m in measured], axis=1)
    family_M = np.array([m.is_team and not m.is_cost_capped for m in measured])
    intervals, critical_M = _intervals_by_family(difference_QM, family_M)
    rows = [_row(reference, None, "reference")]
    # A team that is cheaper than the best single worker saves nothing if a cheaper single worker may be as good.
    rivals = [(reference, rows[0])]
    for method, interval, critical in zip(others, intervals[1:], critical_M[1:], strict=True):
        beside = rivals if method.is_team else rivals[:1]
        as_cheap = [row for rival, row in beside if not _costs_less(method, rival)]
        verdict = _verdict(method, reference, interval, margin, saves=not as_cheap)
        questions_needed = 0
        if verdict == "open" and interval is not None:
            # A capped team is never found better. It waits until the single workers that are as cheap are decided.
            waits = method.is_cost_capped and rows[0] not in as_cheap
            questions_needed = _more_questions(
                interval, critical, margin, _count(method), cheap=waits or not as_cheap
            )
            questions_needed = max([questions_needed, *(rival.more_questions for rival in as_cheap if waits)])
        rows.append(_row(method, interval, verdict, questions_needed, saves=not as_cheap))
        if not method.is_team and verdict != "worse":
            rivals.append((method, rows[-1]))
    better = [n for n, row in enumerate(rows) if row.verdict == "better"]
    least = max((_gain(rows[n]) for n in better), default=0.0) - margin
    # Of the methods that are certainly better, take the cheapest within the margin of the best.
    best = min((n for n in better if _gain(rows[n]) >= least), key=lambda n: rows[n].cost_usd, default=None)
    saving = [n for n, row in enumerate(rows) if row.verdict in ("better", "cheaper") and row.saves]
    cheaper = min(saving, key=lambda n: rows[n].cost_usd, default=None)
    recommended = next((n for n in (best, cheaper) if n is not None), 0)
    return StudyDecision(
        rows=tuple(rows),
        margin=margin,
        detectable=_detectable(measured, rows, critical_M),
        recommended_index=recommended,
        cheaper_index=None if cheaper == recommended else cheaper,
    )


def _intervals_by_family(
    difference_QM: Floats, family_M: npt.NDArray[np.bool_]
) -> tuple[list[Interval | None], Floats]:
    intervals: list[Interval | None] = [None] * len(family_M)
    critical_M = np.full(len(family_M), _ONE_SIDED)
    for number_F in (np.flatnonzero(family_M), np.flatnonzero(~family_M)):
        if len(number_F):
            bounds, critical_M[number_F] = simultaneous_intervals(difference_QM[:, number_F])
            for number, interval in zip(number_F, bounds, strict=True):
                intervals[number] = interval
    return intervals, critical_M


def simultaneous_intervals(difference_QM: Floats) -> tuple[list[Interval | None], float]:
    """Intervals of M mean differences, and their factor (t). All lower ends hold together with 95 % probability, and so
    do all upper ends.

    Whole questions are resampled, so that methods stay paired. Two wins and two losses are added to the squares of each
    method, but not to its mean (after Agresti and Min 2005), since a small study seldom sees a gain on few questions,
    and one difference or none says little about their true number. A method has no interval if it was measured on one
    question.

    Args:
        difference_QM: the differences, from -1 to 1. NaN if the method was not measured on the question.
    """
    known_QM = (~np.isnan(difference_QM)).astype(float)
    filled_QM = np.nan_to_num(difference_QM)
    count_M = known_QM.sum(axis=0)
    mean_M, error_M = _means_and_errors(filled_QM.sum(axis=0), (filled_QM**2).sum(axis=0), count_M)
    rng = np.random.default_rng(list(b"study/intervals"))
    questions = len(difference_QM)
    weights_BQ = rng.multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLES).astype(float)
    means_BM, errors_BM = _means_and_errors(
        weights_BQ @ filled_QM, weights_BQ @ filled_QM**2, weights_BQ @ known_QM
    )
    t_BM = (means_BM - mean_M) / errors_BM
    critical = max(_ONE_SIDED, *(float(np.quantile(side.max(axis=1), 0.95)) for side in (t_BM, -t_BM)))
    half_M = critical * error_M
    return [
        Interval(mean=float(mean), low=float(mean - half), high=float(mean + half)) if count > 1 else None
        for mean, half, count in zip(mean_M, half_M, count_M, strict=True)
    ], critical


def _means_and_errors(sums: Floats, squares: Floats, counts: Floats) -> tuple[Floats, Floats]:
    means = sums / np.maximum(counts, 1)
    spread = np.maximum(squares - sums * means, 0)
    return means, np.sqrt((spread + _PSEUDO_PAIRS) / np.maximum(counts * (counts - 1), 1))


def _verdict(
    method: MethodResult, reference: MethodResult, interval: Interval | None, margin: float, *, saves: bool
) -> StudyVerdict:
    if interval is None or _count(method) < FEWEST:
        return "open"
    if method.chosen is not None and reference.chosen is not None and not _differ(method, reference):
        return "same"
    if interval.low > 0 and method.is_team and not method.is_cost_capped:
        return "better"
    if saves and interval.low >= -margin:
        return "cheaper"
    if interval.high < 0:
        return "worse"
    return "not better" if interval.high <= margin and not saves else "open"


def _differ(method: MethodResult, reference: MethodResult) -> bool:
    return bool((method.score_Q != reference.score_Q).any() or (method.cost_Q != reference.cost_Q).any())


def _costs_less(method: MethodResult, other: MethodResult) -> bool:
    """Whether the method costs at most `_SAVING` of the other method, and certainly less."""
    saved_Q = other.cost_Q - method.cost_Q
    measured = ~np.isnan(saved_Q)
    saved = saved_Q[measured]
    if len(saved) < 2:
        return False
    error = float(saved.std(ddof=1)) / math.sqrt(len(saved))
    price = float(other.cost_Q[measured].mean())
    return float(method.cost_Q[measured].mean()) <= _SAVING * price and saved.mean() > 1.96 * error


def _more_questions(
    interval: Interval, critical: float, margin: float, questions: int, *, cheap: bool
) -> int:
    """How many more questions would settle an open case. 0 if no number would.

    An expensive method that gains at least half the margin has to be shown better than the reference. Any other
    expensive method has to be shown to gain less than the margin. A cheap method that loses at most half the margin has
    to be shown to lose less than the margin. Any other cheap method has to be shown worse than the reference.
    """
    threshold = -margin / 2 if cheap else margin / 2
    bound = threshold - margin / 2 if interval.mean >= threshold else threshold + margin / 2
    gap = abs(interval.mean - bound)
    if gap == 0:
        return 0
    # The squared error of N questions is about variance / N + pseudo-pairs / N². This is solved for N.
    error = (interval.high - interval.mean) / critical
    variance = max(0.0, error**2 * questions - _PSEUDO_PAIRS / questions)
    width = ((critical + _POWER) / gap) ** 2
    wanted = (width * variance + math.sqrt((width * variance) ** 2 + 4 * width * _PSEUDO_PAIRS)) / 2
    return max(1, math.ceil(wanted) - questions)


def _detectable(
    measured: Sequence[MethodResult], rows: Sequence[StudyRow], critical_M: Floats
) -> float | None:
    teams = [
        (row, interval, float(critical))
        for method, row, critical in zip(measured, rows, critical_M, strict=True)
        if method.is_team
        and not method.is_cost_capped
        and row.verdict != "same"
        and (interval := row.difference) is not None
    ]
    if not teams:
        return None
    _, interval, critical = max(teams, key=lambda team: team[0].accuracy.mean)
    return (critical + _POWER) / critical * (interval.high - interval.mean)


def _row(
    method: MethodResult,
    difference: Interval | None,
    verdict: StudyVerdict,
    needed: int = 0,
    *,
    saves: bool = False,
) -> StudyRow:
    scores = method.score_Q[~np.isnan(method.score_Q)]
    return StudyRow(
        label=method.name,
        choice=method.choice,
        planner=None if method.chosen is None else method.chosen.planner.name,
        is_team=method.is_team,
        questions=len(scores),
        accuracy=accuracy_interval(scores.tolist(), rollouts=len(scores)),
        cost_usd=float(method.cost_Q[~np.isnan(method.score_Q)].mean()),
        difference=difference,
        verdict=verdict,
        more_questions=needed,
        saves=saves,
        note=method.note,
    )


def _count(method: MethodResult) -> int:
    return int((~np.isnan(method.score_Q)).sum())


def _gain(row: StudyRow) -> float:
    return row.difference.mean if row.difference is not None else 0.0
