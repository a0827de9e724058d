"""The value of each committee of workers on each cluster of questions, by the verdicts on training questions.

With recorded answers, every committee can be tried on every question. Its value on a cluster is its accuracy there,
shrunk towards its accuracy on all questions by pseudo-counts since a cluster has few questions, minus its price,
weighted by the level of cost sensitivity. A price is counted in answers: the mean cost of one answer to a question.
With early stopping, a committee costs what is called until its vote is certain.
The wording of a question alone says which cluster it belongs to (`podium.workers.ratings`).

Where a second round may follow, a committee's value includes what that round adds: for each number of workers that
agree, whether one more worker, or a vote of other workers together with the first answer, is right more often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from random import Random

import numpy as np

from podium.ratings.answers import MAX_ANSWERS, NO_ANSWER, Answers, Floats, Members, means_by, spent

_SIZES = (1, 2, 3, 4, 5)
_PAIR = 2
_DIFFERENT = 3
"""Different workers of a committee at most, where anybody has a second sample."""
_FIRST = (2, 3)
"""Sizes of committees that a second round may follow."""
_TRUSTS = (1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0)
"""Pseudo-counts that shrink the accuracy on a cluster towards that on all questions; cross-validation chooses one."""
_FOLDS = 5
_ALL = "all kinds"
_ANSWER = 0.001
"""Accuracy that each further answer must add, so that of plans that do as well the shortest is taught."""
_SHARP = 0.002
"""Accuracy by which a committee must be behind the best to be drawn 1/e as often."""


class CommitteeValues:
    """A table of kinds and committees.

    Args:
        answers: of training questions.
        kind_of: by text.
        cost_weights: accuracy that an answer at the mean price must bring, at each level.
        rounds: 2: a second round may follow a committee.
        early_stop: whether votes stop once they are certain, where no other round may follow. What a second round
            costs, whose vote sees the answer of the first, is counted as if it asked everybody.
    """

    def __init__(
        self,
        answers: Answers,
        kind_of: Mapping[str, str],
        cost_weights: Sequence[float],
        rounds: int = 1,
        *,
        early_stop: bool = False,
    ) -> None:
        self.workers = answers.workers
        self._cost_weights = tuple(cost_weights) or (0.0,)
        self._answers = answers
        kinds = [kind_of[text] for text in answers.texts]
        self._kind_Q = np.array(kinds)
        self._order = np.argsort(-answers.accuracy, kind="stable").tolist()
        self._plans = list(committees(answers))
        self._place = {plan: place for place, plan in enumerate(self._plans)}
        self._right_QP = np.stack([right(answers, plan) for plan in self._plans], axis=1)
        self._size_P = np.array([len(plan) for plan in self._plans])
        self._asks_PW = np.array([[plan.count(w) for w in range(len(self.workers))] for plan in self._plans])
        self.trust = self._best_trust()
        self._overall_P = self._right_QP.mean(axis=0)
        self._right = means_by(kinds, self._right_QP, self.trust)
        self._usual_W = answers.cost
        self._cost = means_by(kinds, answers.cost_QW, _TRUSTS[1])
        self._stopped = self._stop_early(kinds) if early_stop else None
        self.rounds = rounds
        # They take a while, and are asked again and again of the same few committees.
        self._agreeing = lru_cache(maxsize=None)(answers.agreeing)
        self._following = lru_cache(maxsize=None)(self._right_after)
        self._found = lru_cache(maxsize=None)(self._find)

    def draw(
        self,
        rng: Random,
        kind: str,
        team: Sequence[str],
        *,
        level: int = 0,
        most: int = MAX_ANSWERS,
        rounds: int | None = None,
    ) -> tuple[str, ...]:
        """A committee of the team, most often the one that is worth most; its best worker first.

        Args:
            team: names; those that are not of the recording are passed over.
            most: answers at most.
            rounds: that are left; None: all.

        Raises:
            ValueError: nobody of the team is of the recording.
        """
        if not set(team) & set(self.workers):
            raise ValueError(f"none of {', '.join(team)} is of the recording")
        last = self.rounds == 1 or rounds == 1
        price_P = self._prices(kind, team, level, most, last=last)
        worth_P = self._right.get(kind, self._overall_P) - price_P
        if not last:
            worth_P = worth_P + self._mended(kind, price_P)
        return self._drawn(rng, worth_P)

    def draw_next(
        self,
        rng: Random,
        kind: str,
        team: Sequence[str],
        asked: Sequence[str],
        agree: int,
        *,
        level: int = 0,
        most: int = MAX_ANSWERS,
    ) -> tuple[str, ...]:
        """Who answers in a second round; empty: the answer of the first is accepted.

        Where several answer, their vote counts the answer of the first round as one more.

        Args:
            asked: the committee of the first round; a pair in its order.
            agree: how many of it gave the answer that won.
            most: answers at most.
        """
        if self.rounds == 1:
            return ()
        first = tuple(self.workers.index(name) for name in asked)
        if len(first) > _PAIR:
            first = tuple(sorted(first, key=self._order.index))
        found = self._found(kind, first).get(agree) if first in self._firsts else None
        if found is None:
            return ()
        worth_P = found.right_P - self._prices(kind, team, level, most)
        if worth_P.max() <= found.accepted + _SHARP:
            return ()
        return self._drawn(rng, worth_P)

    def agreeing(self, asked: Sequence[str], question: str) -> tuple[int, int]:
        """How many answers of a committee to a training question are the most frequent one, and how many there are.

        Who stands there twice gives two.
        """
        members = tuple(self.workers.index(name) for name in asked)
        number = self._answers.number(question)
        answered = self._answers.given(members)[number] != NO_ANSWER
        return int(self._agreeing(members)[number]), int(answered.sum())

    def _drawn(self, rng: Random, worth_P: Floats) -> tuple[str, ...]:
        weights_P = np.exp((worth_P - worth_P.max()) / _SHARP)
        (plan,) = rng.choices(self._plans, weights_P.tolist())
        return tuple(self.workers[worker] for worker in plan)

    def _prices(self, kind: str, team: Sequence[str], level: int, most: int, *, last: bool = False) -> Floats:
        """Accuracy that a committee must bring; infinite where it is not of the team, or too large."""
        cost_W = self._cost.get(kind, self._usual_W)
        spent_P = self._asks_PW @ cost_W
        if last and self._stopped is not None:
            spent_P = self._stopped.get(kind, self._stopped[_ALL])
        present_W = np.array([worker in team for worker in self.workers])
        usual = max(float(cost_W[present_W].mean()), 1e-12)
        price_P = self._cost_weights[level] * spent_P / usual + _ANSWER * self._size_P
        return np.where(self._asks_PW[:, ~present_W].any(axis=1) | (self._size_P > most), np.inf, price_P)

    def _stop_early(self, kinds: Sequence[str]) -> dict[str, Floats]:
        """By kind what each committee costs where its vote stops early, and on all questions."""
        price_QW = np.stack([self._cost[kind] for kind in kinds])
        spent_QP = np.stack(
            [spent(self._answers, plan, early_stop=True, price_QW=price_QW) for plan in self._plans], axis=1
        )
        return means_by(kinds, spent_QP, _TRUSTS[1]) | {_ALL: spent_QP.mean(axis=0)}

    def _mended(self, kind: str, price_P: Floats) -> Floats:
        """What a second round adds to each committee."""
        mended_P = np.zeros(len(self._plans))
        for first in self._firsts:
            place = self._place[first]
            if np.isfinite(price_P[place]):
                mended_P[place] = sum(
                    found.share * max(0.0, float((found.right_P - price_P).max() - found.accepted))
                    for found in self._found(kind, first).values()
                )
        return mended_P

    @cached_property
    def _firsts(self) -> list[Members]:
        return [plan for plan in self._plans if len(plan) in _FIRST and len(set(plan)) == len(plan)]

    def _find(self, kind: str, first: Members) -> Mapping[int, _Bucket]:
        """What is known of questions of a kind on which so many of a committee agree."""
        agree_Q = self._agreeing(first)
        kind_Q = self._kind_Q == kind
        # The first column is what the first round answered itself.
        right_QP = np.column_stack([self._right_QP[:, self._place[first]], self._following(first)])
        buckets = {}
        for agree in np.unique(agree_Q):
            all_Q = agree_Q == agree
            own_Q = all_Q & kind_Q
            overall_P = right_QP[all_Q].mean(axis=0)
            right_P = (right_QP[own_Q].sum(axis=0) + self.trust * overall_P) / (own_Q.sum() + self.trust)
            share = (own_Q.sum() + self.trust * all_Q.mean()) / (kind_Q.sum() + self.trust)
            buckets[int(agree)] = _Bucket(float(share), float(right_P[0]), right_P[1:])
        return buckets

    def _right_after(self, first: Members) -> Floats:
        """[Q, P]: how right each committee is in the round after `first`."""
        later = self._answers.after(first)
        right_QP = self._right_QP.copy()
        for place, plan in enumerate(self._plans):
            if len(plan) > 1:
                # The answer that there is is shown first.
                right_QP[:, place] = right(later, (len(self.workers), *plan))
        return right_QP

    def _best_trust(self) -> float:
        """The trust by which a table of four fifths of the questions chooses best for the last fifth."""
        fold_Q = np.array([Random(f"fold/{text}").randrange(_FOLDS) for text in self._answers.texts])
        earned = dict.fromkeys(_TRUSTS, 0.0)
        for fold in range(_FOLDS):
            known_Q, left_Q = fold_Q != fold, fold_Q == fold
            if not known_Q.any() or not left_Q.any():
                continue
            overall_P = self._right_QP[known_Q].mean(axis=0)
            for kind in np.unique(self._kind_Q[left_Q]):
                own_QP = self._right_QP[known_Q & (self._kind_Q == kind)]
                asked_P = self._right_QP[left_Q & (self._kind_Q == kind)].sum(axis=0)
                for trust in _TRUSTS:
                    table_P = (own_QP.sum(axis=0) + trust * overall_P) / (len(own_QP) + trust)
                    earned[trust] += float(asked_P[(table_P - _ANSWER * self._size_P).argmax()])
        return max(earned, key=lambda trust: earned[trust])


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Questions on which so many of a committee agree."""

    share: float
    """Of the kind's questions."""
    accepted: float
    """How right the answer of the first round is on them."""
    right_P: Floats
    """How right each committee is on them, in a second round."""


def right(answers: Answers, plan: Members) -> Floats:
    """[Q]: how right a committee is, the mean over which of the samples comes first."""
    turns = [turn.voted(plan) for turn in answers.turns]
    mean: Floats = np.mean(turns, axis=0)
    return mean


def committees(answers: Answers) -> Iterator[Members]:
    """All of up to five different workers where nobody has a second sample; else all of up to three.

    These answer up to five times in all, each as often as it has samples. Four or five different workers are then not
    tried together, not even each asked once.
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
                    yield workers[::-1]  # Of two that differ the first wins.


def _spread(count: int, places: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to put `count` into places of at most `most` each."""
    if places == 0:
        if count == 0:
            yield ()
        return
    for here in range(min(count, most) + 1):
        for rest in _spread(count - here, places - 1, most):
            yield (here, *rest)
