"""Checks a team: asks each worker one small question, lets the planner plan one, and returns what each answered.

Each call of a worker is a single attempt without retries, fallbacks and the response cache. All calls are paid like any
other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from podium.calls.call_state import open_call_state
from podium.calls.worker_call import first_reservation
from podium.conductor.plan_format import FORMAT_WORDS
from podium.errors import BudgetExceededError, UsageError, WorkerError
from podium.spending import Ledger, SpendLimit
from podium.team.opened_planner import OpenedPlanner, open_planner
from podium.team.settings import TeamSettings
from podium.team.team import Team
from podium.team.team_file import open_pool
from podium.team.team_worker import TeamWorker
from podium.types import Budget, Message, Question, Receipt, Spent
from podium.workers.base import Request, Worker, has_paid_workers, time_limit
from podium.workers.pool import Pool
from podium.workflow import PlanError

QUESTION = "Reply with the one word: ready"
_TO_PLAN = "What is 17 plus 25?"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one worker or the planner did with its small question."""

    worker: str
    answered: bool
    seconds: float
    """Wall time of the call."""
    text: str
    """The reply, or why there is none."""
    error: str | None = None
    """The kind of the `WorkerError`; "budget_exceeded" if the call was refused before it began; of the planner also
    "no_plan" or "usage"."""
    spent: Spent = Spent()
    remedy: str | None = None
    """What the user can do about the failure. None if there is no failure, or if `text` says it."""
    first_token_s: float | None = None
    """Seconds until a streamed reply began. None if the reply was not streamed."""
    role: Literal["worker", "planner"] = "worker"
    model: str | None = None
    """The model that answered, according to the provider."""
    note: str | None = None
    """A remark on a success that may surprise the user."""
    plan_format: str | None = None
    """The format in which an untrained Conductor returns plans (`conductor.plan_format`)."""


async def check_team(settings: TeamSettings, limit_s: float | None = None) -> tuple[CheckResult, ...]:
    """Check each worker of a team and then its planner, for `limit_s` seconds each or the worker's own timeout, and
    within the budget of the day."""
    pool = open_pool(settings, ready=False)
    try:
        try:
            planner: OpenedPlanner | UsageError = open_planner(settings, pool, seed="check")
        except UsageError as error:
            planner = error
        paid, pays = has_paid_workers(pool), isinstance(planner, OpenedPlanner) and planner.pays
        with open_call_state(paid_workers=paid, pays=pays, day_usd=settings.budget.day_usd) as call_state:
            results = await check_workers(pool, limit_s, call_state.spend_limits if paid else ())
            noted = [_with_fallback_note(result, pool) for result in results]
            if isinstance(planner, UsageError):
                refused = CheckResult("conductor", False, 0.0, str(planner), "usage", role="planner")
                return (*noted, refused)
            team = Team.from_settings(settings, pool, planner=planner, call_state=call_state)
            try:
                return (*noted, await check_planner(team, limit_s))
            finally:
                await team.release()
    finally:
        await pool.close()


async def check_workers(
    workers: Iterable[Worker], limit_s: float | None = None, spend_limits: Sequence[SpendLimit] = ()
) -> tuple[CheckResult, ...]:
    """Call all of `workers` at once, but those that share a machine's memory or all cores in turns; returns the results
    in order.

    Args:
        limit_s: time limit of each call. Default: the worker's own timeout.
        spend_limits: limits that pay for the calls. If a limit refuses a call, the worker is not called.
    """
    ledger = Ledger(Budget(), spend_limits=spend_limits)
    hosts: dict[str | None, asyncio.Semaphore] = {}

    async def ask(worker: Worker) -> CheckResult:
        host = worker.limits.host
        at_once = 1 if host is None else worker.limits.loaded_at_once
        shares = host is not None or worker.takes_all_cores
        turn = hosts.setdefault(host, asyncio.Semaphore(at_once)) if shares else None
        request = Request((Message(role="user", content=QUESTION),), seed="check")
        reservation = first_reservation(worker, request.messages)
        async with turn or nullcontext():
            try:
                await ledger.reserve(reservation)
            except BudgetExceededError as refusal:
                return CheckResult(worker.profile.name, False, 0.0, str(refusal), "budget_exceeded")
            try:
                return await _answer(worker, request, limit_s)
            finally:
                ledger.settle(reservation, request.receipt.spent)

    async with asyncio.TaskGroup() as group:
        checks = [group.create_task(ask(worker)) for worker in workers]
    return tuple(task.result() for task in checks)


