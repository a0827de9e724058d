"""What recorded workers answered, as arrays: scores and costs of thousands of committees before any plan is run.

A committee is a list of workers whose answers a vote decides. Nothing here calls a live worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean

import numpy as np
import numpy.typing as npt

from podium.executor.early_stopping import next_turn
from podium.tasks.task import Task
from podium.types import Message
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Request, Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.replay import ReplayWorker
from podium.workers.tool import is_result
from podium.workers.vote import VoteWorker, announce

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Members = tuple[int, ...]
"""Workers of a committee by number; one may stand there several times, and gives its next sample each time."""
NO_ANSWER = -1
"""The number of no answer."""
MOST = 5
"""Answers that a committee votes on, at most."""
_TURNS = 12
"""Turns at most, or twice the most samples, where workers have different numbers of them."""
_KEPT = 10**7
"""Answers, of all turns together, that are kept in memory: a hundred megabytes or two."""


@dataclass(frozen=True)
class Answers:
    """Q questions, W workers, R times that each is asked: as often as a committee may name it."""

    workers: tuple[str, ...]
    answer_QWR: Ints
    """Equal answers to one question have equal numbers; -1: no answer was found."""
    alone_QWR: Floats
    """How right each response is."""
    voted_QWR: Floats
    """How right its answer is where a vote gives it, in the words of the tool that votes."""
    score_QW: Floats
    """How right a worker is, the mean over its samples."""
    cost_QW: Floats
    """Dollars, the mean over samples."""
    samples: int
    """The most that any worker has."""
    texts: tuple[str, ...]
    families: tuple[str, ...]
    """Empty where unknown."""
    own_samples: tuple[int, ...] = ()
    """Of each worker; empty: all have as many."""
    own_samples_QW: Ints | None = None
    """Of each worker to each question; None: all have `samples`."""

    def samples_of(self, worker: int) -> int:
        """How many different responses a worker has to one question, at most."""
        return self.own_samples[worker] if self.own_samples else self.samples

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {text: q for q, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        """The question of this text."""
        return self._numbers[text]

    @property
    def accuracy(self) -> Floats:
        """[W]: of each worker alone."""
        shares: Floats = self.score_QW.mean(axis=0)
        return shares

    @property
    def cost(self) -> Floats:
        """[W]: dollars a question."""
        means: Floats = self.cost_QW.mean(axis=0)
        return means

    @property
    def turns(self) -> Iterable[Answers]:
        """The same with each of the samples first, so often that those of one worker are first equally often.

        Where workers have different numbers of samples, that takes their least common multiple. Beyond 12, and beyond
        twice the most samples, there are no more turns: then they are nearly equally often first.
        """
        if self._turn_count * self.answer_QWR.size <= _KEPT:
            return self._kept_turns
        return map(self.turned, range(self._turn_count))

    @cached_property
    def _kept_turns(self) -> tuple[Answers, ...]:
        return tuple(map(self.turned, range(self._turn_count)))

    @cached_property
    def _turn_count(self) -> int:
        if self.own_samples_QW is None:
            return self.samples
        return min(math.lcm(*np.unique(self.own_samples_QW).tolist()), max(2 * self.samples, _TURNS))

    def turned(self, first: int) -> Answers:
        """The same with another of the samples first: of a worker with fewer samples, counted round again."""
        return self if first == 0 else self._columns(first, self.alone_QWR.shape[2])

    def _columns(self, first: int, count: int) -> Answers:
        """So many answers of each worker, from that sample on."""
        own_QW = (
            np.full(self.alone_QWR.shape[:2], self.samples)
            if self.own_samples_QW is None
            else self.own_samples_QW
        )
        order_QWR = (first + np.arange(count)) % own_QW[:, :, None]
        return replace(
            self,
            answer_QWR=np.take_along_axis(self.answer_QWR, order_QWR, axis=2),
            alone_QWR=np.take_along_axis(self.alone_QWR, order_QWR, axis=2),
            voted_QWR=np.take_along_axis(self.voted_QWR, order_QWR, axis=2),
        )

    def after(self, members: Members) -> Answers:
        """The same with one worker more, who gives what a committee answered, whichever sample is first."""
        turns = [turned._won(members) for turned in self.turns]
        wide = self if len(turns) <= self.alone_QWR.shape[2] else self._columns(0, len(turns))
        repeats = [first % len(turns) for first in range(wide.alone_QWR.shape[2])]
        answer_QR = np.stack([turns[turn][0] for turn in repeats], axis=1)
        score_QR = np.stack([turns[turn][1] for turn in repeats], axis=1)
        own_QW = self.own_samples_QW
        return replace(
            self,
            answer_QWR=np.concatenate([wide.answer_QWR, answer_QR[:, None]], axis=1),
            alone_QWR=np.concatenate([wide.alone_QWR, score_QR[:, None]], axis=1),
            voted_QWR=np.concatenate([wide.voted_QWR, score_QR[:, None]], axis=1),
            samples=max(self.samples, len(turns)),
            own_samples=(*self.own_samples, len(turns)) if self.own_samples else (),
            own_samples_QW=None if own_QW is None else np.insert(own_QW, own_QW.shape[1], len(turns), axis=1),
        )

    def voted(self, members: Members, weights: Sequence[float] = ()) -> Floats:
        """[Q]: how right a committee is on each question; as the pool's tool counts, ties included."""
        if len(members) == 1:
            return self.alone_QWR[:, members[0], 0]
        return self._won(members, weights)[1]

    def given(self, members: Members) -> Ints:
        """[Q, M]: what each of a committee answers; who stands there again gives the next sample."""
        return self.answer_QWR[:, *_places(members)]

    def _won(self, members: Members, weights: Sequence[float] = ()) -> tuple[Ints, Floats]:
        """[Q], [Q]: the answer that a vote gives, and how right it is."""
        answer_QM = self.given(members)
        score_QM = self.voted_QWR[:, *_places(members)]
        weight_M = np.asarray(weights or [1.0] * len(members))
        same_QMM = answer_QM[:, :, None] == answer_QM[:, None, :]
        votes_QM = np.where(answer_QM == NO_ANSWER, -1.0, (same_QMM * weight_M).sum(axis=2))
        rows, winner_Q = np.arange(len(score_QM)), votes_QM.argmax(axis=1)
        nothing_Q = votes_QM.max(axis=1) < 0
        return answer_QM[rows, winner_Q], np.where(nothing_Q, 0.0, score_QM[rows, winner_Q])

    def agreeing(self, members: Members) -> Ints:
        """[Q]: how many answers of a committee are the one that is given most often; 0 where nobody gave one."""
        answer_QM = self.given(members)
        same_QMM = (answer_QM[:, :, None] == answer_QM[:, None, :]) & (answer_QM != NO_ANSWER)[:, :, None]
        most: Ints = same_QMM.sum(axis=2).max(axis=1)
        return most

    def unanimous(self, members: Members) -> npt.NDArray[np.bool_]:
        """[Q]: whether all answers of a committee are one."""
        return np.asarray(self.agreeing(members) == len(members), dtype=np.bool_)


