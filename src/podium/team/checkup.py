"""Checks a pool: sends one small question to all workers, and returns how each worker answered.

Each call is a single attempt without retries, fallbacks and the response cache. It is paid like any other call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal

from podium.calls.ledger import Ledger
from podium.calls.worker_call import first_reservation
from podium.errors import RefusalError, WorkerError
from podium.types import Budget, Message, Spent
from podium.workers.base import Request, Worker, time_limit
from podium.workers.spend_limit import SpendLimit

QUESTION = "Reply with the one word: ready"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of one worker to the check."""

    worker: str
    answered: bool
    seconds: float
    """Wall time of the call."""
    text: str
    """The reply, or why there is none."""
    remedy: str | None = None
    """What the user can do about the failure. None if there is no failure, or if `text` says it."""
    error: str | None = None
    """The kind of the `WorkerError`, or "budget" if the call was refused before it began."""
    first_token_s: float | None = None
    """Seconds until a streamed reply began. None if the reply was not streamed."""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    """Whether Podium estimated the tokens."""
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether the check cost money at an unknown price."""
    role: Literal["worker", "planner"] = "worker"
    """Whether a worker answered the question or the planner planned it."""
    model: str | None = None
    """The model that answered, according to the provider."""
    note: str | None = None
    """A remark on a success that may surprise the user."""
    plan_format: str | None = None
    """The format in which an untrained Conductor returns plans, if it is not text (`conductor.plan_format`)."""


async def check_workers(
    workers: Iterable[Worker], limit_s: float | None = None, spend_limits: Sequence[SpendLimit] = ()
) -> tuple[CheckResult, ...]:
    """Call all of `workers` at once, but those that share a machine's memory in turns; returns the results in order.

    Args:
        limit_s: time limit of each call. Default: the worker's own timeout.
        spend_limits: limits that pay for the calls. If a limit refuses a call, the worker is not called.
    """
    ledger = Ledger(Budget(), spend_limits=spend_limits)
    hosts: dict[str, asyncio.Semaphore] = {}

    async def ask(worker: Worker) -> CheckResult:
        host, loaded_at_once = worker.limits.host, worker.limits.loaded_at_once
        turn = None if host is None else hosts.setdefault(host, asyncio.Semaphore(loaded_at_once))
        async with turn or nullcontext():
            return await _ask(worker, limit_s, ledger)

    async with asyncio.TaskGroup() as group:
        checks = [group.create_task(ask(worker)) for worker in workers]
    return tuple(task.result() for task in checks)


async def _ask(worker: Worker, limit_s: float | None, ledger: Ledger) -> CheckResult:
    """Call `worker` if `ledger` allows the most that the call may cost."""
    request = Request((Message(role="user", content=QUESTION),), seed="check")
    try:
        async with ledger.paying(first_reservation(worker, request.messages), request.receipt):
            return await _answer(worker, request, limit_s)
    except RefusalError as refusal:
        return CheckResult(worker.profile.name, False, 0.0, str(refusal), error="budget")


async def _answer(worker: Worker, request: Request, limit_s: float | None) -> CheckResult:
    started = time.perf_counter()
    reply, failure = None, None
    try:
        async with time_limit(worker.limits.timeout if limit_s is None else limit_s):
            reply = await worker.answer(request)
    except WorkerError as error:
        failure = error
    seconds = time.perf_counter() - started
    if reply is not None:
        request.receipt.spent = reply.spent(worker.profile) if worker.is_costly else Spent()
    usage = request.receipt.spent.usage if reply is None else reply.usage
    dropped = () if reply is None else reply.dropped
    # A replay worker is fine if its recording can be read, even if the recording lacks this question.
    answered = failure is None or failure.kind == "unrecorded"
    said = str(failure) if reply is None else reply.text
    return CheckResult(
        worker.profile.name,
        answered,
        seconds,
        "ready" if worker.is_tool and reply is not None else said,  # A tool has nothing to work on here.
        None if failure is None or answered else _remedy(failure),
        None if failure is None else failure.kind,
        first_token_s=None if reply is None else reply.first_token_s,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        estimated=usage.estimated,
        cost_usd=request.receipt.spent.cost_usd,
        model=None if reply is None else reply.model,
        note=f"its endpoint refuses {', '.join(dropped)}, and was asked without." if dropped else None,
    )


def _remedy(error: WorkerError) -> str | None:
    """What the user can do about a failure. None if the error's message says it."""
    match error.kind:
        case "timeout":
            return "See whether the server is up, or raise the timeout in its limits."
        case "connection" if error.retryable:
            return "See whether the server runs, and whether base_url is right."
        case "limited":
            return "Wait, then set limits.rpm and limits.tpm to what the provider allows, or pay for more."
        case "status" if error.retryable:
            return "The provider has a problem: try again later, or name a fallback."
    return None
