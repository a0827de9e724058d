"""`podium traces spend`: what the questions of a store cost, by worker, key, planner or day."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime

from podium.cli.found_team import found_day_usd, found_store
from podium.cli.options import Flag, StoreLocation, read_time
from podium.cli.printable import counted, dollars, priced, print_columns, say, shorten
from podium.cli.terminal import print_json
from podium.files.locations import default_store
from podium.spending.shared_spend_limit import open_day_limit
from podium.store import TraceStore
from podium.store.spend_report import Accuracy, SpendBy, SpendQuery, SpendReport, SpendSums

_NAMELESS: dict[SpendBy, str] = {"worker": "(planning)", "key": "(no key)"}


def spend(
    *,
    by: SpendBy = "worker",
    since: str | None = None,
    until: str | None = None,
    store: StoreLocation = None,
    json: Flag = False,
) -> int:
    """Sum what questions cost. Days are in UTC; a question counts on the day on which it began.

    Args:
        by: How to group the sums.
        since: The first day: a date, or how long ago, as 2d or 4w. Default: 30 days with the last one.
        until: The last day. Default: today.
        json: Print one JSON object.
    """
    query = SpendQuery.of(_day(since), _day(until), by)
    day_usd = None if json else found_day_usd()
    location = store or found_store() or default_store()
    with TraceStore(location, create=False) as traces:
        report = traces.spend(query)
    if json:
        print_json(report.model_dump(mode="json"))
        return 0
    if report.groups:
        _print(report)
    else:
        say(
            f"No question from {query.since} to {query.until}; `podium ask` and `podium serve` keep what they answer."
        )
    _print_day_budget(day_usd)
    return 0


def _day(text: str | None) -> date | None:
    return None if text is None else read_time(text, datetime.now(UTC)).date()


def _print(report: SpendReport) -> None:
    by, total = report.by, report.total
    rows: list[tuple[str, ...]] = [
        (by, "cost", "planning", "questions", "calls", "unpriced", "tokens", "right")
    ]
    rows += [
        _row(_NAMELESS.get(by, "") if group.name is None else group.name, group, group.accuracy)
        for group in report.groups
    ]
    rows.append(_row("all", total, report.accuracy))
    print(f"From {report.since} to {report.until} (UTC)")
    print_columns(rows)
    if total.unpriced_calls:
        say(f"The price of {counted(total.unpriced_calls, 'call')} is not known; the dollars leave them out.")
    if total.unpaid_usd:
        print(f"{dollars(total.unpaid_usd)} of it is of recorded answers, which nobody pays.")
    if total.saved_usd:
        print(f"The response cache saved {dollars(total.saved_usd)}.")


def _row(name: str, sums: SpendSums, accuracy: Accuracy | None) -> tuple[str, ...]:
    right = "-"
    if accuracy is not None:
        right = f"{accuracy.mean:.0%} ({accuracy.low:.0%} to {accuracy.high:.0%}, n={accuracy.judged})"
    return (
        shorten(name, 40),
        priced(sums.cost_usd, bool(sums.unpriced_calls)),
        dollars(sums.planning_usd),
        f"{sums.questions:,}",
        f"{sums.calls:,}",
        f"{sums.unpriced_calls:,}",
        f"{sums.tokens:,}",
        right,
    )


def _print_day_budget(limit_usd: float | None) -> None:
    spend_limit = open_day_limit(limit_usd)
    if spend_limit is None:
        return
    with closing(spend_limit):
        spent, reserved = spend_limit.spent_usd, spend_limit.reserved_usd
    left = max(0.0, spend_limit.limit_usd - spent - reserved)
    held = f", {dollars(reserved)} reserved" if reserved else ""
    print(
        f"Budget of today: {dollars(spent)} of {dollars(spend_limit.limit_usd)} spent{held}, {dollars(left)} left"
    )
