"""One step's call: looks in the response cache, calls the worker, then its fallbacks.

Here a `WorkerError` becomes data. Any other exception of a worker is a bug and escapes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from podium.calls.worker_call import Listeners, WorkerCall
from podium.errors import RefusalError, WorkerError
from podium.executor.echoed_fences import remove_fences
from podium.executor.question_context import QuestionContext
from podium.trace import Attempt, Reply
from podium.types import Price, Profile, Spent
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """A worker answered."""

    worker: str
    """The chosen one or a fallback."""
    reply: Reply
    spent: Spent
    """Tokens and dollars of this answer. `saved_usd` counts the answers before it, too, that were cut off."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """No worker answered."""

    error: str
    """One sentence."""
    refused: bool
    """Whether a budget refused the call before any worker was called."""


async def call_with_fallbacks(
    context: QuestionContext,
    worker: Worker,
    request: Request,
    attempts: list[Attempt],
    stream: Listeners | None = None,
) -> WorkerAnswer | FailedCall:
    """Call `worker`, then the chain of its fallbacks, until one answers.

    Args:
        attempts: each try is appended to it when it ends, even if it is cancelled.
        stream: returns the listeners of a try. Two tries may write at the same time.
    """
    pool, tries = context.pool, count()
    left = deque(
        _Candidate(member, waits_for_cooldown=pool.fallback(member) is None)
        for member in _chain(pool, worker)
    )
    failures: list[str] = []
    counts = True  # False once a worker was called: what follows continues the same call of the budget.
    cut: WorkerAnswer | None = None  # The first answer that was cut off. It counts if none is whole.
    saved_usd = 0.0
    cooling_down: Worker | None = None  # The first worker that was passed over for its cooldown.
    while left:
        candidate = left.popleft()
        chosen = candidate.worker
        worker_call = WorkerCall(
            context,
            chosen,
            request,
            attempts,
            counts_as_call=counts,
            waits_for_cooldown=candidate.waits_for_cooldown,
        )
        if stream is not None:
            worker_call.stream_to(stream, tries)
        try:
            reply = await context.dispatcher.reply_or_call(chosen, request, worker_call.run)
            reply = replace(reply, text=remove_fences(reply.text, request.fence_mark))
        except RefusalError as refusal:
            if cut is None:
                return FailedCall(" ".join([*failures, str(refusal)]), refused=not failures)
            break
        except WorkerError as error:
            counts = False
            failures.append(f"{chosen.profile.name}: {error}")
            if (
                not candidate.waits_for_cooldown
                and context.dispatcher.channel(chosen).breaker.state != "closed"
            ):
                cooling_down = cooling_down or chosen
        else:
            profile = chosen.profile
            spent = _spent_on(reply, profile)
            saved_usd += spent.saved_usd
            counts = counts and reply.cached
            answered = WorkerAnswer(profile.name, reply, replace(spent, saved_usd=saved_usd))
            if not _is_cut(answered, request) or (cut is None and not left):
                return answered
            _mark_cut(attempts, answered, lost=True)
            cut = cut or answered
            cut = replace(cut, spent=replace(cut.spent, saved_usd=saved_usd))
        if not left and cooling_down is not None and cut is None:
            # No fallback answered, so wait until the worker's cooldown ends.
            left.append(_Candidate(cooling_down, waits_for_cooldown=True))
            cooling_down = None
    if cut is None:
        return FailedCall(" ".join(failures), refused=False)
    _mark_cut(attempts, cut, lost=False)
    return cut


@dataclass(frozen=True, slots=True)
class _Candidate:
    worker: Worker
    waits_for_cooldown: bool
    """Whether the call waits for the worker if it is in cooldown."""


def _chain(pool: Pool, worker: Worker) -> Iterator[Worker]:
    """The worker and its fallbacks; a pool has no cycle of fallbacks."""
    following: Worker | None = worker
    while following is not None:
        yield following
        following = pool.fallback(following)


def _spent_on(reply: Reply, profile: Profile) -> Spent:
    """Tokens and dollars of an answer. One from the response cache costs nothing, and saves what it had cost."""
    usd = reply.price(profile)
    if reply.cached:
        return Spent(reply.usage, saved_usd=usd)
    if reply.nested is not None:
        return Spent(reply.usage, usd, unpriced=reply.nested.unpriced)
    made = reply.recorded is None and reply.usage.tokens > 0
    return Spent(reply.usage, usd, unpriced=made and not usd and profile.price == Price())


def _is_cut(answered: WorkerAnswer, request: Request) -> bool:
    """Whether the worker's own max_tokens cut the answer off. If the caller set a limit, a cut is what the caller
    wants.
    """
    return answered.reply.finish == "length" and request.options.max_tokens is None


def _mark_cut(attempts: list[Attempt], answered: WorkerAnswer, *, lost: bool) -> None:
    """Record the attempt whose answer was cut off as a failed one (kind "length").

    Args:
        lost: whether its tokens and dollars are those of the attempt, and not of the call's answer.
    """
    for place in reversed(range(len(attempts))):
        attempt = attempts[place]
        if attempt.worker == answered.worker and attempt.error_kind in (None, "length"):
            attempts[place] = attempt.model_copy(
                update={
                    "error_kind": "length",
                    "error": "The answer was cut off at max_tokens.",
                    "spent": replace(answered.spent, saved_usd=0.0) if lost else Spent(),
                }
            )
            return
