"""The list of traces on the wire: what may be asked of it, and its pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from podium.server.keys import Caller
from podium.trace import TraceStatus
from podium.trace.query import MAX_PAGE, Filters, TraceSummary


class TraceQuery(BaseModel):
    """Filters; each that is given must hold. A parameter that is not known is refused: it was meant to narrow."""

    model_config = ConfigDict(extra="forbid")

    since: datetime | None = Field(None, description="Begun then or later; in UTC where no zone is given.")
    until: datetime | None = Field(None, description="Begun before.")
    planner: str | None = Field(None, max_length=200)
    worker: str | None = Field(
        None, max_length=200, description="That answered a step, or was asked in vain."
    )
    status: TraceStatus | None = None
    min_cost: float | None = Field(None, ge=0, allow_inf_nan=False, description="Dollars.")
    max_cost: float | None = Field(None, ge=0, allow_inf_nan=False)
    q: str | None = Field(
        None,
        max_length=1000,
        description="In the first or the last 1,000 characters of the question; the case of letters is no matter.",
    )

    def of(self, caller: Caller) -> Filters:
        """As the store knows them, of what the caller may see."""
        return Filters(
            since=_utc(self.since),
            until=_utc(self.until),
            planner=self.planner,
            worker=self.worker,
            status=self.status,
            min_cost=self.min_cost,
            max_cost=self.max_cost,
            q=self.q,
            owner=seen_by(caller),
        )


class PageQuery(TraceQuery):
    """Filters, and which page."""

    limit: int = Field(50, ge=1, le=MAX_PAGE)
    cursor: str | None = Field(None, max_length=1000, description="`next` of the page before.")


class TraceListed(BaseModel):
    """A line of the list."""

    id: str
    started_at: str
    """ISO 8601, UTC."""
    planner: str
    status: TraceStatus
    question: str
    """The first 200 characters."""
    calls: int
    cost_usd: float
    seconds: float
    workers: list[str]
    """That answered, or were asked in vain."""
    owner: str | None
    """Name of the key."""

    @classmethod
    def of(cls, row: TraceSummary) -> Self:
        """As the store has it."""
        return cls(
            id=row.id,
            started_at=row.started.isoformat(timespec="milliseconds"),
            planner=row.planner,
            status=row.status,
            question=row.question,
            calls=row.calls,
            cost_usd=row.cost_usd,
            seconds=row.seconds,
            workers=list(row.workers),
            owner=row.owner,
        )


class TracePage(BaseModel):
    """A part of the list, newest first."""

    traces: list[TraceListed]
    next: str | None = Field(description="The cursor of the next page; null: this is the last.")
    total: int | None = Field(
        description="Of all pages, told with the first; null where there are more than are counted."
    )


def seen_by(caller: Caller) -> str | None:
    """Whose traces alone the caller sees; None: all."""
    return None if caller.admin else caller.name or ""


def _utc(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
