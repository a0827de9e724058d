"""The grader of answers that no program can compare: a model (a worker) judges them by a rubric.

The worker belongs to the grader and to no pool: planners do not see it, and its cost counts for the grade, not for the
answer. What it cost before it failed is in its error. Its connections live as long as their event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Self

from pydantic import Field, PrivateAttr, field_validator

from podium.calls import AttemptLog, CallContext, Dispatcher, Ledger, WorkerCall
from podium.errors import GraderError, WorkerError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.graders.verdict import RUBRIC, JudgedResponse, truncate_middle
from podium.tasks.task import Grade
from podium.types import Budget, Message
from podium.workers.base import Request, Worker
from podium.workers.build import AnySpec, build_worker


@dataclass
class _JudgeState:
    """The open worker of a judge. It is not part of the judge's settings, so any two are equal."""

    worker: Worker | None = field(default=None, compare=False)
    dispatcher: Dispatcher = field(default_factory=Dispatcher, compare=False)
    """Its channel belongs to the judge alone: a pool may have another worker of the same name."""


class Judge(GraderSettings):
    """1 if a worker, called twice, finds the response right by the rubric both times.

    The worker sees the answer, by default all of the response, and of a very long one the beginning and the end; the
    question, if the judge has it (`for_question`); and the reference, which is the gold answer, in fences that carry a
    mark that no writer of a response can know. What is done against bias:

    - Order: the first prompt has the reference first, the second has the response first. If the two verdicts differ, or
      one is UNSURE, the score is `tie`. There is no second call if it cannot change the score.
    - Length and style: the prompt says that they earn nothing, and `longest` bounds what is shown.
    - Preference for its own family: cannot be detected here. Use a model that is not among those that are graded.
    - Instructions in a response: they are fenced and named as material. A model may still follow them.

    If a reply does not end with one of the three words, the worker is called once more; then grading fails. Measure a
    judge against verdicts of people before you believe its grades.
    """

    kind: Literal["judge"] = "judge"
    worker: AnySpec
    """The worker that judges. These of its limits hold: concurrency, timeout, max_tokens, retries."""
    rubric: str = Field(default=RUBRIC, min_length=1)
    """What makes a response right, in words."""
    question: str = ""
    """The question that the response answers. If empty, the worker sees none."""
    answer: AnswerPlace = "whole"
    """Where the answer stands in the response."""
    tie: float = Field(default=0.0, ge=0, le=1)
    """Score of a tie, that is, if the verdicts differ or one is UNSURE."""
    longest: int = Field(default=20_000, ge=100)
    """Characters of the response that the worker sees, at most."""
    _state: _JudgeState = PrivateAttr(default_factory=_JudgeState)
    _context: CallContext | None = PrivateAttr(default=None)

    @field_validator("worker")
    @classmethod
    def _alone(cls, worker: AnySpec) -> AnySpec:
        if worker.fallback is not None or worker.limits.rpm is not None or worker.limits.tpm is not None:
            raise ValueError("a judge stands in no pool: leave out its fallback, rpm and tpm")
        return worker

    def for_question(self, question: str) -> Self:
        """The same judge with the question. Both share the worker and its limits."""
        return self.model_copy(update={"question": question})

    def called_in(self, context: CallContext) -> Self:
        """The same judge, whose calls are charged to the context's ledger; what its dispatcher keeps costs nothing."""
        judge = self.model_copy()
        judge._context = context
        return judge

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response.

        Raises:
            GraderError: the worker failed, or gave no verdict.
            RefusalError: a budget refuses a call.
            ConfigError: the worker cannot be built; for example, its key is missing.
        """
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        answer = truncate_middle(answer, self.longest)
        context = self._context or CallContext(
            ledger=Ledger(Budget()),
            dispatcher=self._state.dispatcher,
            queue_key=self.question,
            started=asyncio.get_running_loop().time(),
        )
        judged = JudgedResponse(answer, self.question, gold, self.rubric)
        try:
            verdict = await judged.verdict(
                partial(self._reply, context), self.worker.name, unsure_beats_wrong=self.tie > 0
            )
        except GraderError as error:
            raise GraderError(str(error), cost_usd=context.ledger.totals.usd) from None
        score = self.tie if verdict == "UNSURE" else float(verdict == "RIGHT")
        return Grade(score, answer, context.ledger.totals.usd)

    async def _reply(self, context: CallContext, messages: Sequence[Message]) -> str:
        state = self._state
        if state.worker is None:
            state.worker = build_worker(self.worker)
        return await ask_judge(state.worker, messages, context, dispatcher=state.dispatcher)


async def ask_judge(
    worker: Worker, messages: Sequence[Message], context: CallContext, *, dispatcher: Dispatcher
) -> str:
    """The text of a judge's reply, which is charged to the context's ledger and kept by its dispatcher's cache. The
    judge's channel is that of `dispatcher`.

    Raises:
        GraderError: the worker failed.
        RefusalError: a budget refuses the call.
    """
    request = Request(tuple(messages), seed=f"judge/{len(messages)}")
    own = replace(context, dispatcher=dispatcher.with_cache(context.dispatcher.cache))
    call = WorkerCall(own, worker, request, AttemptLog(), counts_as_call=True, waits_for_cooldown=True)
    try:
        reply = await call.run()
    except WorkerError as error:
        raise GraderError(f"The judge {worker.profile.name!r} did not answer: {error}") from None
    return reply.text
