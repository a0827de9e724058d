"""One step's call: reserved, tried, retried, handed to a fallback, settled.

The boundary at which a `WorkerError` becomes data. What a worker raises besides is a bug and escapes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import stamina

from podium.errors import WorkerError
from podium.executor.inquiry import Inquiry
from podium.executor.ledger import Hold
from podium.trace import Attempt
from podium.types import Usage, estimate_tokens
from podium.workers.base import Reply, Request, Worker
from podium.workers.retry import retry


@dataclass(frozen=True, slots=True)
class Answered:
    """A worker answered."""

    worker: str
    """The chosen one or a fallback."""
    reply: Reply
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No worker answered."""

    error: str
    """One sentence."""
    refused: bool
    """By the budget, before any worker was called."""


async def call(
    inquiry: Inquiry, worker: Worker, request: Request, attempts: list[Attempt]
) -> Answered | Unanswered:
    """Ask `worker`, then the chain of its fallbacks, until one answers.

    Args:
        attempts: grows by one for each try, the one that is cancelled included.
    """
    loop = asyncio.get_running_loop()
    input_tokens = sum(estimate_tokens(message.content) for message in request.messages)
    failures: list[str] = []
    while True:
        profile, limits = worker.profile, worker.limits
        hold = Hold.most(
            input_tokens=input_tokens,
            output_tokens=limits.max_tokens,
            price=profile.price,
            calls=0 if failures else 1,
        )
        refusal = inquiry.ledger.reserve(hold, loop.time())
        if refusal is not None:
            return Unanswered(" ".join([*failures, refusal]), refused=not failures)
        usage, cost_usd = Usage(), 0.0
        try:
            reply = await _tries(inquiry, worker, request, hold.tokens, attempts)
            usage, cost_usd = reply.usage, profile.price.cost(reply.usage)
            return Answered(profile.name, reply, cost_usd)
        except WorkerError as error:
            failures.append(f"{profile.name}: {error}")
        finally:
            inquiry.ledger.settle(hold, usage, cost_usd)
        fallback = inquiry.pool.fallback(worker)  # A chain: a pool has no circle of fallbacks.
        if fallback is None:
            return Unanswered(" ".join(failures), refused=False)
        worker = fallback


async def _tries(
    inquiry: Inquiry, worker: Worker, request: Request, tokens: int, attempts: list[Attempt]
) -> Reply:
    """Try, and try again what may pass; the last error is raised."""
    settings = inquiry.settings
    if not worker.limits.retries:  # The machinery below costs a simulated worker more than its answer.
        return await _try(inquiry, worker, request, tokens, attempts)
    async for attempt in stamina.retry_context(
        on=partial(retry, settings.longest_wait_s),
        attempts=worker.limits.retries + 1,
        timeout=None,
        wait_initial=settings.first_wait_s,
        wait_max=settings.longest_wait_s,
        wait_jitter=settings.first_wait_s,
    ):
        with attempt:
            reply = await _try(inquiry, worker, request, tokens, attempts)
    return reply


async def _try(
    inquiry: Inquiry, worker: Worker, request: Request, tokens: int, attempts: list[Attempt]
) -> Reply:
    """One try, within the worker's gate and time limit."""
    name, timeout = worker.profile.name, worker.limits.timeout
    gate = inquiry.gates.of(worker)
    async with gate.slots:
        await gate.admit(tokens)
        started = inquiry.elapsed()

        def record(kind: str | None = None, message: str | None = None) -> None:
            attempts.append(
                Attempt(
                    worker=name, started_s=started, ended_s=inquiry.elapsed(), error_kind=kind, error=message
                )
            )

        try:
            async with asyncio.timeout(timeout):
                reply = await worker.answer(request)
        except WorkerError as error:
            record(error.kind, str(error))
            raise
        except TimeoutError:
            late = WorkerError(f"No answer within {timeout:g} s.", kind="timeout", passing=True)
            record(late.kind, str(late))
            raise late from None
        except asyncio.CancelledError:
            record("cancelled", "Cancelled while in flight.")
            raise
        record()
        return reply
