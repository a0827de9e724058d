"""GET /api/spend: the dollars of some days by worker, key, planner or day, the accuracy by outcomes, and the budgets.

A key sees the sums of its own requests and its own budget. An admin's key sees all. The store makes the sums.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from podium.errors import UsageError
from podium.server.api_errors import invalid
from podium.server.keys.caller import Caller
from podium.server.requests import RequestCaller
from podium.server.service import Service
from podium.spending.spend_limit import NANO_PER_USD
from podium.store.spend_report import DEFAULT_DAYS, MAX_DAYS, SpendBy, SpendQuery


def add_routes(app: FastAPI, service: Service) -> None:
    """The route /api/spend."""

    @app.get("/api/spend")
    async def spend(caller: RequestCaller, query: Annotated[SpendParameters, Query()]) -> dict[str, Any]:
        """Dollars, calls and tokens of the questions that began in these days (UTC), and the budgets."""
        try:
            asked = SpendQuery.of(query.since, query.until, query.by, caller.visible_owner)
        except UsageError as error:
            raise invalid(str(error), "since", code="invalid_days") from None
        report = await service.store.to_thread(service.store.spend, asked)
        return report.model_dump(mode="json") | {"budgets": await _budgets(service, caller)}


async def _budgets(service: Service, caller: Caller) -> list[dict[str, Any]]:
    """The budgets that this caller may see: of the server's day, and of keys. Reservations of a killed process stay."""
    rows = []
    if caller.visible_owner is None:
        rows += [
            _row(None, limit.name, limit.limit_usd, limit.spent_usd, limit.reserved_usd)
            for limit in service.call_state.shared_limits
        ]
    for stored, spending in await service.keys.key_store.spendings(datetime.now(UTC)):
        allowance, name = stored.caller.allowance, stored.caller.name
        if allowance is not None and caller.visible_owner in (None, name):
            spent, reserved = spending.spent / NANO_PER_USD, spending.reserved / NANO_PER_USD
            rows.append(_row(name, allowance.duration, allowance.usd, spent, reserved))
    return rows


def _row(
    key: str | None, period: str, limit_usd: float, spent_usd: float, reserved_usd: float
) -> dict[str, Any]:
    return {
        "key": key,
        "period": period,
        "limit_usd": limit_usd,
        "spent_usd": spent_usd,
        "reserved_usd": reserved_usd,
        "left_usd": max(0.0, limit_usd - spent_usd - reserved_usd),
    }


class SpendParameters(BaseModel):
    """Which days, and how they are grouped. An unknown parameter is refused: it was meant to narrow the sums."""

    model_config = ConfigDict(extra="forbid")

    since: date | None = Field(
        None,
        description=f"The first day (UTC), as 2026-03-01. Default: {DEFAULT_DAYS} days with the last one.",
    )
    until: date | None = Field(
        None, description=f"The last day. Default: today. From 1 to {MAX_DAYS:,} days."
    )
    by: SpendBy = "worker"
