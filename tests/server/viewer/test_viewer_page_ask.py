"""Ask: a question typed, its plan drawn while it runs, its answer, its limits, its end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Event

import httpx
import pytest

from podium.workers.function import worker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium_testing import FaultServer, Hang, Rule
from running_server import Serve

QUESTION = "What is 3, plus 4, times 2?"
SHIFT = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
    }).observe({ type: "layout-shift", buffered: true });
}"""


@pytest.fixture(scope="module")
def url(shared_serve: Serve) -> str:
    return shared_serve(planner="self-consistency:gus:3")


def slow_pool() -> Pool:
    return Pool([ScriptedWorker("ada", ["42"] * 9, delay=60)])


def test_a_team_is_seen_at_work(url, opened_once) -> None:
    page = opened_once.go(url, "ask", "textarea")
    page.keyboard.type(QUESTION)  # The field has the focus.
    page.keyboard.press("Enter")
    page.wait_for_selector(".step-box.done")
    page.wait_for_selector(".headline .mark.good")
    assert "Answer:" in page.inner_text(".answer")
    assert page.locator(".graph .line").count() >= 1
    assert page.locator(".bar").count() == page.locator(".step-box").count()
    page.click("text=Open the trace")
    page.wait_for_selector("text=raw JSON")
    assert "#/traces/" in page.url
    assert "Answer:" in page.inner_text(".answer")


def test_a_step_is_seen_running_and_nothing_moves_when_it_ends(kept_server, opened) -> None:
    seen = Event()

    @worker("ada")
    def answer_once_seen(messages: object) -> str:
        assert seen.wait(60)
        return "42"

    page = opened.go(kept_server(Pool([answer_once_seen]), planner="single:ada"), "ask", "textarea")
    page.fill("textarea", "What is 6 x 7?")
    page.evaluate(SHIFT)
    page.keyboard.press("Enter")
    page.wait_for_selector(".step-box.running")
    assert page.inner_text(".headline .mark") == "◐ running"
    graph = page.locator(".graph").bounding_box()
    seen.set()
    page.wait_for_selector(".step-box.done")
    page.wait_for_selector(".headline .mark.good")
    assert page.locator(".graph").bounding_box() == graph
    assert page.inner_text(".answer") == "42"
    assert sum(page.evaluate("window.shifts")) < 0.1


def test_the_answer_is_seen_while_its_worker_writes_it(kept_server, opened, tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    with FaultServer(words, rules=[Rule(fault=Hang(when="middle"))]).in_thread() as provider:
        pool = tmp_path / "pool.toml"
        pool.write_text(
            f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{provider.url}"\n'
        )
        page = opened.go(kept_server(str(pool), planner="single:ada"), "ask", "textarea")
        page.fill("textarea", "Count.")
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer:has-text('word0')")
        assert page.locator(".step-box.running").count() == 1
        assert "word59" not in page.inner_text(".answer")


@pytest.mark.nightly
def test_a_question_is_cancelled_with_escape_and_recorded_so(kept_server, opened) -> None:
    url = kept_server(slow_pool(), planner="single:ada")
    page = opened.go(url, "ask", "textarea")
    page.fill("textarea", "What is 6 x 7?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".step-box.running")
    page.keyboard.press("Escape")
    page.wait_for_selector(".headline .mark:has-text('cancelled')")
    assert [trace["status"] for trace in httpx.get(f"{url}/api/traces").json()["traces"]] == ["cancelled"]


@pytest.mark.nightly
def test_a_question_that_the_server_lost_ends_when_it_is_cancelled(kept_server, opened) -> None:
    page = opened.go(kept_server(slow_pool(), planner="single:ada"), "ask", "textarea")
    page.route(re.compile("/api/(traces|ask)/"), lambda route: route.fulfill(status=404, json={}))
    page.fill("textarea", "What is 6 x 7?")
    page.keyboard.press("Enter")
    page.click("text=Cancel")
    page.wait_for_selector("[role=alert]")
    assert page.locator("form.ask button.first").is_enabled()


def test_an_address_fills_in_the_question_of_the_page_that_is_open(url, opened_once) -> None:
    page = opened_once.go(url, "ask", "textarea")
    page.evaluate("location.hash = '#/ask?q=What+is+6+x+7%3F'")
    page.wait_for_selector("form.ask button.first:not([disabled])")
    assert page.input_value("textarea") == "What is 6 x 7?"


def test_planner_workers_and_budget_are_sent_as_chosen(url, opened_once) -> None:
    page = opened_once.go(url, "ask", "textarea")
    page.click("summary:has-text('Planner, workers, budget')")
    page.select_option("#planner", "single:gus")
    page.select_option("[aria-label='Use of ada']", "deny")
    page.fill("label:has-text('calls') input", "1")
    page.fill("label:has-text('rounds') input", "2")
    page.fill("textarea", "What is 6 x 7?")
    with page.expect_request("**/api/ask") as asked:
        page.click("form.ask button.first")
    assert json.loads(asked.value.post_data) == {
        "question": "What is 6 x 7?",
        "planner": "single:gus",
        "deny": ["ada"],
        "budget": {"calls": 1},
        "rounds": 2,
    }
    page.wait_for_selector(".headline .mark:not(.live)")
    assert page.locator(".step-box .who").first.text_content() == "gus"


def test_a_question_with_an_unreadable_limit_is_not_sent(url, opened_once) -> None:
    page = opened_once.go(url, "ask", "textarea")
    sent: list[str] = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))
    page.click("summary:has-text('Planner, workers, budget')")
    dollars = page.locator("label:has-text('dollars') input")
    dollars.press_sequentially("5-")
    page.click("summary:has-text('Planner, workers, budget')")
    page.fill("textarea", "What is 6 x 7?")
    page.keyboard.press("Enter")
    page.wait_for_selector("label:has-text('dollars') input:focus")
    assert sent == []
    dollars.fill("5")
    page.focus("textarea")
    with page.expect_request("**/api/ask") as asked:
        page.keyboard.press("Enter")
    assert json.loads(asked.value.post_data)["budget"] == {"usd": 5}
    page.wait_for_selector(".headline .mark:not(.live)")


def test_page_shows_the_refusal_message_of_the_server(url, opened_once) -> None:
    page = opened_once.go(url, "ask", "textarea")
    page.click("summary:has-text('Planner, workers, budget')")
    page.fill("label:has-text('rounds') input", "999")
    page.fill("textarea", "What is 6 x 7?")
    page.click("form.ask button.first")
    page.wait_for_selector("[role=alert]")
    assert "rounds" in page.inner_text("[role=alert]")
    assert page.locator("form.ask button.first").is_enabled()


@pytest.mark.nightly
def test_the_page_fits_a_phone_and_the_graph_runs_down(url, phone) -> None:
    page = phone.go(url, "ask", "textarea")
    page.fill("textarea", QUESTION)
    page.click("form.ask button.first")
    page.wait_for_selector(".headline .mark.good")
    page.click(".step-box >> nth=0")
    page.click("summary:has-text('Planner, workers, budget')")
    assert phone.overflow == 0
    boxes = [box.bounding_box() for box in page.locator(".step-box").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
