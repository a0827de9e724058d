"""The grader of answers that no program can compare: a model (a worker) judges them by a rubric.

The worker belongs to the grader and to no pool: planners do not see it, and its cost counts for the grade, not for the
answer. What it cost before it failed is in its error. Its connections live as long as their event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Self

from pydantic import Field, PrivateAttr, field_validator

from podium.errors import GraderError, WorkerError
from podium.tasks.graders.base import GraderSettings, Pay
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.graders.verdict import RUBRIC, JudgedResponse, truncate_middle
from podium.tasks.task import Grade
from podium.trace import Reply
from podium.types import Message
from podium.workers.base import Request, Worker, time_limit
from podium.workers.build import build_worker
from podium.workers.retry import retry_attempts
from podium.workers.spec import AnySpec

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0


@dataclass
class _JudgeState:
    """The open worker of a judge. It is not part of the judge's settings, so any two are equal."""

    worker: Worker | None = field(default=None, compare=False)
    slots: asyncio.Semaphore | None = field(default=None, compare=False)
    loop: asyncio.AbstractEventLoop | None = field(default=None, compare=False)


class Judge(GraderSettings):
    """1 if a worker, called twice, finds the response right by the rubric both times.

    The worker sees the answer, which is by default all of the response, and of a very long one the beginning and the
    end. It also sees the question, if the judge has it (`for_question`), the reference, which is the gold
    answer, and the response, in fences that carry a mark that no writer of a response can know. What is done against
    bias:

    - Order: the first prompt has the reference first, the second has the response first. If the two verdicts differ, or
      one is UNSURE, the score is `tie`. There is no second call if it cannot change the score.
    - Length and style: the prompt says that they earn nothing, and `longest` bounds what is shown.
    - Preference for its own family: cannot be detected here. Use a model that is not among those that are graded.
    - Instructions in a response: they are fenced and named as material. A model may still follow them.

    If a reply does not end with one of the three words, the worker is called once more; then grading fails with a
    GraderError. It also fails if the worker does (retryable errors are retried `limits.retries` times). Measure a judge
    against verdicts of people before you believe its grades.
    """

    kind: Literal["judge"] = "judge"
    worker: AnySpec
    """The worker that judges. These of its limits hold: concurrency, timeout, max_tokens, retries."""
    rubric: str = Field(default=RUBRIC, min_length=1)
    """What makes a response right, in words."""
    question: str = ""
    """The question that the response answers; empty: the worker does not see it."""
    answer: AnswerPlace = "whole"
    """Where the answer stands in the response."""
    tie: float = Field(default=0.0, ge=0, le=1)
    """Score of a tie, that is, if the verdicts differ or one is UNSURE."""
    longest: int = Field(default=20_000, ge=100)
    """Characters of the response that the worker sees, at most."""
    _state: _JudgeState = PrivateAttr(default_factory=_JudgeState)
    _pay: Pay | None = PrivateAttr(default=None)

    @field_validator("worker")
    @classmethod
    def _alone(cls, worker: AnySpec) -> AnySpec:
        if worker.fallback is not None or worker.limits.rpm is not None or worker.limits.tpm is not None:
            raise ValueError("a judge stands in no pool: leave out its fallback, rpm and tpm")
        return worker

    def for_question(self, question: str) -> Self:
        """The same judge with the question. Both share the worker and its limits."""
        return self.model_copy(update={"question": question})

    def paid_by(self, pay: Pay) -> Self:
        """The same judge, whose calls `pay` makes and charges; what is kept already costs nothing."""
        judge = self.model_copy()
        judge._pay = pay
        return judge

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response.

        Raises:
            GraderError: the worker failed, or gave no verdict.
            ConfigError: the worker cannot be built; for example, its key is missing.
        """
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        answer = truncate_middle(answer, self.longest)
        bill: list[float] = []
        try:
            score = await self._score(answer, gold, bill)
        except GraderError as error:
            raise GraderError(str(error), cost_usd=sum(bill)) from None
        return Grade(score, answer, sum(bill))

    async def _score(self, answer: str, gold: str, bill: list[float]) -> float:
        """The score; `bill` grows by the dollars of each reply."""
        judged = JudgedResponse(answer, self.question, gold, self.rubric)
        ask, name = partial(self._reply, bill=bill), self.worker.name
        first = await judged.verdict(ask, name)
        if first != "RIGHT" and self.tie == 0:
            return 0.0
        second = await judged.verdict(ask, name, response_first=True)
        return self.tie if first != second or first == "UNSURE" else float(first == "RIGHT")

    async def _reply(self, messages: Sequence[Message], bill: list[float]) -> str:
        """The text of the worker's reply; retries retryable errors."""
        state, limits = self._state, self.worker.limits
        if state.worker is None:
            state.worker = build_worker(self.worker)
        worker = state.worker
        loop = asyncio.get_running_loop()
        if state.slots is None or state.loop is not loop:  # Waiters belong to their loop.
            state.slots, state.loop = asyncio.Semaphore(limits.concurrency), loop
        slots = state.slots

        async def one_try() -> Reply:
            async with slots, time_limit(limits.timeout):
                return await worker.answer(request)

        try:
            async for attempt in retry_attempts(
                limits.retries, longest_s=_LONGEST_WAIT_S, first_s=_FIRST_WAIT_S
            ):
                with attempt:
                    request = Request(tuple(messages), seed=f"judge/{len(messages)}")
                    try:
                        reply = await (
                            one_try() if self._pay is None else self._pay(worker, request, one_try)
                        )
                    except WorkerError:
                        bill.append(request.receipt.spent.cost_usd)
                        raise
        except WorkerError as error:
            raise GraderError(f"The judge {self.worker.name!r} did not answer: {error}") from None
        bill.append(0.0 if reply.cached else reply.price(worker.profile))
        return reply.text