def _places(members: Members) -> tuple[list[int], list[int]]:
    """Of each of a committee its number, and which time it is asked."""
    return list(members), [members[:place].count(member) for place, member in enumerate(members)]


def measurable(workers: Iterable[Worker], tasks: Iterable[Task]) -> list[ReplayWorker | CalculatorWorker]:
    """Those of whom every task can tell how right they are: recorded workers, and beside gold answers calculators."""
    known = ReplayWorker | CalculatorWorker if all(task.gold for task in tasks) else ReplayWorker
    return [worker for worker in workers if isinstance(worker, known)]


async def read_answers(tasks: Sequence[Task], workers: Sequence[ReplayWorker | CalculatorWorker]) -> Answers:
    """Ask every worker every question, bare, as often as it has samples and a committee may name it.

    Args:
        tasks: `RecordedTasks` of these workers, each of whose responses can be graded.
    """
    own_samples = tuple(worker.samples if isinstance(worker, ReplayWorker) else 1 for worker in workers)
    samples = max(own_samples)
    size = len(tasks), len(workers), max(samples, MOST)
    answer, alone, voted = np.full(size, NO_ANSWER), np.zeros(size), np.zeros(size)
    score, cost, own_QW = np.zeros(size[:2]), np.zeros(size[:2]), np.ones(size[:2], dtype=np.int64)
    for q, task in enumerate(tasks):
        numbers: dict[str, int] = {}
        for w, worker in enumerate(workers):
            replies = [
                await worker.answer(Request(bare(task.question.text), seed="", repeat=r))
                for r in range(size[2])
            ]
            for r, reply in enumerate(replies):
                alone[q, w, r] = (await task.grade(reply.text)).correct
                found = final_answer(reply.text)
                if found is not None and is_result(reply.text):
                    answer[q, w, r] = numbers.setdefault(normalise(found), len(numbers))
                    # Any counts do: they are no part of the answer.
                    voted[q, w, r] = (await task.grade(announce(found, 1, 1))).correct
            own = own_QW[q, w] = worker.count(task.question.text) if isinstance(worker, ReplayWorker) else 1
            score[q, w] = alone[q, w, :own].mean()
            cost[q, w] = fmean(worker.profile.price.cost(reply.usage) for reply in replies[:own])
    return Answers(
        workers=tuple(worker.profile.name for worker in workers),
        answer_QWR=answer,
        alone_QWR=alone,
        voted_QWR=voted,
        score_QW=score,
        cost_QW=cost,
        samples=samples,
        texts=tuple(task.question.text for task in tasks),
        families=tuple(str(task.facts.get("family", "")) for task in tasks),
        own_samples=own_samples,
        own_samples_QW=None if (own_QW == samples).all() else own_QW,
    )


