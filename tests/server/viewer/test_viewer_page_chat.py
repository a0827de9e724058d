"""The chat: threads, answers as they are written, plans edited, run or rejected, feedback, keys, a phone."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from approving_team import PLAN, TEXT_PLANS, approving_team, is_planning
from chat_model import ChatModel, Say, chat_model
from key_storage import KeyStorage
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker


@pytest.fixture(scope="module")
def shared_team(shared_serve) -> Iterator[tuple[ChatModel, str]]:
    with approving_team(answer="It is **42**.") as (model, pool):
        yield model, shared_serve(pool, conductor=TEXT_PLANS)


@pytest.fixture
def team(shared_team) -> tuple[ChatModel, str]:
    """An endpoint, and the address of a server whose team it is."""
    shared_team[0].bodies.clear()
    return shared_team


@pytest.fixture
def slow_team(team) -> Iterator[tuple[threading.Event, str]]:
    """The same team, whose workers answer when the event is set."""
    model, url = team
    go_on, answer = threading.Event(), model.answer

    def say(body: dict[str, Any]) -> Say:
        return replace(answer(body), wait=lambda number: is_planning(body) or go_on.is_set())

    model.answer = say
    yield go_on, url
    go_on.set()
    model.answer = answer


def send(page: Any, question: str) -> None:
    page.fill("#message", question)
    page.keyboard.press("Enter")


def answers(page: Any, count: int) -> None:
    page.locator(".turn-foot .mark.good").nth(count - 1).wait_for()
    page.wait_for_selector(".first:has-text('Send')")


def hold(page: Any) -> list[Any]:
    """The questions and plans that the page sends from now on; none of them reaches the server by itself."""
    held: list[Any] = []

    def keep(route: Any) -> None:
        held.append(route)

    page.route("**/api/ask", keep)
    return held


def newest(url: str) -> dict[str, Any]:
    (row, *_) = httpx.get(f"{url}/api/traces").json()["traces"]
    return httpx.get(f"{url}/api/traces/{row['id']}").json()


def test_a_thread_of_two_turns_remembers_is_kept_renamed_and_deleted(team, opened_once) -> None:
    model, url = team
    page = opened_once.go(url, "chat", "#message")
    page.keyboard.type("What is 6 x 7?")  # The field has the focus.
    page.keyboard.press("Enter")
    answers(page, 1)
    send(page, "And twice that?")
    answers(page, 2)
    assert page.locator(".said-by-team strong").all_inner_texts() == ["42", "42"]
    asked = json.dumps([body["messages"] for body in model.bodies if not is_planning(body)][-1])
    assert all(text in asked for text in ("What is 6 x 7?", "It is **42**.", "And twice that?"))
    cost = sum(row["cost_usd"] for row in httpx.get(f"{url}/api/traces?limit=2").json()["traces"])
    assert page.inner_text(".thread-cost").startswith("2 questions, $0.00")
    assert float(page.inner_text(".thread-cost").split("$")[1]) == pytest.approx(cost, abs=2e-6)
    page.click(".past-steps summary >> nth=1")
    page.wait_for_selector(".chat-steps li:has-text('Check it.')")
    assert page.locator(".chat-steps li b").all_inner_texts() == ["wren", "lark"]

    page.click("text=rename")
    page.keyboard.type("Sums")
    page.keyboard.press("Enter")
    page.wait_for_selector(".thread h2:has-text('Sums')")
    page.reload()
    page.wait_for_selector(".thread h2:has-text('Sums')")
    assert page.locator(".turn").count() == 2
    page.click("text=New thread")
    page.wait_for_selector(".empty")
    send(page, "Who are you?")
    answers(page, 1)
    assert "Sums" not in page.inner_text(".thread")
    assert page.locator(".threads li").count() == 2
    page.click(".threads a:has-text('Sums')")
    page.wait_for_selector(".thread h2:has-text('Sums')")
    page.click("[aria-label='Delete Sums']")
    page.click("[aria-label='Delete Sums']:has-text('sure?')")
    page.wait_for_selector(".empty")
    assert page.locator(".threads li").count() == 1
    page.click(".threads li a")
    page.click(".turn a:has-text('trace')")
    page.wait_for_selector(".trace .feedback")


def test_plan_steps_and_answer_are_seen_and_survive_leaving_the_page(kept_server, opened) -> None:
    go_on, seen = threading.Event(), threading.Event()

    def say(body: dict[str, Any]) -> Say:
        if is_planning(body):
            return Say(PLAN)
        wait = (lambda number: number == 0 or go_on.is_set()) if "Check it." in json.dumps(body) else bool
        return Say("word0 |word1", wait=wait if wait is not bool else lambda number: seen.is_set())

    with chat_model(say) as model:
        pool = Pool([model.worker(stream=True), model.worker("lark", stream=True)])
        page = opened.go(kept_server(pool, conductor=TEXT_PLANS), "chat", "#message")
        send(page, "Count.")
        page.wait_for_selector(".chat-steps li:has(.mark.live):has-text('Multiply.')")
        page.wait_for_selector(".chat-steps li:has-text('waiting'):has-text('Check it.')")
        seen.set()
        page.wait_for_selector(".turn .answer:has-text('word0')")
        assert "word1" not in page.inner_text(".turn .answer")
        page.click("nav >> text=Pool")
        page.wait_for_selector("h1:has-text('Pool'), .pool, table")
        page.go_back()
        page.wait_for_selector(".turn .answer:has-text('word0')")
        go_on.set()
        answers(page, 1)
        assert page.inner_text(".turn .answer") == "word0 word1"


def test_a_plan_is_edited_priced_and_run_and_its_answer_judged(team, opened_once) -> None:
    model, url = team
    page = opened_once.go(url, "chat", "#message")
    page.check("text=approve before paying")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".approval .first:has-text('about $')")
    assert len(model.bodies) == 1
    assert newest(url)["status"] == "planned"
    page.fill("[aria-label='Subtask of step 0']", "")
    page.wait_for_selector("[role=alert]:has-text('Expected a subtask for step 0, found an empty text.')")
    assert page.locator(".approval .first").is_disabled()
    page.fill("[aria-label='Subtask of step 0']", "Multiply twice.")
    page.select_option(".approval select >> nth=0", "lark")
    page.uncheck("[aria-label='Step 1 sees step 0']")
    page.wait_for_selector(".approval .cost:has-text('not run')")  # The last step no longer needs it.
    page.check("[aria-label='Step 1 sees step 0']")
    page.wait_for_selector(".approval .cost:has-text('not run')", state="detached")
    page.reload()
    page.wait_for_selector(".approval")  # The plan still waits, as the planner wrote it.
    page.fill("[aria-label='Subtask of step 0']", "Multiply twice.")
    page.select_option(".approval select >> nth=0", "lark")
    page.click(".approval .first:not([disabled])")
    answers(page, 1)
    trace = newest(url)
    (round_,) = trace["rounds"]
    assert [(span["worker"], span["subtask"]) for span in round_["spans"]] == [
        ("lark", "Multiply twice."),
        ("lark", "Check it."),
    ]
    assert round_["plan"]["edited"]
    assert [is_planning(body) for body in model.bodies] == [True, False, False]
    page.click(".feedback .right")
    page.wait_for_selector(".feedback .right[aria-pressed=true]")
    assert newest(url)["outcome"]["right"] is True
    page.reload()
    page.wait_for_selector(".feedback .right[aria-pressed=true]")
    page.click(".turn a:has-text('trace')")
    page.wait_for_selector(".round:has-text('edited by the user')")


def test_a_rejected_plan_costs_its_planning_alone(team, opened_once) -> None:
    model, url = team
    page = opened_once.go(url, "chat", "#message")
    page.check("text=approve before paying")
    send(page, "What is 6 x 7?")
    page.click(".approval >> text=Reject")
    page.wait_for_selector(".turn .trouble:has-text('You rejected the plan.')")
    trace = newest(url)
    assert trace["status"] == "cancelled"
    assert page.inner_text(".turn-foot .cost") == f"${trace['rounds'][0]['plan']['spent']['cost_usd']:.6f}"
    assert len(model.bodies) == 1


def test_a_question_is_cancelled_with_escape_and_asked_again(slow_team, opened_once) -> None:
    go_on, url = slow_team
    page = opened_once.go(url, "chat", "#message")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".chat-steps .mark.live")
    page.keyboard.press("Escape")
    page.wait_for_selector(".turn-foot .mark:has-text('cancelled')")
    go_on.set()
    page.click("text=ask again")
    answers(page, 1)
    assert page.locator(".said-by-user").all_inner_texts() == ["What is 6 x 7?"] * 2


@pytest.mark.nightly
def test_an_open_note_leaves_the_focus_in_the_message(team, opened_once) -> None:
    _, url = team
    page = opened_once.go(url, "chat", "#message")
    send(page, "What is 6 x 7?")
    answers(page, 1)
    page.click("text=add a note")
    page.keyboard.type("Right.")  # The note has the focus when it opens.
    page.click("#message")
    page.keyboard.type("And twice that?")
    assert page.input_value("#message") == "And twice that?"
    assert page.input_value("[aria-label=Note]") == "Right."


@pytest.mark.nightly
def test_escape_in_a_thread_s_name_cancels_no_question(slow_team, opened_once) -> None:
    go_on, url = slow_team
    page = opened_once.go(url, "chat", "#message")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".chat-steps .mark.live")
    page.click("text=rename")
    page.keyboard.press("Escape")
    page.wait_for_selector("[aria-label='Name of the thread']", state="detached")
    go_on.set()
    answers(page, 1)


def test_edited_plan_cannot_run_before_its_new_price_is_shown(team, opened_once) -> None:
    _, url = team
    page = opened_once.go(url, "chat", "#message")
    page.check("text=approve before paying")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".approval .first:has-text('about $')")
    held = hold(page)
    with page.expect_request("**/api/ask"):
        page.fill("[aria-label='Subtask of step 0']", "Multiply twice.")
    with page.expect_request("**/api/ask"):
        page.fill("[aria-label='Subtask of step 0']", "Multiply three times.")
        held[0].continue_()
    assert page.locator(".approval .first").is_disabled()
    held[1].continue_()
    page.wait_for_selector(".approval .first:not([disabled])")


@pytest.mark.nightly
def test_question_stays_in_the_field_when_browser_storage_is_full(team, opened_once) -> None:
    model, url = team
    page = opened_once.go(url, "chat", "#message")
    page.evaluate(
        """() => {
            for (let size = 1_000_000, i = 0; size >= 1; i++) {
                try { localStorage.setItem(`full${i}`, "x".repeat(size)); } catch { size = Math.floor(size / 2); }
            }
        }"""
    )
    send(page, "What is 6 x 7?")
    page.wait_for_selector("[role=alert]:has-text('The browser has no room left')")
    assert page.input_value("#message") == "What is 6 x 7?"
    assert model.bodies == []


def test_question_can_be_cancelled_before_the_server_returns_its_id(slow_team, opened_once) -> None:
    _, url = slow_team
    page = opened_once.go(url, "chat", "#message")
    page.evaluate(  # Escape reaches the page before the address of the new thread does.
        """() => {
            const sent = window.fetch;
            window.fetch = (path, options) => {
                if (path === "./api/ask") {
                    window.fetch = sent;
                    const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true });
                    queueMicrotask(() => document.querySelector("#message").dispatchEvent(escape));
                }
                return sent(path, options);
            };
        }"""
    )
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".turn-foot .mark:has-text('cancelled')")
    assert newest(url)["status"] == "cancelled"


def test_a_plan_left_while_it_is_written_says_so_here_and_in_another_tab(team, opened_once) -> None:
    _, url = team
    page = opened_once.go(url, "chat", "#message")
    page.check("text=approve before paying")
    page.route("**/api/ask", lambda route: None)
    with page.expect_request("**/api/ask"):
        send(page, "What is 6 x 7?")
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".trouble:has-text('It is planned in another tab, or the page was closed')")
    page.click("nav >> text=Pool")
    other.wait_for_selector(".trouble:has-text('You left the page while the plan was written.')")
    other.close()
    page.go_back()
    page.wait_for_selector(".trouble:has-text('You left the page while the plan was written.')")


@pytest.mark.nightly
def test_a_running_question_s_time_counts_from_its_beginning(slow_team, opened_with_clock) -> None:
    _, url = slow_team
    page = opened_with_clock.go(url, "chat", "#message")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".chat-steps .mark.live")
    page.clock.install(time=datetime.now(UTC) + timedelta(hours=1))
    page.reload()
    page.wait_for_selector(".turn-foot:has-text('60 min')")


def test_a_question_that_the_server_lost_ends_when_it_is_cancelled(slow_team, opened_once) -> None:
    _, url = slow_team
    page = opened_once.go(url, "chat", "#message")
    page.route(re.compile("/api/(traces|ask)/"), lambda route: route.fulfill(status=404, json={}))
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".turn-foot .mark:has-text('running')")
    page.keyboard.press("Escape")
    page.wait_for_selector(".turn-foot .mark:has-text('failed')")
    page.wait_for_selector(".first:has-text('Send')")


@pytest.mark.nightly
def test_a_question_that_cannot_be_read_for_a_while_is_answered_later(slow_team, opened_once) -> None:
    go_on, url = slow_team
    page = opened_once.go(url, "chat", "#message")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".chat-steps .mark.live")
    status = 502
    page.route("**/api/traces/*", lambda route: route.fulfill(status=status, json={}))
    page.reload()
    page.wait_for_selector("[role=alert]:has-text('The server answered 502.')")
    status = 401
    page.click("dialog[open] >> text=Not now")
    page.wait_for_selector("[role=alert]:has-text('A key is needed')")
    page.unroute_all()
    page.reload()
    page.wait_for_selector(".chat-steps .mark.live")
    go_on.set()
    answers(page, 1)


def test_a_question_whose_plan_cannot_be_read_shows_its_cost_and_trace(team, opened_once) -> None:
    model, url = team
    answer = model.answer
    model.answer = lambda body: Say("No plan.")
    page = opened_once.go(url, "chat", "#message")
    page.check("text=approve before paying")
    send(page, "What is 6 x 7?")
    page.wait_for_selector(".turn-foot .mark:has-text('failed')")
    model.answer = answer
    trace = newest(url)
    cost = trace["rounds"][0]["plan"]["spent"]["cost_usd"]
    assert page.inner_text(".turn-foot .cost") == f"${cost:.6f}"
    page.click(".turn-foot a:has-text('trace')")
    page.wait_for_selector(".rejected")
    assert page.url.endswith(trace["id"])


def test_the_chat_asks_for_a_key_where_one_is_needed(kept_server, opened, tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "kept.sqlite"))
    with ThreadPoolExecutor(1) as thread:  # Playwright's own event loop runs in this one.
        key = thread.submit(storage.add).result()
    pool = Pool([ScriptedWorker("ada", ["42"] * 3)])
    page = opened.go(kept_server(pool, planner="single:ada", keys=storage.keys()), "chat", "dialog[open]")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    page.wait_for_selector("#chat-planner")
    send(page, "What is 6 x 7?")
    answers(page, 1)


def test_the_chat_fits_a_phone_in_the_dark(team, phone) -> None:
    _, url = team
    phone.page.emulate_media(color_scheme="dark")
    page = phone.go(url, "chat", "#message")
    page.check("text=approve before paying")
    send(page, "Whatisthisverylongwordthatdoesnotbreakbyitselfanywhereandgoesonandonandonandon?")
    page.wait_for_selector(".approval .first:has-text('about $')")
    assert phone.overflow == 0
    boxes = [box.bounding_box() for box in page.locator(".approval :is(select, textarea, button)").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    page.click(".approval .first")
    answers(page, 1)
    page.click(".past-steps summary")
    page.wait_for_selector(".chat-steps")
    assert phone.overflow == 0
    page.click("summary:has-text('Threads')")
    page.wait_for_selector(".threads li")
    assert phone.overflow == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.said-by-team')).backgroundColor") == (
        "rgb(28, 32, 34)"
    )
