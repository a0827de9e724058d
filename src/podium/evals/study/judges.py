"""Judges answers to questions without a known right answer: by a worker of the pool, or by agreement between workers.

A judge is a worker that reads the question and an answer, and says whether the answer is right
(`podium.tasks.graders.judge`). Agreement counts how often a worker gives the answer of most other workers. Both are
weaker evidence than known right answers, and a study's report says so.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podium.calls import CallContext, CallState
from podium.errors import GraderError
from podium.planners.answer_matrix import NO_ANSWER, AnswerMatrix, Floats
from podium.rollout import Rollout
from podium.rollout.data_fingerprint import grader_settings
from podium.spending import Ledger
from podium.tasks.graders.judge import RUBRIC_WITHOUT_REFERENCE, JudgedResponse, Verdict, truncate_middle
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.text_graders import Exact, Normalised
from podium.tasks.task import Grade, Task
from podium.text.answer import final_answer
from podium.text.numerals import read_number
from podium.text.same_answer import normalised_words
from podium.types import Budget, FrozenModel
from podium.workers.pool import Pool
from podium.workers.vote import vote_key, voted_answer

_MAX_JUDGED_CHARS = 8_000
"""The most characters at the end of an answer that are judged."""
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_CHANCE_LENGTH = 3
"""A right answer of at most this many letters, such as "no", is in many texts by chance, so it counts as no near
miss."""


@dataclass
class PoolJudge:
    """A worker of the pool that judges answers. The call state's spend limits pay for its calls.

    Equal answers to one question are judged once, so they get the same verdict.
    """

    pool: Pool
    worker: str
    call_state: CallState
    _verdicts: dict[JudgedResponse, Verdict] = field(default_factory=dict)
    _asking: defaultdict[JudgedResponse, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def score(self, question: str, answer: str) -> float:
        """1 if the answer is right, else 0.

        Raises:
            GraderError: the worker failed, or gave no verdict.
            BudgetExceededError: a spend limit refused the call.
        """
        judged = JudgedResponse(answer, question, rubric=RUBRIC_WITHOUT_REFERENCE)
        async with self._asking[judged]:
            if judged not in self._verdicts:
                self._verdicts[judged] = await judged.verdict(
                    self.pool.named(self.worker), self._context(question)
                )
        verdict = self._verdicts[judged]
        if verdict == "UNSURE":
            raise GraderError(f"The judge {self.worker!r} is unsure.")
        return float(verdict == "RIGHT")

    def _context(self, question: str) -> CallContext:
        return CallContext(
            ledger=Ledger(Budget(), spend_limits=self.call_state.spend_limits),
            call_state=self.call_state,
            queue_key=question,
            started=asyncio.get_running_loop().time(),
        )


@dataclass(frozen=True)
class JudgedGrader:
    """Grades answers to one question by the judge."""

    judge: PoolJudge
    question: str

    @property
    def identity(self) -> Any:
        """What tells its verdicts from those of another judge, as JSON."""
        return [self.judge.worker, self.judge.pool.named(self.judge.worker).identity]

    async def __call__(self, response: str, gold: str) -> Grade:
        final = final_answer(response)
        answer = response if final is None else final
        if not answer.strip():
            return Grade(0.0)
        return Grade(await self.judge.score(self.question, truncate_middle(answer, _MAX_JUDGED_CHARS)), final)


@dataclass(frozen=True)
class NoVerdictGrader:
    """Finds the answer, and gives no verdict."""

    async def __call__(self, response: str, gold: str) -> Grade:
        return Grade(0.0, final_answer(response), failure="nothing says which answer is right")


@dataclass(frozen=True)
class OutcomeGrader:
    """Grades by what users said about one answer to the question.

    An answer that equals one that users called right is right, and an answer that equals one that they called wrong is
    wrong. If no right answer is known, `otherwise` judges any other answer.
    """

    right: frozenset[str]
    """Normalised answers that users called right."""
    wrong: frozenset[str]
    otherwise: JudgedGrader | NoVerdictGrader

    @property
    def identity(self) -> Any:
        """What tells its verdicts from those of another grader, as JSON."""
        return [sorted(self.right), sorted(self.wrong), grader_settings(self.otherwise)]

    async def __call__(self, response: str, gold: str) -> Grade:
        answer, key = voted_answer(response), vote_key(response)
        if key in self.wrong:
            return Grade(0.0, answer)
        if self.right:
            return Grade(float(key in self.right), answer)
        return await self.otherwise(response, gold)


class NearMisses(FrozenModel):
    """Answers that a grader of texts or numbers judged wrong. `with_words` of them have the words of the right answer,
    or end in its number."""

    wrong: int = 0
    with_words: int = 0


def near_misses(graded: Iterable[tuple[Task, Sequence[Rollout]]]) -> NearMisses:
    wrong = [
        _is_near_miss(task, (answer.trace.answer or "")[-_MAX_JUDGED_CHARS:])
        for task, answers in graded
        if isinstance(task.grader, Exact | Normalised | Numeric)
        for answer in answers
        if not answer.grade.correct
    ]
    return NearMisses(wrong=len(wrong), with_words=sum(wrong))


def _is_near_miss(task: Task, answer: str) -> bool:
    """Whether an answer that was judged wrong has the words of the right answer, or ends in its number."""
    if isinstance(task.grader, Numeric):
        numbers = _NUMBER.findall(answer)
        return bool(numbers) and read_number(numbers[-1]) == read_number(task.gold)
    words = normalised_words(task.gold)
    return len(words) > _CHANCE_LENGTH and f" {words} " in f" {normalised_words(answer)} "


def by_agreement(answers: AnswerMatrix) -> AnswerMatrix:
    """The same answers, each scored by whether it is the most frequent answer of the *other* workers. A second answer
    is compared with second answers, and so on.

    In a tie of k answers each of them scores 1/k. A response without an answer scores 0. A vote cannot be scored in
    this way, since it agrees with the workers because it is made of their answers.
    """
    samples = answers.answer_QWR.shape[2]
    alone_QWR = np.stack([_agreement_scores(answers.answer_QWR[:, :, r]) for r in range(samples)], axis=2)
    own_QW1 = answers.samples if answers.own_samples_QW is None else answers.own_samples_QW[:, :, None]
    own_QWR = np.broadcast_to(np.arange(samples) < own_QW1, alone_QWR.shape)
    return replace(answers, alone_QWR=alone_QWR, score_QW=alone_QWR.mean(axis=2, where=own_QWR))


def _agreement_scores(answer_QW: np.typing.NDArray[np.int64]) -> Floats:
    score_QW = np.zeros(answer_QW.shape)
    for q, row in enumerate(answer_QW.tolist()):
        for w, answer in enumerate(row):
            counts = Counter(other for v, other in enumerate(row) if v != w and other != NO_ANSWER)
            most = max(counts.values(), default=0)
            winners = [other for other, count in counts.items() if count == most]
            score_QW[q, w] = (answer in winners) / len(winners) if winners else 0.0
    return score_QW
