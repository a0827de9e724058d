"""Decides from the figures of all methods what to recommend, and how many more questions would decide the rest.

The best of many methods looks better than it is. So the intervals are simultaneous: with 95 % probability all lower
ends of a family lie below the true differences, and as often all upper ends above them (the bootstrap of the largest t
statistic; Westfall and Young 1993, section 2). A method may be selected after looking at them, and its bound still
holds. There are two families, so that few methods are tested for each claim: the teams that may be better, and the
methods that may be as good and cheaper, which are the single workers and the thrifty teams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from podium.evals.stats import Interval, accuracy_interval
from podium.ratings.answers import Floats
from podium.study.crossfit import Measured

Verdict = Literal["reference", "better", "cheaper", "same", "worse", "not better", "open"]
"""Beside the best single worker: "better": more accurate. "cheaper": at most the margin less accurate, and at least a
tenth cheaper. "same": the same answers. "worse": less accurate. "not better": it gains less than the margin, and is not
cheaper. "open": too few questions to say."""
MARGIN = 0.02
"""How much accuracy may be lost, at most, for a method to count as good as the best single worker."""
_RESAMPLES = 2000
_ONE_SIDED = 1.645
"""The quantile of the normal distribution at 95 %: to call a method better by mistake is one mistake, to call it worse
another."""
_POWER = 0.8416
"""The quantile of the normal distribution at 80 %: an open question is decided with this probability."""
_SAVING = 0.9
"""A method is cheaper if it costs at most this share of the best single worker's price."""
FEWEST = 20
"""With fewer questions nothing is recommended but the best single worker: intervals of so few mean little."""


@dataclass(frozen=True)
class Finding:
    """What was found of one method."""

    method: Measured
    questions: int
    accuracy: Interval
    cost_usd: float
    """Dollars a question."""
    difference: Interval | None
    """Its accuracy minus that of the best single worker, on the same questions; None: it is this worker, or there is
    one question."""
    verdict: Verdict
    more_questions: int = 0
    """How many more questions would decide an open case, with a probability of 80 % if the difference is as seen; 0: no
    number is known that would."""


@dataclass(frozen=True)
class Decision:
    """The findings of a study, and the recommendation."""

    findings: tuple[Finding, ...]
    """The first is the best single worker's."""
    margin: float
    detectable: float
    """The smallest gain of the best team tried that a study of so many questions finds with a probability of 80 %; NaN:
    no team was tried."""

    @property
    def reference(self) -> Finding:
        """The best single worker."""
        return self.findings[0]

    @property
    def recommended(self) -> Finding:
        """What to use: what is better for certain, else what is as good and cheaper, else the best single worker."""
        return self.better or self.cheaper or self.reference

    @property
    def better(self) -> Finding | None:
        """Of the methods that are better for certain and within the margin of the best: the cheapest. None: none is."""
        found = [f for f in self.findings if f.verdict == "better"]
        most = max(map(_gain, found), default=0.0)
        return min(
            (f for f in found if _gain(f) >= most - self.margin), key=lambda f: f.cost_usd, default=None
        )

    @property
    def cheaper(self) -> Finding | None:
        """The cheapest method that is as good; None: none is. A better method that is cheaper, too, counts."""
        limit = _SAVING * self.reference.cost_usd
        found = [f for f in self.findings if f.verdict in ("better", "cheaper") and f.cost_usd <= limit]
        return min(found, key=lambda f: f.cost_usd, default=None)


def decide(measured: Sequence[Measured], *, margin: float = MARGIN) -> Decision:
    """Compare all methods with the first, the best single worker.

    Args:
        measured: on the same questions in the same order; a method may lack some of them.
        margin: as `MARGIN`.
    """
    reference, *others = measured
    difference_QM = np.stack([m.score_Q - reference.score_Q for m in measured], axis=1)
    saved_QM = np.stack([reference.cost_Q - m.cost_Q for m in measured], axis=1)
    family_M = np.array([m.is_team and not m.is_thrifty for m in measured])
    intervals, critical_M = _intervals_by_family(difference_QM, family_M)
    findings = [_finding(reference, reference, None, "reference")]
    for number, method in enumerate(others, start=1):
        interval = intervals[number]
        verdict = _verdict(method, reference, interval, saved_QM[:, number], margin)
        spread = float(np.nanstd(difference_QM[:, number], ddof=1)) if interval else 0.0
        more = 0
        if verdict == "open" and interval is not None:
            cheap = _is_cheaper(method, reference, saved_QM[:, number])
            more = _more_questions(
                interval.mean, spread, critical_M[number], margin, _count(method), cheap=cheap
            )
        findings.append(_finding(method, reference, interval, verdict, more))
    return Decision(tuple(findings), margin, _detectable(findings, difference_QM, critical_M))


def _intervals_by_family(
    difference_QM: Floats, family_M: npt.NDArray[np.bool_]
) -> tuple[list[Interval | None], Floats]:
    """The intervals of both families, and [M]: their factors."""
    intervals: list[Interval | None] = [None] * len(family_M)
    critical_M = np.full(len(family_M), _ONE_SIDED)
    for number_F in (np.flatnonzero(family_M), np.flatnonzero(~family_M)):
        if len(number_F):
            found, critical_M[number_F] = simultaneous_intervals(difference_QM[:, number_F])
            for number, interval in zip(number_F, found, strict=True):
                intervals[number] = interval
    return intervals, critical_M