def means_by(labels: Sequence[str], right_QP: Floats, trust: float) -> dict[str, Floats]:
    """For each label how right each plan is on its questions, joined by `trust` that went as the plan goes on all."""
    label_Q = np.asarray(labels)
    overall_P = right_QP.mean(axis=0)
    means: dict[str, Floats] = {}
    for label in sorted(set(labels)):
        own_QP = right_QP[label_Q == label]
        means[label] = (own_QP.sum(axis=0) + trust * overall_P) / (len(own_QP) + trust)
    return means


def bare(question: str) -> tuple[Message, ...]:
    """The question and nothing else, as a replay worker reads it."""
    return (Message(role="user", content=question),)


_VOTE = VoteWorker()


def spent(
    answers: Answers, members: Members, *, early_stop: bool = False, price_QW: Floats | None = None
) -> Floats:
    """[Q]: dollars, the mean over which of the samples comes first.

    Args:
        early_stop: whether votes stop.
        price_QW: by which the cheapest is asked first; None: what each costs in the mean of all questions.
    """
    cost_QM = answers.cost_QW[:, members]
    if not early_stop or len(members) == 1:
        total_Q: Floats = cost_QM.sum(axis=1)
        return total_Q
    prices_QM = (np.broadcast_to(answers.cost, answers.cost_QW.shape) if price_QW is None else price_QW)[
        :, members
    ]
    order_QM = np.argsort(prices_QM, axis=1, kind="stable")
    turns = []
    for turn in answers.turns:
        answer_QM = turn.given(members)
        cases, case_Q = np.unique(np.hstack([answer_QM, order_QM]), axis=0, return_inverse=True)
        asked_CM = np.array(
            [
                _called(_renumbered(case[: len(members)]), tuple(case[len(members) :]))
                for case in cases.tolist()
            ]
        )
        turns.append((asked_CM[case_Q] * cost_QM).sum(axis=1))
    mean_Q: Floats = np.mean(turns, axis=0)
    return mean_Q


def _renumbered(answers: list[int]) -> tuple[int, ...]:
    """By first occurrence; -1 stays: no answer."""
    numbers: dict[int, int] = {}
    return tuple(answer if answer < 0 else numbers.setdefault(answer, len(numbers)) for answer in answers)


@cache
def _called(answers: tuple[int, ...], order: tuple[int, ...]) -> tuple[bool, ...]:
    """Which of a committee are asked, were these their answers."""
    heard: list[str | None] = [None] * len(answers)
    while turn := next_turn(_VOTE, "", heard, order):
        for place in turn:
            heard[place] = "" if answers[place] < 0 else f"Answer: {answers[place]}"
    return tuple(text is not None for text in heard)
