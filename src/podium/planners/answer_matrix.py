"""Graded answers as arrays: planners learn from them, and the scores and costs of thousands of committees are computed
without running a plan.

A committee is a list of workers whose answers are put to a vote. Nothing here calls a worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from podium.text.same_answer import answer_key
from podium.workers.vote import responses_to_get_next, vote_key, winner_is_certain

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
T = TypeVar("T")
Members = tuple[int, ...]
"""The workers of a committee, by number. A worker that is named again gives its next sample."""
NO_ANSWER = -1
MAX_ANSWERS = 5
ARRAYS = ("answer_QWR", "alone_QWR", "voted_QWR", "score_QW", "cost_QW")
"""The arrays of an `AnswerMatrix`, those of single samples first."""
_MAX_ROTATIONS = 12
"""The most rotations if workers have different numbers of samples, or twice the largest number if that is more."""
_MAX_KEPT_ANSWERS = 10**7
"""The most answers, of all rotations together, that are kept in memory: 100 to 200 MB."""


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """One graded response of a worker to a question."""

    answer: str | None
    """The answer in it, as `voted_answer` finds it."""
    score: float
    cost_usd: float
    voted_score: float | None = None
    """The score of the answer when the voting tool reports it in its own words. Without it, `score` holds."""


@dataclass(frozen=True)
class AnswerMatrix:
    """The answers of W workers to Q questions, R of each. With them a planner learns who is right on which questions:
    `score_QW[3, 1]` is the mean score of worker 1 on question 3."""

    workers: tuple[str, ...]
    answer_QWR: Ints
    """Equal answers to a question have equal numbers. A response without an answer has -1."""
    alone_QWR: Floats
    """Score of each response."""
    voted_QWR: Floats
    """Score of the response's answer when the voting tool reports it in its own words."""
    score_QW: Floats
    """Mean score over a worker's samples."""
    cost_QW: Floats
    """Mean dollars over a worker's samples."""
    samples: int
    """The largest number of samples of any worker."""
    texts: tuple[str, ...]
    own_samples: tuple[int, ...] = ()
    """Number of samples of each worker. If empty, all have `samples`."""
    own_samples_QW: Ints | None = None
    """Number of samples of each worker for each question. Without it, all have `samples`."""
    early_stop: bool = False
    """Whether `vote` stops once it is certain, as in `committee_cost`."""
    price_of: Callable[[Members], Floats] | None = None
    """Gives the `price_QW` with which `vote` computes the cost of a committee. Without it, mean costs count."""
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        answers: Mapping[str, Sequence[Sequence[MeasuredAnswer]]],
        *,
        min_samples: int = 1,
    ) -> AnswerMatrix:
        """The arrays of some answers to the questions `texts`: by the name of each worker, one or more samples for each
        question. R is the largest number of samples, but at least `min_samples`."""
        own_QW = np.array([[len(samples) for samples in row] for row in zip(*answers.values(), strict=True)])
        most = int(own_QW.max())
        size = (*own_QW.shape, max(most, min_samples))
        answer, alone, voted = np.full(size, NO_ANSWER), np.zeros(size), np.zeros(size)
        score, cost = np.zeros(own_QW.shape), np.zeros(own_QW.shape)
        for q, row in enumerate(zip(*answers.values(), strict=True)):
            numbers: dict[str, int] = {}
            for w, samples in enumerate(row):
                score[q, w] = fmean(sample.score for sample in samples)
                cost[q, w] = fmean(sample.cost_usd for sample in samples)
                for r in range(size[2]):
                    sample = samples[r % len(samples)]  # One with fewer samples starts again from number 0.
                    alone[q, w, r] = sample.score
                    if sample.answer is not None:
                        answer[q, w, r] = numbers.setdefault(answer_key(sample.answer), len(numbers))
                        voted[q, w, r] = sample.score if sample.voted_score is None else sample.voted_score
        return cls(
            workers=tuple(answers),
            answer_QWR=answer,
            alone_QWR=alone,
            voted_QWR=voted,
            score_QW=score,
            cost_QW=cost,
            samples=most,
            texts=tuple(texts),
            own_samples=tuple(own_QW.max(axis=0).tolist()),
            own_samples_QW=None if (own_QW == most).all() else own_QW,
        )

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` returns, which is computed once for these answers: by its key, such as a learned predictor."""
        if key not in self._known:
            self._known[key] = compute()
        value: T = self._known[key]
        return value

    def vote(self, members: Members) -> tuple[Floats, Floats]:
        """[Q], [Q]: the score and the dollars of a committee, averaged over rotations of the workers' samples."""

        def figures() -> tuple[Floats, Floats]:
            price_QW = None if self.price_of is None else self.price_of(members)
            return (
                committee_accuracy(self, members),
                committee_cost(self, members, early_stop=self.early_stop, price_QW=price_QW),
            )

        return self.cached(("vote", members), figures)

    def right_counts(self, members: Members) -> Floats:
        """[Q, M + 1]: in which share of the rotations r of a committee's M answers are right."""
        right_RQ = np.array(
            [(rotation.voted_QWR[:, *_cells(members)] > 0).sum(axis=1) for rotation in self.rotations]
        )
        shares_QM: Floats = (right_RQ[:, :, None] == np.arange(len(members) + 1)).mean(axis=0)
        return shares_QM

    def samples_of(self, worker: int) -> int:
        """The most responses that a worker has to one question."""
        return self.own_samples[worker] if self.own_samples else self.samples

    @property
    def accuracy(self) -> Floats:
        """[W]: the accuracy of each worker alone."""
        shares: Floats = self.score_QW.mean(axis=0)
        return shares

    @property
    def cost(self) -> Floats:
        """[W]: dollars a question."""
        means: Floats = self.cost_QW.mean(axis=0)
        return means

    @property
    def rotations(self) -> Iterable[AnswerMatrix]:
        """These answers once for each rotation. Rotation k puts sample k first, so a mean over them uses all samples,
        and each sample of a worker comes first equally often. That takes the least common multiple of the workers'
        numbers of samples; if it is more than 12 and more than twice the largest number, there are fewer rotations, and
        samples come first only nearly equally often."""
        if self._rotation_count * self.answer_QWR.size <= _MAX_KEPT_ANSWERS:
            return self._kept_rotations
        return map(self.rotated, range(self._rotation_count))

    @cached_property
    def _kept_rotations(self) -> tuple[AnswerMatrix, ...]:
        return tuple(map(self.rotated, range(self._rotation_count)))

    @cached_property
    def _rotation_count(self) -> int:
        if self.own_samples_QW is None:
            return self.samples
        return min(math.lcm(*np.unique(self.own_samples_QW).tolist()), max(2 * self.samples, _MAX_ROTATIONS))

    def rotated(self, first: int) -> AnswerMatrix:
        """These answers with sample number `first` in front. A worker with fewer samples starts again from number 0."""
        if first == 0:
            return self
        own_QW = self.own_samples_QW
        own_QW = np.full(self.alone_QWR.shape[:2], self.samples) if own_QW is None else own_QW
        order_QWR = (first + np.arange(self.alone_QWR.shape[2])) % own_QW[:, :, None]
        turned: dict[str, Any] = {
            name: np.take_along_axis(getattr(self, name), order_QWR, axis=2) for name in ARRAYS[:3]
        }
        return replace(self, **turned)

    def vote_scores(self, members: Members, weights: Sequence[float] = ()) -> Floats:
        """[Q]: the score of a committee on each question. Votes and ties count as in the voting tool."""
        if len(members) == 1:
            return self.alone_QWR[:, members[0], 0]
        answer_QM = self.answers_of(members)
        score_QM = self.voted_QWR[:, *_cells(members)]
        weight_M = np.asarray(weights or [1.0] * len(members))
        same_QMM = answer_QM[:, :, None] == answer_QM[:, None, :]
        votes_QM = np.where(answer_QM == NO_ANSWER, -1.0, (same_QMM * weight_M).sum(axis=2))
        won_Q = score_QM[np.arange(len(score_QM)), votes_QM.argmax(axis=1)]
        return np.where(votes_QM.max(axis=1) < 0, 0.0, won_Q)

    def answers_of(self, members: Members) -> Ints:
        """[Q, M]: the answer of each member of a committee. A worker that is named again gives its next sample."""
        return self.answer_QWR[:, *_cells(members)]

    def agreement(self, members: Members) -> Ints:
        """[Q]: how many of a committee's answers equal the most frequent one; 0 if there is no answer."""
        answer_QM = self.answers_of(members)
        same_QMM = (answer_QM[:, :, None] == answer_QM[:, None, :]) & (answer_QM != NO_ANSWER)[:, :, None]
        most: Ints = same_QMM.sum(axis=2).max(axis=1)
        return most

    def unanimous(self, members: Members) -> npt.NDArray[np.bool_]:
        """[Q]: whether all answers of a committee are equal."""
        return np.asarray(self.agreement(members) == len(members), dtype=np.bool_)


def _cells(members: Members) -> tuple[list[int], list[int]]:
    """For each member of a committee, its number and how often it was named before."""
    return list(members), [members[:index].count(member) for index, member in enumerate(members)]


def select_questions(answers: AnswerMatrix, questions: Ints) -> AnswerMatrix:
    """The answers to some of the questions, by number."""
    own_QW = answers.own_samples_QW
    return replace(
        answers,
        **{name: getattr(answers, name)[questions] for name in ARRAYS},
        own_samples_QW=None if own_QW is None else own_QW[questions],
        texts=tuple(answers.texts[q] for q in questions),
    )


def committee_cost(
    answers: AnswerMatrix, members: Members, *, early_stop: bool = False, price_QW: Floats | None = None
) -> Floats:
    """[Q]: the dollars that a committee costs on each question, averaged over rotations. With `early_stop` the vote
    stops once it is certain, so that not all workers are called: the cheapest by `price_QW`, or else by mean cost,
    first."""
    cost_QM = answers.cost_QW[:, members]
    if not early_stop or len(members) == 1:
        total_Q: Floats = cost_QM.sum(axis=1)
        return total_Q
    prices_QM = (np.broadcast_to(answers.cost, answers.cost_QW.shape) if price_QW is None else price_QW)[
        :, members
    ]
    order_QM = np.argsort(prices_QM, axis=1, kind="stable")
    costs = []
    for rotation in answers.rotations:
        answer_QM = rotation.answers_of(members)
        cases, case_Q = np.unique(np.hstack([answer_QM, order_QM]), axis=0, return_inverse=True)
        called_CM = np.array(
            [
                _called_members(_by_first_use(case[: len(members)]), tuple(case[len(members) :]))
                for case in cases.tolist()
            ]
        )
        costs.append((called_CM[case_Q] * cost_QM).sum(axis=1))
    mean_Q: Floats = np.mean(costs, axis=0)
    return mean_Q


def committee_accuracy(answers: AnswerMatrix, members: Members) -> Floats:
    """[Q]: the accuracy of a committee on each question, averaged over rotations of the workers' samples."""
    mean_Q: Floats = np.mean([rotation.vote_scores(members) for rotation in answers.rotations], axis=0)
    return mean_Q


def _by_first_use(answers: list[int]) -> tuple[int, ...]:
    """The answers with new numbers, in the order of their first use, so that equal cases are computed once."""
    numbers: dict[int, int] = {}
    return tuple(answer if answer < 0 else numbers.setdefault(answer, len(numbers)) for answer in answers)


@lru_cache(maxsize=2**16)
def _called_members(answers: tuple[int, ...], order: tuple[int, ...]) -> tuple[bool, ...]:
    """Which members of a committee an early-stopping vote calls, if these are their answers."""
    responses: list[str | None] = [None] * len(answers)
    while turn := responses_to_get_next(winner_is_certain, "", responses, order, vote_key):
        for index in turn:
            responses[index] = "" if answers[index] < 0 else f"Answer: {answers[index]}"
    return tuple(text is not None for text in responses)
