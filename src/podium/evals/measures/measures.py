"""All measures of a set of evaluations on the same questions, as one value that a report can print.

The measures are computed in the other modules of this package. A measure is None where the evaluations or their traces
lack what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.errors import UsageError
from podium.evals.evaluation import Evaluation
from podium.evals.json_file import JsonFile
from podium.evals.measures.arrays import (
    check_same_questions,
    cost_by_repeat,
    mean_over_repeats,
    right_by_repeat,
    stacked,
)
from podium.evals.measures.fronts import Front, accuracy_at, measure_front
from podium.evals.measures.gaps import Gaps, measure_gaps
from podium.evals.measures.influence import Influence, Position, measure_influence
from podium.evals.measures.plan_variety import PlanVariety, measure_variety
from podium.evals.measures.pool_channels import PoolChannels, measure_channels
from podium.evals.measures.ranking import Strength, rank_planners
from podium.evals.measures.robustness import Robustness, measure_robustness
from podium.evals.measures.spending import Spending, measure_spending
from podium.evals.stats import Interval, holm, paired_difference, permutation_test
from podium.ratings.answers import Floats
from podium.types import Value

SINGLES = "Single workers"
"""The label of their front."""


class PlannerMeasures(Value):
    """All measures of one planner."""

    label: str
    accuracy: Interval | None
    """None: no answer could be graded."""
    spending: Spending
    difference: Interval | None = None
    """The first planner's accuracy minus this one's, paired by question; None: it is the first, or one question."""
    p_value: float | None = None
    """That both are right equally often, of this pair alone; None: it is the first."""
    adjusted_p: float | None = None
    """The same, adjusted by Holm for all planners that are compared with the first."""
    singles_at_equal_usd: float | None = None
    """The accuracy that single workers give for the same dollars, where two of them are mixed at random: what a user
    would have without a planner. None: no single workers."""
    gaps: Gaps | None = None
    """None: no single workers."""
    variety: PlanVariety | None = None
    """None: no plans were run."""
    robustness: Robustness | None = None
    """None: no paraphrases."""
    influence: tuple[Influence, ...] = ()
    """Of one adversarial worker, by position; empty: not evaluated."""


class Measures(JsonFile):
    """All measures of several planners on the same questions, with the same pool."""

    description: ClassVar[str] = "the measures of an evaluation"

    questions: int
    planners: tuple[PlannerMeasures, ...]
    """In the order of the evaluations; the others are compared with the first."""
    fronts: tuple[Front, ...]
    """First that of the single workers, where there are any; then the families that the caller named; then each other
    planner by itself."""
    pool: PoolChannels | None = None
    """None: fewer than two single workers."""
    ranking: tuple[Strength, ...] = ()
    """Strongest first; empty: one planner."""


def measure(
    evaluations: Mapping[str, Evaluation],
    *,
    singles: Mapping[str, str] | None = None,
    best_single: str | None = None,
    families: Mapping[str, Sequence[str]] | None = None,
    paraphrases: Mapping[str, str] | None = None,
    attacked: Mapping[str, Mapping[Position, Evaluation]] | None = None,
) -> Measures:
    """All measures of these evaluations.

    Args:
        evaluations: by label, all on the same questions; the others are compared with the first. Repeats and seeds of
            one planner belong into one evaluation (`merge_evaluations`).
        singles: from a worker's name to the label of the evaluation of this worker alone. None: the evaluations whose
            planner is `single:WORKER`.
        best_single: the worker that was chosen as the best one on other questions. None: the most accurate one on
            these, which flatters it.
        families: label of a front -> labels of its planners: one method at several settings, say. Each planner that is
            in no family and is no single worker is a front by itself.
        paraphrases: from a paraphrase's task id to that of the original question.
        attacked: label -> position of the adversary -> the evaluation with it.

    Raises:
        UsageError: there are no evaluations, they are on different questions, or a label or worker is not known.
    """
    if not evaluations:
        raise UsageError("There are no evaluations to measure: give at least one.")
    check_same_questions(evaluations.values())
    measured = _Measured.of(evaluations, singles, best_single)
    first = next(iter(evaluations))
    differences = [measured.difference(first, label) for label in evaluations]
    adjusted = holm([p for _, p in differences])
    planners = tuple(
        PlannerMeasures(
            label=label,
            accuracy=evaluation.accuracy if evaluation.right else None,
            spending=measure_spending(evaluation),
            difference=difference,
            p_value=p,
            adjusted_p=adjusted_p,
            singles_at_equal_usd=measured.singles_at(evaluation.cost_usd),
            gaps=measured.gaps(label),
            variety=measure_variety(evaluation),
            robustness=measure_robustness(evaluation, paraphrases) if paraphrases else None,
            influence=tuple(
                measure_influence(evaluation, after, position)
                for position, after in (attacked or {}).get(label, {}).items()
            ),
        )
        for (label, evaluation), (difference, p), adjusted_p in zip(
            evaluations.items(), differences, adjusted, strict=True
        )
    )
    return Measures(
        questions=len(next(iter(evaluations.values())).by_question),
        planners=planners,
        fronts=measured.fronts(families or {}, evaluations[first].cost_usd),
        pool=measured.pool(),
        ranking=measured.ranking(),
    )


@dataclass(frozen=True)
class _Measured:
    """The evaluations as arrays."""

    right_PQR: Mapping[str, Floats]
    accuracy_PQ: Mapping[str, Floats]
    """Share of right answers by question; NaN: none was graded."""
    cost_PQ: Mapping[str, Floats]
    singles: Mapping[str, str]
    """Worker -> label."""
    best: str | None
    """The best single worker; None: there are none."""

    @classmethod
    def of(
        cls, evaluations: Mapping[str, Evaluation], singles: Mapping[str, str] | None, best: str | None
    ) -> _Measured:
        if singles is None:
            singles = {
                evaluation.planner.removeprefix("single:"): label
                for label, evaluation in evaluations.items()
                if evaluation.planner.startswith("single:")
            }
        unknown = [label for label in singles.values() if label not in evaluations]
        if unknown or (best is not None and best not in singles):
            raise UsageError(
                f"{unknown[0] if unknown else best!r} is the label or name of no single worker that was evaluated; "
                f"known: {', '.join(singles) or 'none'}."
            )
        right = {label: right_by_repeat(evaluation) for label, evaluation in evaluations.items()}
        accuracy = {label: mean_over_repeats(right_QR) for label, right_QR in right.items()}
        cost = {label: mean_over_repeats(cost_by_repeat(one)) for label, one in evaluations.items()}
        if best is None and singles:
            best = max(singles, key=lambda worker: _mean(accuracy[singles[worker]]))
        return cls(right, accuracy, cost, singles, best)

    def difference(self, first: str, label: str) -> tuple[Interval | None, float | None]:
        """The first planner's lead over another, and its p-value."""
        both_2Q = np.stack([self.accuracy_PQ[first], self.accuracy_PQ[label]])
        both_2Q = both_2Q[:, ~np.isnan(both_2Q).any(axis=0)]
        if label == first or not both_2Q.size:
            return None, None
        pair = both_2Q[0].tolist(), both_2Q[1].tolist()
        return paired_difference(*pair), permutation_test(*pair)

    def singles_at(self, usd: float) -> float | None:
        """The accuracy of single workers at these dollars."""
        points = [
            (float(self.cost_PQ[label].mean()), _mean(self.accuracy_PQ[label]))
            for label in self.singles.values()
        ]
        return accuracy_at(points, usd) if points else None

    def gaps(self, label: str) -> Gaps | None:
        if self.best is None:
            return None
        return measure_gaps(
            self.right_PQR[label], self._right_of_singles(), list(self.singles).index(self.best)
        )

    def pool(self) -> PoolChannels | None:
        if self.best is None or len(self.singles) < 2:
            return None
        return measure_channels(
            [*self.singles], self._right_of_singles(), best=list(self.singles).index(self.best)
        )

    def _right_of_singles(self) -> Floats:
        """[W, Q, R]"""
        return stacked([self.right_PQR[label] for label in self.singles.values()])

    def ranking(self) -> tuple[Strength, ...]:
        graded_PQ = np.stack([*self.accuracy_PQ.values()])
        graded_PQ = graded_PQ[:, ~np.isnan(graded_PQ).any(axis=0)]
        return rank_planners([*self.accuracy_PQ], graded_PQ) if len(graded_PQ) > 1 and graded_PQ.size else ()

    def fronts(self, families: Mapping[str, Sequence[str]], equal_usd: float) -> tuple[Front, ...]:
        """The fronts of the single workers, of the families, and of each other planner."""
        for label in (label for members in families.values() for label in members):
            if label not in self.accuracy_PQ:
                raise UsageError(f"A family names {label!r}, which was not evaluated.")
        members = {SINGLES: [*self.singles.values()]} if self.singles else {}
        members |= {name: list(labels) for name, labels in families.items()}
        named = {label for labels in members.values() for label in labels}
        members |= {label: [label] for label in self.accuracy_PQ if label not in named}
        # Questions that any planner's answer to could not be graded are left out of all fronts, so that these compare.
        known_Q = ~np.isnan(np.stack([*self.accuracy_PQ.values()])).any(axis=0)
        if not known_Q.any():
            return ()
        right = {label: shares_Q[known_Q] for label, shares_Q in self.accuracy_PQ.items()}
        usd = {label: cost_Q[known_Q] for label, cost_Q in self.cost_PQ.items()}
        prices = [float(usd[label].mean()) for label in self.singles.values()]
        best = None if self.best is None else self.singles[self.best]
        return tuple(
            measure_front(
                name,
                labels,
                np.stack([right[label] for label in labels]),
                np.stack([usd[label] for label in labels]),
                best_single=None if best is None else (right[best], usd[best]),
                limits_usd=(min(prices), max(prices)) if prices else None,
                equal_usd=equal_usd,
            )
            for name, labels in members.items()
            if labels
        )


def _mean(shares_Q: Floats) -> float:
    return float(np.nanmean(shares_Q)) if not np.isnan(shares_Q).all() else 0.0
