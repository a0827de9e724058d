"""One step's call: calls the worker, then its fallbacks.

Here a `WorkerError` and a `BudgetExceededError` become data. Any other exception of a worker is a bug and escapes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from podium.calls import AttemptLog, WorkerCall
from podium.calls.worker_call import MakeListeners
from podium.errors import BudgetExceededError, WorkerError
from podium.executor.question_context import QuestionContext
from podium.text.fencing import remove_fences
from podium.trace import Reply
from podium.types import Spent
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """A worker answered."""

    worker: str
    """The chosen worker, or its fallback that answered."""
    reply: Reply
    spent: Spent
    """Tokens and dollars of this answer. `saved_usd` also counts earlier answers that were cut off."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """No worker answered."""

    status: Literal["failed", "refused"]
    """"refused": a limit refused the call before any worker was called."""
    error: str


async def call_with_fallbacks(
    context: QuestionContext,
    worker: Worker,
    request: Request,
    log: AttemptLog,
    make_listeners: MakeListeners | None = None,
) -> WorkerAnswer | FailedCall:
    """Call `worker`, then the chain of its fallbacks, until one gives a whole answer. If an answer was cut off, the
    fallback is called too. If all answers were cut off, the first counts. `log` and `make_listeners` are those of
    `WorkerCall`."""
    candidates = deque(_chain(context.pool, worker))
    failures: list[str] = []
    answers: list[WorkerAnswer] = []
    in_cooldown: list[Worker] = []
    while candidates:
        candidate = candidates.popleft()
        # Once a worker was called, a fallback does not count as another call of the budget.
        counts_as_call = not failures and all(answer.reply.cached for answer in answers)
        call = WorkerCall(
            context,
            candidate.worker,
            request,
            log,
            counts_as_call=counts_as_call,
            waits_for_cooldown=candidate.waits_for_cooldown,
            make_listeners=make_listeners,
        )
        try:
            answer = _answer(await call.run(), candidate.worker, request)
        except BudgetExceededError as refusal:
            if not answers:
                return FailedCall("failed" if failures else "refused", " ".join([*failures, str(refusal)]))
            break
        except WorkerError as error:
            failures.append(f"{candidate.worker.profile.name}: {error}")
            if candidate.was_passed_over(context):
                in_cooldown.append(candidate.worker)
            if in_cooldown and not (candidates or answers):
                # No fallback answered, so wait until the first worker's cooldown ends.
                candidates.append(_Candidate(in_cooldown[0], waits_for_cooldown=True))
                in_cooldown.clear()
            continue
        answers.append(answer)
        if not _is_truncated(answer, request) or (len(answers) == 1 and not candidates):
            return _with_all_savings(answer, answers)
        log.mark_truncated(answer.worker, replace(answer.spent, saved_usd=0.0))
    if not answers:
        return FailedCall("failed", " ".join(failures))
    log.mark_truncated(answers[0].worker, Spent())
    return _with_all_savings(answers[0], answers)


@dataclass(frozen=True, slots=True)
class _Candidate:
    worker: Worker
    waits_for_cooldown: bool
    """Whether the call waits until the worker's cooldown ends."""

    def was_passed_over(self, context: QuestionContext) -> bool:
        breaker = context.call_state.channel(self.worker).breaker
        return not self.waits_for_cooldown and breaker.state != "closed"


def _chain(pool: Pool, worker: Worker) -> Iterator[_Candidate]:
    """The worker, then its fallbacks. A pool has no cycle of fallbacks."""
    following: Worker | None = worker
    while following is not None:
        fallback = pool.fallback(following)
        yield _Candidate(following, waits_for_cooldown=fallback is None)
        following = fallback


def _answer(reply: Reply, worker: Worker, request: Request) -> WorkerAnswer:
    """The answer of a worker, without fences that it copied from its messages."""
    text = remove_fences(reply.text, request.fence_mark)
    if text != reply.text:
        reply = replace(reply, text=text)
    return WorkerAnswer(worker.profile.name, reply, reply.spent(worker.profile))


def _with_all_savings(answer: WorkerAnswer, answers: Sequence[WorkerAnswer]) -> WorkerAnswer:
    """The answer that counts, with the dollars that the response cache saved for all `answers`."""
    if len(answers) == 1:
        return answer
    saved_usd = sum(given.spent.saved_usd for given in answers)
    return replace(answer, spent=replace(answer.spent, saved_usd=saved_usd))


def _is_truncated(answer: WorkerAnswer, request: Request) -> bool:
    """Whether the worker's own max_tokens cut the answer off. A cut at the caller's limit is what the caller wants."""
    return answer.reply.finish == "length" and request.options.max_tokens is None
