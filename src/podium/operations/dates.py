"""Operations of the skill "dates": the calendar."""

from __future__ import annotations

from calendar import monthrange
from datetime import timedelta

from podium.operations.lore import MONTHS, WEEKDAYS
from podium.operations.operation import Operation


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
    return (
        Operation("days_later", "dates", ("date",), "date", lambda x, n: x + timedelta(days=n),
                  ("find the date {n} days after {x}", "move {x} forward by {n} days",
                   "say which date comes {n} days later than {x}"), range(3, 70)),
        Operation("weekday_of", "dates", ("date",), "weekday", lambda x: WEEKDAYS[x.weekday()],
                  ("name the weekday of {x}", "say on which day of the week {x} falls",
                   "tell the day of the week for {x}")),
        Operation("month_of", "dates", ("date",), "month", lambda x: MONTHS[x.month - 1],
                  ("name the month of {x}", "say in which month {x} lies", "tell the calendar month of {x}")),
        Operation("day_of_year", "dates", ("date",), "int", lambda x: x.timetuple().tm_yday,
                  ("give the day of the year for {x}", "say which day of its year {x} is",
                   "count the days from New Year up to {x}")),
        Operation("days_in_month", "dates", ("date",), "int", lambda x: monthrange(x.year, x.month)[1],
                  ("say how many days the month of {x} has", "count the days in the month around {x}",
                   "give the length of the month that holds {x}")),
        Operation("months_after", "dates", ("month",), "month",
                  lambda x, n: MONTHS[(MONTHS.index(x) + n) % 12],
                  ("name the month {n} months after {x}", "go {n} months on from {x}",
                   "say which month comes {n} months later than {x}"), range(2, 12)),
        Operation("weekdays_after", "dates", ("weekday",), "weekday",
                  lambda x, n: WEEKDAYS[(WEEKDAYS.index(x) + n) % 7],
                  ("name the weekday {n} days after {x}", "go {n} days on from {x}",
                   "say which weekday comes {n} days later than {x}"), range(2, 20)),
        Operation("from_monday", "dates", ("int",), "weekday", lambda x: WEEKDAYS[x % 7],
                  ("name the weekday that comes {x} days after Monday", "start on Monday and go on for {x} days",
                   "say which weekday follows Monday by {x} days")),
    )  # fmt: skip
