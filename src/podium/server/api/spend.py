"""GET /api/spend: dollars of some days, by worker, key, planner or day; accuracy by feedback; what budgets leave.

A key sees the sums of its own requests and its own budget; an admin's key sees all. The store makes the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Annotated, Self

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from podium.errors import UsageError
from podium.executor.accounts import Account
from podium.server.api_errors import error_responses, invalid, missing
from podium.server.keys.caller import NANO_PER_USD, Caller
from podium.server.service import Service
from podium.trace.spend import MAX_DAYS, Accuracy, Spend, SpendBy, SpendGroup, SpendQuery, Sums

_DAYS = 30
"""Days up to today, if the query names none."""


def routes(service: Service) -> APIRouter:
    """The route /api/spend."""
    router = APIRouter(tags=["spend"])

    @router.get("/api/spend", responses=error_responses(400, 401, 404, 422, 429, 503))
    async def spend(request: Request, query: Annotated[SpendParameters, Query()]) -> SpendReply:
        """Dollars, calls and tokens of the questions that began in these days (UTC), and the budgets."""
        caller = await service.authenticate(request.headers.get("authorization"))
        if service.store is None:
            raise missing("This server keeps no traces, so it cannot say what they cost.")
        try:
            asked = query.of(caller, datetime.now(UTC).date())
        except UsageError as error:
            raise invalid(str(error), "since", code="invalid_days") from None
        return SpendReply.of(await service.store.spend(asked), await _budgets(service, caller))

    return router


async def _budgets(service: Service, caller: Caller) -> list[BudgetLeft]:
    """The budgets that this caller may see: of the server's day, and of keys."""
    found = []
    if caller.visible_owner is None:
        for account in service.dispatcher.accounts:
            if isinstance(account, Account):
                spent, reserved = account.spent_usd, account.reserved_usd
                found.append(BudgetLeft.made(None, account.name, account.limit_usd, spent, reserved))
    if service.keys is None:
        return found
    for stored, spending in await service.keys.register.spendings(datetime.now(UTC)):
        allowance, name = stored.caller.allowance, stored.caller.name
        if allowance is not None and caller.visible_owner in (None, name):
            spent, reserved = spending.spent / NANO_PER_USD, spending.reserved / NANO_PER_USD
            found.append(BudgetLeft.made(name, allowance.duration, allowance.usd, spent, reserved))
    return found


class SpendParameters(BaseModel):
    """Which days, and how they are grouped. An unknown parameter is refused: it was meant to narrow the sums."""

    model_config = ConfigDict(extra="forbid")

    since: date | None = Field(
        None, description=f"The first day (UTC), as 2026-03-01. Default: {_DAYS} days with the last one."
    )
    until: date | None = Field(
        None, description=f"The last day. Default: today. From 1 to {MAX_DAYS:,} days."
    )
    by: SpendBy = "worker"

    def of(self, caller: Caller, today: date) -> SpendQuery:
        """The store's query, restricted to what the caller may see.

        Raises:
            UsageError: the days are in the wrong order, or too many.
        """
        until = self.until or today
        since = self.since or date.fromordinal(max(1, until.toordinal() - _DAYS + 1))
        return SpendQuery(since, until, self.by, caller.visible_owner)


class JudgedShare(BaseModel):
    """The share of right answers among those that users judged, with its 95 % interval after Wilson."""

    right: int
    judged: int
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, accuracy: Accuracy | None) -> Self | None:
        """None: nothing was judged."""
        if accuracy is None:
            return None
        return cls(**{name: getattr(accuracy, name) for name in cls.model_fields})


class SpendSums(BaseModel):
    """Sums over questions."""

    questions: int
    calls: int
    """Calls of workers that were answered or failed for good, and plans that a model wrote."""
    unpriced_calls: int
    """Those of the calls whose price is not known; the dollars leave them out."""
    tokens: int
    cost_usd: float
    """Dollars of workers and plans."""
    planning_usd: float
    """The part of the dollars that plans cost."""
    unpaid_usd: float
    """The part of cost_usd that nobody pays: recorded workers."""
    saved_usd: float
    """Dollars that the response cache saved."""

    @classmethod
    def of(cls, sums: Sums) -> Self:
        """From the store's sums."""
        return cls(**asdict(sums))


class SpendOnDay(BaseModel):
    """A group's dollars and unpriced calls on one day."""

    day: date
    cost_usd: float
    unpriced_calls: int


class SpendOfGroup(SpendSums):
    """One worker, key, planner or day."""

    name: str | None
    """null: the plans among the workers, and among the keys the questions without a key."""
    accuracy: JudgedShare | None
    """The accuracy on the questions that users judged; a worker's are those in which it was called."""
    days: list[SpendOnDay]
    """The days that have any."""

    @classmethod
    def of_group(cls, group: SpendGroup) -> Self:
        """From the store's group."""
        return cls(
            **asdict(group.sums),
            name=group.name,
            accuracy=JudgedShare.of(group.accuracy),
            days=[
                SpendOnDay(day=day, cost_usd=sums.cost_usd, unpriced_calls=sums.unpriced_calls)
                for day, sums in group.days.items()
            ],
        )


class BudgetLeft(BaseModel):
    """A budget now."""

    key: str | None
    """The key's name; null: the server's own."""
    period: str
    """"day" or "month" (UTC), or "ever"."""
    limit_usd: float
    spent_usd: float
    reserved_usd: float
    """Dollars reserved for calls in flight. What a killed process had reserved stays so."""
    left_usd: float

    @classmethod
    def made(cls, key: str | None, period: str, limit: float, spent: float, reserved: float) -> Self:
        """What is left is never below 0."""
        left = max(0.0, limit - spent - reserved)
        return cls(
            key=key, period=period, limit_usd=limit, spent_usd=spent, reserved_usd=reserved, left_usd=left
        )


class SpendReply(BaseModel):
    """What was spent, and what the budgets leave."""

    since: date
    until: date
    by: SpendBy
    total: SpendSums
    accuracy: JudgedShare | None
    groups: list[SpendOfGroup]
    """The dearest first; days in their order."""
    budgets: list[BudgetLeft]

    @classmethod
    def of(cls, spend: Spend, budgets: Sequence[BudgetLeft]) -> Self:
        """From the store's sums."""
        query = spend.query
        return cls(
            since=query.since,
            until=query.until,
            by=query.by,
            total=SpendSums.of(spend.total),
            accuracy=JudgedShare.of(spend.accuracy),
            groups=[SpendOfGroup.of_group(group) for group in spend.groups],
            budgets=list(budgets),
        )
