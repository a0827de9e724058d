"""Sums what was spent on some days by day, worker, key or planner, with the accuracy from users' outcomes.

This module builds the statements and reads their rows, and `trace_store` runs them. Days are in UTC. A question counts
on the day on which it began.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Self, get_args

from pydantic import computed_field
from sqlalchemy import Column, ColumnElement, Select, and_, case, func, select

from podium.errors import UsageError
from podium.store.schema import COSTS, DAILY_COSTS, TRACES
from podium.trace.costs import PLANNING
from podium.trace.serialization import storable
from podium.types import FrozenModel

SpendBy = Literal["worker", "key", "planner", "day"]
SPEND_BY: tuple[SpendBy, ...] = get_args(SpendBy)
DEFAULT_DAYS = 30
MAX_DAYS = 1000
_COLUMN: dict[SpendBy, str] = {"worker": "worker", "key": "owner", "planner": "planner", "day": "day"}
_Z = 1.959964
"""Standard normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class SpendQuery:
    """The days and the grouping of the sums.

    Raises:
        UsageError: the days are in the wrong order, or too many.
    """

    since: date
    """The first day of the report."""
    until: date
    """The last day of the report."""
    by: SpendBy = "worker"
    owner: str | None = None
    """The name of a key. Only its questions count. If it is None, all questions count."""

    def __post_init__(self) -> None:
        days = (self.until - self.since).days + 1
        if not 1 <= days <= MAX_DAYS:
            wrong = "the last day is before the first" if days < 1 else f"these are {days:,} days"
            raise UsageError(f"From {self.since} to {self.until}: {wrong}; give from 1 to {MAX_DAYS:,} days.")

    @classmethod
    def of(cls, since: date | None, until: date | None, by: SpendBy, owner: str | None = None) -> Self:
        """The query of these days. The default of `until` is today, and the default of `since` gives `DEFAULT_DAYS`
        days."""
        last = until or datetime.now(UTC).date()
        first = since or date.fromordinal(max(1, last.toordinal() - DEFAULT_DAYS + 1))
        return cls(first, last, by, owner)

    def sums(self) -> Select[Any]:
        """Selects the day, the name of the group, and the fields of `SpendSums` in their order."""
        spent = DAILY_COSTS.c
        name = spent[_COLUMN[self.by]]

        def total(column: Column[Any], *, of_plans: bool = False) -> ColumnElement[Any]:
            return func.sum(case((spent.worker == PLANNING, column), else_=0) if of_plans else column)

        return (
            select(
                spent.day,
                name.label("name"),
                # One worker has at most one row for each question, and the plans have one too.
                total(spent.questions, of_plans=self.by != "worker"),
                *(total(column) for column in (spent.calls, spent.unpriced, spent.tokens, spent.usd)),
                total(spent.usd, of_plans=True),
                *(total(column) for column in (spent.unpaid_usd, spent.saved_usd)),
            )
            .where(spent.day >= self.since.isoformat(), spent.day <= self.until.isoformat())
            .where(*([] if self.owner is None else [spent.owner == storable(self.owner)]))
            .group_by(spent.day, name)
            .order_by(spent.day, name)
        )

    def outcomes(self) -> Select[Any]:
        """Selects a group's name, the number of questions that were answered rightly, and the number that were judged.
        A worker's group has the questions in which it was called."""
        first = datetime(self.since.year, self.since.month, self.since.day, tzinfo=UTC).timestamp()
        # The day after the last day is not computed as a date, since the last day may be the calendar's last.
        last = first + timedelta(days=(self.until - self.since).days + 1).total_seconds()
        traces, costs = TRACES.c, COSTS.c
        name = costs[_COLUMN[self.by]]
        paid = TRACES.join(COSTS, and_(costs.started == traces.started, costs.id == traces.id))
        statement = select(name, func.sum(case((traces.outcome == "right", 1), else_=0)), func.count())
        statement = statement.select_from(paid).where(
            traces.outcome.in_(["right", "wrong"]), traces.started >= first, traces.started < last
        )
        if self.owner is not None:
            statement = statement.where(traces.owner == storable(self.owner))
        if self.by != "worker":
            statement = statement.where(costs.worker == PLANNING)
        return statement.group_by(name)


