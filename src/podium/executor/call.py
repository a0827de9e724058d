"""One step's call: looks in the response cache, calls the worker, goes on to its fallbacks.

The boundary at which a `WorkerError` becomes data. What a worker raises besides is a bug and escapes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from podium.errors import WorkerError
from podium.executor.question_context import QuestionContext
from podium.executor.worker_call import RefusalError, WorkerCall
from podium.trace import Attempt
from podium.workers.base import Reply, Request, Worker
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Answered:
    """A worker answered."""

    worker: str
    """The chosen one or a fallback."""
    reply: Reply
    cost_usd: float
    """Dollars paid now."""
    saved_usd: float
    """Dollars that cached answers had cost, a cut one that it stands in for included."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No worker answered."""

    error: str
    """One sentence."""
    refused: bool
    """By a budget, before any worker was called."""


async def call(
    question_context: QuestionContext,
    worker: Worker,
    request: Request,
    attempts: list[Attempt],
    stream: Callable[[int], Callable[[str], None]] | None = None,
) -> Answered | Unanswered:
    """Call `worker`, then the chain of its fallbacks, until one answers.

    Args:
        attempts: grows by one for each try, the one that is cancelled included.
        stream: makes, for try number 0, 1, ..., the listener of its text; two tries may write at the same time.
    """
    failures: list[str] = []
    tries = count()
    cut: Answered | None = None
    saved_usd = 0.0
    left = deque(
        _Turn(each, wait=question_context.pool.fallback(each) is None)
        for each in _chain(question_context.pool, worker)
    )
    cooling_down: Worker | None = None
    calls = 1
    while left:
        turn = left.popleft()
        worker_call = WorkerCall(
            question_context, turn.worker, request, attempts, calls=calls, wait=turn.wait
        )
        if stream is not None:
            worker_call.stream_to(stream, tries)
        cache = question_context.dispatcher.cache
        try:
            reply = await (
                worker_call.reply() if cache is None else cache.reply(turn.worker, request, worker_call.reply)
            )
        except RefusalError as refusal:
            return cut or Unanswered(" ".join([*failures, str(refusal)]), refused=not failures)
        except WorkerError as error:
            calls = 0
            failures.append(f"{turn.worker.profile.name}: {error}")
            if not turn.wait and question_context.dispatcher.channel(turn.worker).breaker.state != "closed":
                cooling_down = cooling_down or turn.worker
        else:
            profile = turn.worker.profile
            usd = reply.price(profile)
            paid_usd = 0.0 if reply.cached else usd
            saved_usd += usd - paid_usd
            calls = calls if reply.cached else 0
            answered = Answered(profile.name, reply, paid_usd, saved_usd)
            if not _is_cut(answered, request) or (cut is None and not left):
                return answered
            _hand_over(attempts, answered)
            # The attempt now holds what was paid.
            cut = replace(cut or answered, cost_usd=0.0, saved_usd=saved_usd)
        if not left and cooling_down is not None and cut is None:
            left.append(
                _Turn(cooling_down, wait=True)
            )  # No fallback could answer: the worker is worth the wait.
            cooling_down = None
    return cut or Unanswered(" ".join(failures), refused=False)


@dataclass(frozen=True, slots=True)
class _Turn:
    worker: Worker
    wait: bool
    """Whether to wait for it, if it is in cooldown."""


def _chain(pool: Pool, worker: Worker) -> Iterator[Worker]:
    """The worker and its fallbacks; a pool has no circle of them."""
    following: Worker | None = worker
    while following is not None:
        yield following
        following = pool.fallback(following)


def _is_cut(answered: Answered, request: Request) -> bool:
    """Whether the answer ends where the worker's own limit was reached, and not where the caller wants it to."""
    return answered.reply.finish == "length" and request.options.max_tokens is None


def _hand_over(attempts: list[Attempt], answered: Answered) -> None:
    """Say of the try whose answer was cut that it is not the one that counts, and what it cost."""
    for place in reversed(range(len(attempts))):
        attempt = attempts[place]
        if attempt.worker == answered.worker and attempt.error_kind is None:
            attempts[place] = attempt.model_copy(
                update={
                    "error_kind": "length",
                    "error": "The answer was cut off at max_tokens.",
                    "cost_usd": answered.cost_usd,
                }
            )
            return