async def _answer(worker: Worker, request: Request, limit_s: float | None) -> CheckResult:
    name, started = worker.profile.name, time.perf_counter()
    try:
        async with time_limit(worker.limits.timeout if limit_s is None else limit_s):
            reply = await worker.answer(request)
    except WorkerError as failure:
        seconds, spent = time.perf_counter() - started, request.receipt.spent
        # A replay worker is fine if its recording can be read, even if the recording lacks this question.
        answered = failure.kind == "unrecorded"
        remedy = None if answered else _remedy(failure)
        return CheckResult(name, answered, seconds, str(failure), failure.kind, spent, remedy)
    seconds = time.perf_counter() - started
    request.receipt.spent = reply.spent(worker.profile) if worker.is_costly else Spent(reply.usage)
    asked_without = f"its endpoint refuses {', '.join(reply.dropped)}, and was asked without."
    return CheckResult(
        name,
        True,
        seconds,
        "ready" if worker.is_tool else reply.text,  # A tool has nothing to work on here.
        spent=request.receipt.spent,
        first_token_s=reply.first_token_s,
        model=reply.model,
        note=asked_without if reply.dropped else None,
    )


async def check_planner(team: Team, limit_s: float | None = None) -> CheckResult:
    """Let the planner plan one small question, which costs as much as a plan. The error is "budget_exceeded" if the
    budget of a question or a spend limit refuses the plan."""
    error: str | None = None
    started, receipt = time.perf_counter(), Receipt()
    try:
        async with asyncio.timeout(limit_s) as limit:
            plan = await team.runner.write_plan(Question(text=_TO_PLAN), seed="check", receipt=receipt)
    except (WorkerError, UsageError) as failure:
        text, error = str(failure), failure.kind if isinstance(failure, WorkerError) else "usage"
    except BudgetExceededError as refusal:
        text, error = str(refusal), "budget_exceeded"
    except TimeoutError:
        if not limit.expired():
            raise
        text, error = f"No plan within {limit_s:g} s.", "timeout"
    else:
        text = plan.text
        if isinstance(plan.decision, PlanError):
            text, error = f"It wrote no plan. {plan.decision}", "no_plan"
    conductor = team.opened_planner.conductor
    plan_format = None if conductor is None else conductor.policy.plan_format
    return CheckResult(
        team.planner.name,
        error is None,
        time.perf_counter() - started,
        text,
        error,
        receipt.spent,
        role="planner",
        plan_format=None if plan_format is None else FORMAT_WORDS[plan_format],
    )


def _with_fallback_note(result: CheckResult, pool: Pool) -> CheckResult:
    """The result, with a warning if the calls of a free worker may end with a fallback that costs money."""
    worker = pool.named(result.worker)
    # A team costs what its workers cost.
    if isinstance(worker, TeamWorker) or not worker.profile.price.is_zero:
        return result
    fallback = pool.fallback(worker)
    while fallback is not None and fallback.profile.price.is_zero:
        fallback = pool.fallback(fallback)
    if fallback is None:
        return result
    paid = f"it has no price, and its fallback {fallback.profile.name!r} costs money."
    return replace(result, note=paid if result.note is None else f"{result.note} {paid}")


def _remedy(error: WorkerError) -> str | None:
    """What the user can do about a failure. None if the error's message says it."""
    match error.kind:
        case "timeout":
            return "See whether the server is up, or raise the timeout in its limits."
        case "connection" if error.retryable:
            return "See whether the server runs, and whether base_url is right."
        case "rate_limited":
            return "Wait, then set limits.rpm and limits.tpm to what the provider allows, or pay for more."
        case "status" if error.retryable:
            return "The provider has a problem: try again later, or name a fallback."
    return None