def simultaneous_intervals(difference_QM: Floats) -> tuple[list[Interval | None], float]:
    """Intervals of M mean differences, and their factor (t). All lower ends hold together with 95 % probability, and so
    do all upper ends.

    Whole questions are resampled, so that methods stay paired. NaN: the method was not measured on the question. A
    method has no interval if it was measured on one question; without any difference its interval has no width.
    """
    known_QM = ~np.isnan(difference_QM)
    filled_QM = np.where(known_QM, difference_QM, 0.0)
    count_M = known_QM.sum(axis=0)
    mean_M = filled_QM.sum(axis=0) / np.maximum(count_M, 1)
    squares_M = (np.where(known_QM, difference_QM - mean_M, 0.0) ** 2).sum(axis=0)
    error_M = np.sqrt(squares_M / np.maximum(count_M - 1, 1) / np.maximum(count_M, 1))
    differs = (error_M > 0) & (count_M > 1)
    critical = _ONE_SIDED
    if differs.any():
        rng = np.random.default_rng(list(b"study/intervals"))
        questions = len(difference_QM)
        weights_BQ = rng.multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLES)
        drawn_BM = np.maximum(weights_BQ @ known_QM, 1)
        means_BM = (weights_BQ @ filled_QM) / drawn_BM
        squares_BM = (weights_BQ @ filled_QM**2) / drawn_BM - means_BM**2
        errors_BM = np.sqrt(np.maximum(squares_BM, 0) / np.maximum(drawn_BM - 1, 1))
        # A sample that happens to have no spread has no t: the spread of all questions stands for it.
        errors_BM = np.where(errors_BM > 0, errors_BM, error_M)
        t_BM = (means_BM - mean_M)[:, differs] / errors_BM[:, differs]
        critical = max(critical, *(float(np.quantile(side.max(axis=1), 0.95)) for side in (t_BM, -t_BM)))
    half_M = critical * error_M
    return [
        Interval(mean=float(mean), low=float(mean - half), high=float(mean + half)) if count > 1 else None
        for mean, half, count in zip(mean_M, half_M, count_M, strict=True)
    ], critical


def _verdict(
    method: Measured, reference: Measured, interval: Interval | None, saved_Q: Floats, margin: float
) -> Verdict:
    if interval is None or _count(method) < FEWEST:
        return "open"
    if method.chosen is not None and reference.chosen is not None and not _differ(method, reference):
        return "same"
    if interval.low > 0 and method.is_team and not method.is_thrifty:
        return "better"
    cheaper = _is_cheaper(method, reference, saved_Q)
    if cheaper and interval.low >= -margin:
        return "cheaper"
    if interval.high < 0:
        return "worse"
    return "not better" if interval.high <= margin and not cheaper else "open"


def _differ(method: Measured, reference: Measured) -> bool:
    return bool((method.score_Q != reference.score_Q).any() or (method.cost_Q != reference.cost_Q).any())


def _is_cheaper(method: Measured, reference: Measured, saved_Q: Floats) -> bool:
    """Whether it costs at most `_SAVING` of the reference, and less for certain."""
    saved = saved_Q[~np.isnan(saved_Q)]
    error = float(saved.std(ddof=1)) / math.sqrt(len(saved))
    measured = ~np.isnan(method.cost_Q)
    price = float(reference.cost_Q[measured].mean())
    return float(method.cost_Q[measured].mean()) <= _SAVING * price and saved.mean() > 1.96 * error


def _more_questions(
    difference: float, spread: float, critical: float, margin: float, questions: int, *, cheap: bool
) -> int:
    """How many more questions would settle an open case; 0: no number would.

    A dear method that gains half the margin or more has to be shown better than the reference, any other dear one to
    gain less than the margin. A cheap method that loses at most half the margin has to be shown to lose less than the
    margin, any other cheap one to be worse than the reference.
    """
    threshold = -margin / 2 if cheap else margin / 2
    bound = threshold - margin / 2 if difference >= threshold else threshold + margin / 2
    gap = abs(difference - bound)
    if gap == 0:
        return 0
    wanted = ((critical + _POWER) * spread / gap) ** 2
    return max(1, math.ceil(wanted) - questions)


def _detectable(findings: Sequence[Finding], difference_QM: Floats, critical_M: Floats) -> float:
    teams = [
        number
        for number, f in enumerate(findings)
        if f.method.is_team and not f.method.is_thrifty and f.verdict != "same" and f.difference
    ]
    if not teams:
        return float("nan")
    best = max(teams, key=lambda number: findings[number].accuracy.mean)
    spread = float(np.nanstd(difference_QM[:, best], ddof=1))
    return float(critical_M[best] + _POWER) * spread / math.sqrt(findings[best].questions)


def _finding(
    method: Measured, reference: Measured, difference: Interval | None, verdict: Verdict, more: int = 0
) -> Finding:
    known = ~np.isnan(method.score_Q)
    return Finding(
        method,
        questions=int(known.sum()),
        accuracy=accuracy_interval(method.score_Q[known].tolist(), rollouts=int(known.sum())),
        cost_usd=float(method.cost_Q[known].mean()),
        difference=difference,
        verdict=verdict,
        more_questions=more,
    )


def _count(method: Measured) -> int:
    return int((~np.isnan(method.score_Q)).sum())


def _gain(finding: Finding) -> float:
    return finding.difference.mean if finding.difference is not None else 0.0
