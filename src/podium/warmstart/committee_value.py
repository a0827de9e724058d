"""The value of each committee of workers on each cluster of questions, from the verdicts on training questions.

With recorded answers, every committee can be tried on every question. The value on a cluster is the committee's
accuracy there minus its weighted price. A cluster has few questions, so pseudo-counts shrink the accuracy towards that
on all questions. The price is the committee's cost divided by the mean cost of one answer, times the weight of the
level of cost sensitivity. With early stopping, only the calls until the vote is certain are counted. The cluster of a
question depends only on its wording (`podium.workers.ratings`).

If a second round may follow, the value includes the gain of that round. A second round is one more worker, or a
vote of more workers together with the first answer. For each number of agreeing answers, the gain is the accuracy of
the best second round minus that of the first answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import combinations
from random import Random

import numpy as np

from podium.baselines.learned_routers import independent_votes
from podium.baselines.predictors import spread_of
from podium.ratings.answers import (
    MAX_ANSWERS,
    NO_ANSWER,
    Answers,
    Floats,
    Members,
    committee_accuracy,
    committee_cost,
    means_by,
    right_counts,
)

_SIZES = (1, 2, 3, 4, 5)
_PAIR = 2
_DIFFERENT = 3
"""Most different workers in a committee, if any worker has a second sample."""
_FIRST = (2, 3)
"""Sizes of the committees after which a second round may follow."""
_PSEUDO_COUNTS = (1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0)
"""Pseudo-counts that shrink the accuracy on a cluster towards that on all questions; cross-validation chooses one."""
_FOLDS = 5
_ALL = "all clusters"
_ANSWER_PRICE = 0.001
"""Accuracy that each further answer must add. It makes the policy learn the shortest of equally good plans."""
_TEMPERATURE = 0.002
"""A committee whose value is lower than the best by this much is drawn 1/e as often (a softmax temperature)."""


class CommitteeValues:
    """The values of all committees on all clusters. Draws committees by value.

    Args:
        answers: recorded answers to training questions.
        cluster_of: the cluster of each question, by the question's text.
        cost_weights: for each level of cost sensitivity, the accuracy that an answer at the mean price must add.
        rounds: 2: a second round may follow a committee.
        early_stop: whether a vote stops once it is certain. It counts in last rounds only. A second round, whose vote
            also sees the answer of the first, is priced as if it called all its workers.
        unseen_QW: each worker's estimated accuracy on each question, by a model that had not seen the question. With
            it a committee's accuracy on a question is the mean of two: that on the question's cluster, and the one that
            follows from these estimates if different workers err independently. None: that on the cluster alone.
    """

    def __init__(
        self,
        answers: Answers,
        cluster_of: Mapping[str, str],
        cost_weights: Sequence[float],
        rounds: int = 1,
        *,
        early_stop: bool = False,
        unseen_QW: Floats | None = None,
    ) -> None:
        self.workers = answers.workers
        self._cost_weights = tuple(cost_weights) or (0.0,)
        self._answers = answers
        clusters = [cluster_of[text] for text in answers.texts]
        self._cluster_Q = np.array(clusters)
        self._order = np.argsort(-answers.accuracy, kind="stable").tolist()
        self._plans = list(committees(answers))
        self._place = {plan: place for place, plan in enumerate(self._plans)}
        self._right_QP = np.stack([committee_accuracy(answers, plan) for plan in self._plans], axis=1)
        self._size_P = np.array([len(plan) for plan in self._plans])
        self._calls_PW = np.array([[plan.count(w) for w in range(len(self.workers))] for plan in self._plans])
        self.pseudo_count = self._best_pseudo_count()
        self._overall_P = self._right_QP.mean(axis=0)
        self._right = means_by(clusters, self._right_QP, self.pseudo_count)
        self._overall_cost_W = answers.cost
        self._cost = means_by(clusters, answers.cost_QW, _PSEUDO_COUNTS[1])
        self._early_stop_cost = self._stop_early(clusters) if early_stop else None
        self._independent_QP = None if unseen_QW is None else self._independent(unseen_QW)
        self.rounds = rounds
        # These computations are slow and are needed again and again for the same few committees.
        self._agreeing = lru_cache(maxsize=None)(answers.agreeing)
        self._right_after = lru_cache(maxsize=None)(self._compute_right_after)
        self._agreements = lru_cache(maxsize=None)(self._find_agreements)

    def draw(
        self,
        rng: Random,
        cluster: str,
        team: Sequence[str],
        *,
        level: int = 0,
        most: int = MAX_ANSWERS,
        rounds: int | None = None,
        question: str | None = None,
    ) -> tuple[str, ...]:
        """Draw a committee of the team, most often the one with the highest value.

        Its workers come in order of accuracy, the best first. A pair may come in either order.

        Args:
            team: names of workers; those that are not in the recording are ignored.
            level: of cost sensitivity.
            most: most answers.
            rounds: rounds that are left; None: all.
            question: the text of a training question. If there are estimates for single questions, the value is that on
                this question; None: it is that on the cluster.

        Raises:
            ValueError: no worker of the team is in the recording.
        """
        if not set(team) & set(self.workers):
            raise ValueError(f"none of {', '.join(team)} is in the recording")
        last = self.rounds == 1 or rounds == 1
        price_P = self._prices(cluster, team, level, most, last=last)
        value_P = self._accuracy(cluster, question) - price_P
        if not last:
            value_P = value_P + self._second_round_gain(cluster, price_P)
        return self._drawn(rng, value_P)

    def draw_next(
        self,
        rng: Random,
        cluster: str,
        team: Sequence[str],
        first_committee: Sequence[str],
        agree: int,
        *,
        level: int = 0,
        most: int = MAX_ANSWERS,
    ) -> tuple[str, ...]:
        """Draw the committee of a second round; empty: accept the answer of the first round.

        If the second committee has several workers, their vote counts the first round's answer as one more answer.

        Args:
            first_committee: the workers of the first round; a pair in its order.
            agree: how many of them gave the answer that won.
            most: most answers of the second round.
        """
        if self.rounds == 1:
            return ()
        first = tuple(self.workers.index(name) for name in first_committee)
        if len(first) > _PAIR:
            first = tuple(sorted(first, key=self._order.index))
        found = self._agreements(cluster, first).get(agree) if first in self._firsts else None
        if found is None:
            return ()
        value_P = found.right_P - self._prices(cluster, team, level, most)
        if value_P.max() <= found.accepted + _TEMPERATURE:
            return ()
        return self._drawn(rng, value_P)

    def agreeing(self, committee: Sequence[str], question: str) -> tuple[int, int]:
        """How many of a committee's answers to a training question are equal to the most frequent one, and how many
        answers there are. A worker that the committee names twice gives two answers.
        """
        members = tuple(self.workers.index(name) for name in committee)
        number = self._answers.index_of(question)
        answered = self._answers.answers_of(members)[number] != NO_ANSWER
        return int(self._agreeing(members)[number]), int(answered.sum())

    def _accuracy(self, cluster: str, question: str | None) -> Floats:
        """[P]: the accuracy of each committee on a cluster, or on one of its questions."""
        cluster_P: Floats = self._right.get(cluster, self._overall_P)
        if self._independent_QP is None or question is None:
            return cluster_P
        mean_P: Floats = (cluster_P + self._independent_QP[self._answers.index_of(question)]) / 2
        return mean_P

    def _independent(self, unseen_QW: Floats) -> Floats:
        answers = self._answers
        votes = independent_votes(
            self._plans, partial(right_counts, answers), self._right_QP, samples=answers.fewest_samples
        )
        right_QP: Floats = votes(unseen_QW, spread_of(unseen_QW, answers.score_QW))
        return right_QP

    def _drawn(self, rng: Random, value_P: Floats) -> tuple[str, ...]:
        weights_P = np.exp((value_P - value_P.max()) / _TEMPERATURE)
        (plan,) = rng.choices(self._plans, weights_P.tolist())
        return tuple(self.workers[worker] for worker in plan)

    def _prices(
        self, cluster: str, team: Sequence[str], level: int, most: int, *, last: bool = False
    ) -> Floats:
        """The accuracy that each committee must add to be worth its price.

        It is infinite for a committee that is too large or has a worker outside the team.
        """
        cost_W = self._cost.get(cluster, self._overall_cost_W)
        spent_P = self._calls_PW @ cost_W
        if last and self._early_stop_cost is not None:
            spent_P = self._early_stop_cost.get(cluster, self._early_stop_cost[_ALL])
        present_W = np.array([worker in team for worker in self.workers])
        usual = max(float(cost_W[present_W].mean()), 1e-12)
        price_P = self._cost_weights[level] * spent_P / usual + _ANSWER_PRICE * self._size_P
        return np.where(self._calls_PW[:, ~present_W].any(axis=1) | (self._size_P > most), np.inf, price_P)

    def _stop_early(self, clusters: Sequence[str]) -> dict[str, Floats]:
        """The cost of each committee when its vote stops early, by cluster and over all questions."""
        price_QW = np.stack([self._cost[cluster] for cluster in clusters])
        spent_QP = np.stack(
            [committee_cost(self._answers, plan, early_stop=True, price_QW=price_QW) for plan in self._plans],
            axis=1,
        )
        return means_by(clusters, spent_QP, _PSEUDO_COUNTS[1]) | {_ALL: spent_QP.mean(axis=0)}

    def _second_round_gain(self, cluster: str, price_P: Floats) -> Floats:
        """The accuracy that a second round adds to each committee."""
        gain_P = np.zeros(len(self._plans))
        for first in self._firsts:
            place = self._place[first]
            if np.isfinite(price_P[place]):
                gain_P[place] = sum(
                    found.share * max(0.0, float((found.right_P - price_P).max() - found.accepted))
                    for found in self._agreements(cluster, first).values()
                )
        return gain_P

    @cached_property
    def _firsts(self) -> list[Members]:
        return [plan for plan in self._plans if len(plan) in _FIRST and len(set(plan)) == len(plan)]

    def _find_agreements(self, cluster: str, first: Members) -> Mapping[int, _Agreement]:
        """For each number of agreeing answers of the first committee, the accuracy of second-round committees."""
        agree_Q = self._agreeing(first)
        cluster_Q = self._cluster_Q == cluster
        # The first column is the accuracy of the first round's own answer.
        right_QP = np.column_stack([self._right_QP[:, self._place[first]], self._right_after(first)])
        buckets = {}
        for agree in np.unique(agree_Q):
            all_Q = agree_Q == agree
            own_Q = all_Q & cluster_Q
            overall_P = right_QP[all_Q].mean(axis=0)
            right_P = (right_QP[own_Q].sum(axis=0) + self.pseudo_count * overall_P) / (
                own_Q.sum() + self.pseudo_count
            )
            share = (own_Q.sum() + self.pseudo_count * all_Q.mean()) / (cluster_Q.sum() + self.pseudo_count)
            buckets[int(agree)] = _Agreement(float(share), float(right_P[0]), right_P[1:])
        return buckets

    def _compute_right_after(self, first: Members) -> Floats:
        """[Q, P]: the accuracy of each committee in the round after the committee `first`."""
        later = self._answers.after(first)
        right_QP = self._right_QP.copy()
        for place, plan in enumerate(self._plans):
            if len(plan) > 1:
                # The answer of the first round is shown first.
                right_QP[:, place] = committee_accuracy(later, (len(self.workers), *plan))
        return right_QP

    def _best_pseudo_count(self) -> float:
        """Choose the pseudo-count by five-fold cross-validation: four folds give the values, the fifth tests the
        choices."""
        fold_Q = np.array([Random(f"fold/{text}").randrange(_FOLDS) for text in self._answers.texts])
        earned = dict.fromkeys(_PSEUDO_COUNTS, 0.0)
        for fold in range(_FOLDS):
            known_Q, left_Q = fold_Q != fold, fold_Q == fold
            if not known_Q.any() or not left_Q.any():
                continue
            overall_P = self._right_QP[known_Q].mean(axis=0)
            for cluster in np.unique(self._cluster_Q[left_Q]):
                own_QP = self._right_QP[known_Q & (self._cluster_Q == cluster)]
                right_P = self._right_QP[left_Q & (self._cluster_Q == cluster)].sum(axis=0)
                for pseudo_count in _PSEUDO_COUNTS:
                    table_P = (own_QP.sum(axis=0) + pseudo_count * overall_P) / (len(own_QP) + pseudo_count)
                    earned[pseudo_count] += float(right_P[(table_P - _ANSWER_PRICE * self._size_P).argmax()])
        return max(earned, key=lambda pseudo_count: earned[pseudo_count])


@dataclass(frozen=True, slots=True)
class _Agreement:
    """The questions of a cluster on which a given number of the first committee's answers agree."""

    share: float
    """Their share of the cluster's questions."""
    accepted: float
    """Accuracy of the first round's answer on them."""
    right_P: Floats
    """Accuracy of each committee on them in a second round."""


def committees(answers: Answers) -> Iterator[Members]:
    """All committees that are tried.

    If every worker has one sample: all with up to five different workers. Otherwise: all with up to three different
    workers and up to five answers, in which a worker answers at most as often as it has samples.
    """
    order = np.argsort(-answers.accuracy, kind="stable").tolist()
    for size in _SIZES:
        for different in range(math.ceil(size / answers.samples), min(size, len(order)) + 1):
            if different > _DIFFERENT and answers.samples > 1:
                continue
            for workers in combinations(order, different):
                for extra in _spread(size - different, different, answers.samples - 1):
                    if any(1 + more > answers.samples_of(w) for w, more in zip(workers, extra, strict=True)):
                        continue
                    yield tuple(w for w, more in zip(workers, extra, strict=True) for _ in range(1 + more))
                if size == different == _PAIR:
                    yield workers[::-1]  # If the two answers differ, the first wins: the order counts.


def _spread(count: int, places: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to distribute `count` over `places` that hold at most `most` each."""
    if places == 0:
        if count == 0:
            yield ()
        return
    for here in range(min(count, most) + 1):
        for rest in _spread(count - here, places - 1, most):
            yield (here, *rest)
