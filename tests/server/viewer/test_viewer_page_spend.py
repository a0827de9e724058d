"""Spend: dollars by day and group, calls without a price, accuracy by feedback, budgets, and the empty state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.trace import Outcome, Trace
from podium.types import Price, Spent
from running_server import Serve
from viewer_traces import keep, of_sums

TABLE = "table[aria-label^='Spend by'] tbody tr"


def paid(days: int = 3) -> list[Trace]:
    """A question on each of the last days: ada's first step has cost a dollar, and bram's call has no price."""
    found = []
    for number, trace in enumerate(of_sums(days)):
        round_ = trace.rounds[0]
        ada, bram = (
            span.model_copy(
                update={
                    "spent": Spent(span.usage, usd, unpriced=not usd),
                    "answered_by": name,
                    "worker": name,
                }
            )
            for span, usd, name in zip(round_.spans, (1.0, 0.0), ("ada", "bram"), strict=True)
        )
        pool = tuple(one.model_copy(update={"price": Price()}) for one in trace.pool)
        moment = datetime.now(UTC) - timedelta(days=number)
        plan = replace(round_.plan, spent=Spent(cost_usd=0.25))
        planned = round_.model_copy(update={"spans": (ada, bram), "plan": plan})
        changes: dict[str, Any] = {"rounds": (planned,), "pool": pool, "started_at": moment.isoformat()}
        found.append(trace.model_copy(update=changes | {"owner": "shop" if number else None}))
    return found


def judged(path: Path) -> Path:
    keep(path, *(traces := paid()))
    with TraceStore(path) as store:
        for trace, right in zip(traces, (True, True, False), strict=True):
            store.set_outcome(trace.id, Outcome(right=right, at="2026-03-02T00:00:00Z"))
    return path


@pytest.fixture(scope="module")
def url(shared_serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    return shared_serve(store=judged(tmp_path_factory.mktemp("spend") / "traces.sqlite"))


def cells(page: Any) -> list[list[str]]:
    return [row.locator("th, td").all_inner_texts() for row in page.locator(TABLE).all()]


def test_what_has_no_price_is_not_shown_as_free(url, opened_once) -> None:
    page = opened_once.go(url, "traces", ".list-row .c-cost")
    assert page.locator("[data-row] .c-cost").all_inner_texts() == ["$1.25 and more"] * 3
    page.click("[data-row] a >> nth=0")
    page.wait_for_selector(".headline dd:has-text('$1.25 and more')")


def test_dollars_are_shown_by_worker_key_and_planner(url, opened_once) -> None:
    page = opened_once.go(url, "spend", f"{TABLE} >> nth=2")
    by_worker = cells(page)
    assert [row[:4] for row in by_worker] == [
        ["ada", "$3.00", "80.0%", "3"],
        ["planning", "$0.7500", "20.0%", "3"],
        ["bram", "unpriced", "–", "3"],
    ]
    assert by_worker[0][-1] == "67% (21% to 94%, n = 3)"
    totals = dict(
        zip(
            page.locator(".totals dt").all_inner_texts(),
            page.locator(".totals dd").all_inner_texts(),
            strict=True,
        )
    )
    assert (totals["cost"], totals["of it planning"], totals["unpriced"]) == (
        "$3.75 and more",
        "$0.7500",
        "3",
    )
    assert "Give the worker a price in the pool's file" in page.inner_text(".note")
    page.select_option("select", "key")
    page.wait_for_selector(f"{TABLE} >> text=no key")
    assert [row[:2] for row in cells(page)] == [["shop", "$2.50 and more"], ["no key", "$1.25 and more"]]
    page.select_option("select", "planner")
    page.wait_for_selector(f"{TABLE} >> text=constant")
    assert cells(page)[0][3] == "$0.7500"
    assert "by=planner" in page.url


@pytest.mark.nightly
def test_a_day_is_read_by_pointer_and_by_keyboard(url, opened_once) -> None:
    page = opened_once.go(url, "spend", ".bars svg .day >> nth=29")
    today = datetime.now(UTC).date()
    page.locator(".bars svg .day").last.locator(".hit").hover()
    said = f"{today}: $1.25 (planning $0.2500, ada $1.00), 1 call without a price"
    page.wait_for_selector(f".bars-day:text-is('{said}')")
    page.mouse.move(0, 0)
    page.locator(".bars svg").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f".bars-day:text-is('{today - timedelta(days=4)}: $0')")
    assert page.locator(".bars .unpriced").count() == 3


@pytest.mark.nightly
def test_each_figure_is_defined_under_the_pointer_and_at_focus(url, opened_once) -> None:
    page = opened_once.go(url, "spend", TABLE)
    term = page.locator("table .term", has_text="unpriced")
    tip = term.locator("[role=tooltip]")
    assert not tip.is_visible()
    term.hover()
    assert "the provider does not say what the call cost" in tip.inner_text()
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    term.focus()
    tip.wait_for(state="visible")
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


def test_a_group_leads_to_the_traces_of_the_same_days_in_any_time_zone(url, opened) -> None:
    zone = opened.page.context.new_cdp_session(opened.page)
    zone.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    page = opened.go(url, "spend", TABLE)
    today = datetime.now(UTC).date()
    with page.expect_request("**/api/traces?*") as asked:
        page.click(f"{TABLE} a >> text=ada")
    query = parse_qs(urlsplit(asked.value.url).query)
    assert query["since"] == [f"{today - timedelta(days=29)}T00:00:00.000Z"]
    assert query["until"] == [f"{today + timedelta(days=1)}T00:00:00.000Z"]


def test_spend_page_shows_the_rest_of_each_budget(shared_serve, url, opened_once, monkeypatch) -> None:
    spend_limit = SharedSpendLimit(None, "day", 5.0)
    spend_limit.settle(0.0, 1.5)
    service = shared_serve.service(url)
    monkeypatch.setattr(service, "call_state", service.call_state.with_spend_limits(spend_limit))
    page = opened_once.go(url, "spend", "section[aria-label=Budgets] tbody tr")
    row = page.locator("section[aria-label=Budgets] tbody tr").locator("th, td").all_inner_texts()
    assert row[:6] == ["this server's spend limit", "today (UTC)", "$5.00", "$1.50", "$0", "$3.50"]


@pytest.mark.nightly
def test_days_without_questions_and_servers_without_budgets_say_what_to_do(url, opened_once) -> None:
    page = opened_once.go(url, "spend?since=2026-01-01&until=2026-01-02", ".empty")
    assert "choose other days" in page.inner_text(".empty")
    assert "--day-budget-usd" in page.inner_text("section[aria-label=Budgets]")
    page.click("text='7 days'")
    page.wait_for_selector(TABLE)
    page.fill("input[type=date] >> nth=1", "2025-01-01")
    page.wait_for_selector(".trouble")
    assert "the last day is before the first" in page.inner_text(".trouble")


@pytest.mark.nightly
def test_spend_with_long_names_of_workers_fits_a_phone(shared_serve: Serve, phone, tmp_path: Path) -> None:
    traces = paid(1)
    round_ = traces[0].rounds[0]
    name = "WORKER_" + "M" * 53
    spans = tuple(span.model_copy(update={"worker": name, "answered_by": name}) for span in round_.spans)
    long = traces[0].model_copy(update={"rounds": (round_.model_copy(update={"spans": spans}),)})
    page = phone.go(shared_serve(store=keep(tmp_path / "traces.sqlite", long)), "spend", ".bars svg .day")
    page.wait_for_selector(".bars .tag:has-text('WORKER_')")
    assert phone.overflow == 0


@pytest.mark.nightly
def test_spend_fits_a_phone_in_the_dark(url, phone) -> None:
    phone.page.emulate_media(color_scheme="dark")
    page = phone.go(url, "spend", ".bars svg .day")
    assert phone.overflow == 0
    page.locator(".totals .term").last.click()
    box = page.locator(".totals .term [role=tooltip]").last.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert phone.overflow == 0