class SpendSums(FrozenModel):
    """Sums over questions."""

    questions: int = 0
    calls: int = 0
    """Calls of workers that were answered or failed for good, and plans that a model wrote."""
    unpriced_calls: int = 0
    """How many of the calls have no known price. The dollars leave them out."""
    tokens: int = 0
    """Tokens of input and output together."""
    cost_usd: float = 0.0
    """Dollars of workers and plans."""
    planning_usd: float = 0.0
    """The part of the dollars that plans cost."""
    unpaid_usd: float = 0.0
    """The part of `cost_usd` that is not paid, because the workers were recorded."""
    saved_usd: float = 0.0
    """Dollars that the response cache saved."""

    def __add__(self, other: SpendSums) -> SpendSums:
        names = SpendSums.model_fields
        return SpendSums(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Accuracy(FrozenModel):
    """The share of right answers among those that users judged, with its 95 % interval after Wilson (1927). Users
    choose what they judge, so it may differ from the accuracy on all questions."""

    right: int
    judged: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mean(self) -> float:
        """The share of right answers."""
        return self.right / self.judged

    @computed_field  # type: ignore[prop-decorator]
    @property
    def low(self) -> float:
        """The interval's lower end."""
        return max(0.0, self._end(-1))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def high(self) -> float:
        """The interval's upper end."""
        return min(1.0, self._end(1))

    def _end(self, sign: int) -> float:
        centre = self.mean + _Z * _Z / (2 * self.judged)
        spread = self.mean * (1 - self.mean) / self.judged + (_Z / (2 * self.judged)) ** 2
        return (centre + sign * _Z * math.sqrt(spread)) / (1 + _Z * _Z / self.judged)


class DaySpend(SpendSums):
    """The sums of one day."""

    day: date


class SpendGroup(SpendSums):
    """The sums of one worker, key, planner or day."""

    name: str | None
    """The worker, key, planner or day. None for plans among workers, and for questions without a key."""
    accuracy: Accuracy | None
    """The accuracy of the group's judged answers. None if no answer was judged."""
    days: tuple[DaySpend, ...]
    """The group's sums on each day that has any."""


class SpendReport(FrozenModel):
    """The sums that a `SpendQuery` asks for, as `podium traces spend --json` and `/api/spend` give them."""

    since: date
    until: date
    by: SpendBy
    total: SpendSums
    accuracy: Accuracy | None
    """The accuracy of all judged answers. None if no answer was judged."""
    groups: tuple[SpendGroup, ...]
    """The groups. The most expensive group comes first, but days are in their order."""

    @classmethod
    def read(
        cls, query: SpendQuery, sums: Iterable[Sequence[Any]], outcomes: Iterable[Sequence[Any]]
    ) -> Self:
        """Make the sums from the rows of the two statements."""
        # PostgreSQL returns sums of integers as decimals.
        judged = {name: Accuracy(right=int(right), judged=int(count)) for name, right, count in outcomes}
        days: dict[str, list[DaySpend]] = {}
        for day, name, *figures in sums:
            by_field = dict(zip(SpendSums.model_fields, figures, strict=True))
            days.setdefault(name, []).append(DaySpend(day=day, **by_field))
        groups = [
            SpendGroup(
                name=name or None,  # No worker, no key and no planner has an empty name.
                accuracy=judged.get(name),
                days=tuple(of_days),
                **sum(of_days, SpendSums()).model_dump(),
            )
            for name, of_days in days.items()
        ]
        if query.by != "day":
            groups.sort(key=lambda group: (-group.cost_usd, -group.calls, group.name or ""))
        total = sum(groups, SpendSums())
        whole = list(judged.values())
        if query.by == "worker":
            # A question may have several workers, but it has one row for its plans.
            planned = sum(days.get(PLANNING, []), SpendSums())
            total = total.model_copy(update={"questions": planned.questions})
            whole = [judged[PLANNING]] if PLANNING in judged else []
        right, count = sum(verdicts.right for verdicts in whole), sum(verdicts.judged for verdicts in whole)
        return cls(
            since=query.since,
            until=query.until,
            by=query.by,
            total=total,
            accuracy=Accuracy(right=right, judged=count) if count else None,
            groups=tuple(groups),
        )
