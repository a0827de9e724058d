"""One trace: steps, what their workers saw, rounds, a hundred steps, texts that mean harm, and asking again."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from podium.trace import Reply, Trace
from podium.types import NO_USAGE, Spent
from podium.workers.calculator import CalculatorWorker
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step
from viewer_traces import WRITABLE, answered, hundred_steps, plain, poisoned, troubled, two_rounds


def test_step_detail_shows_the_exact_messages_of_its_worker(trace_server, opened_once) -> None:
    trace = two_rounds()
    page = trace_server.show(opened_once, trace)
    page.click(".step-box >> nth=2")
    page.wait_for_selector(".step-detail")
    sent = trace.rounds[0].spans[2].messages[0].content
    assert page.locator(".step-detail .message pre").text_content() == sent
    assert page.locator(".step-detail .fence").count() == sent.count("<<<")
    assert page.locator(".step-detail tbody tr").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector(".step-detail", state="detached")


def test_failed_attempts_fallbacks_and_teams_within_are_shown(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, troubled())
    page.click(".step-box >> nth=0")
    page.wait_for_selector(".step-detail[aria-label='Step 0']")
    assert "answered by the fallback bram" in page.inner_text(".step-detail .tags")
    attempts = page.locator(".step-detail tbody tr").all_inner_texts()
    assert "connection The provider is down." in attempts[0]
    assert attempts[1].startswith("bram")
    page.click(".step-box >> nth=1")
    page.click("summary:has-text('What its team did')")
    page.wait_for_selector(".nested .step-box:has-text('cleo')")
    assert page.inner_text(".nested .answer") == "42"


def test_step_detail_shows_model_and_refused_parameters(trace_server, opened_once) -> None:
    trace = plain()
    reply = Reply(
        "42",
        NO_USAGE,
        model="m-2",
        fingerprint="fp_1",
        context_tokens=8192,
        dropped=("top_p", "stop"),
        folded=True,
    )
    span = trace.rounds[0].spans[0].model_copy(update={"reply": reply})
    rounds = (trace.rounds[0].model_copy(update={"spans": (span,)}),)
    page = trace_server.show(opened_once, trace.model_copy(update={"rounds": rounds}))
    page.click(".step-box >> nth=0")
    page.wait_for_selector(".step-detail")
    for name, value in (("model", "m-2"), ("fingerprint", "fp_1"), ("context", "8,192 tokens")):
        assert page.locator(f".step-detail .facts div:has(dt:text-is('{name}')) dd").inner_text() == value
    tags = page.locator(".step-detail .tags .tag").all_inner_texts()
    assert {"its endpoint refuses: top_p, stop", "messages folded for its chat template"} <= set(tags)


def test_the_critical_path_is_marked_in_graph_and_waterfall(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, two_rounds())
    marked = page.locator(".bar-row.critical .bar-name").all_inner_texts()
    assert marked == ["1 bram", "2 ada"]
    assert page.locator(".step-box.critical").count() == 2


def test_only_times_that_no_clock_has_measured_are_called_claims(trace_server, opened_once) -> None:
    steps = [Step(0, "Guess."), Step(1, "6 * 7", Access(all=True))]
    trace = answered([ScriptedWorker("ada", {"": "6"}, delay=0.02), CalculatorWorker()], steps)
    page = trace_server.show(opened_once, trace)
    assert "claim" not in page.inner_text(".waterfall .axis")
    first, second = trace.spans
    assert first.reply is not None
    recorded = first.model_copy(update={"reply": replace(first.reply, latency_s=60.0)})
    rounds = (trace.rounds[0].model_copy(update={"spans": (recorded, second)}),)
    page = trace_server.show(opened_once, trace.model_copy(update={"id": "0" * 32, "rounds": rounds}))
    assert "60.0 s, as the answers claim" in page.inner_text(".waterfall .axis")


@pytest.mark.nightly
def test_rounds_stand_side_by_side(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, two_rounds())
    first, second = (round_.bounding_box() for round_ in page.locator(".round").all())
    assert first["y"] == second["y"]
    assert "accepted" in page.locator(".round").nth(1).inner_text()


def test_a_plan_that_was_changed_before_it_ran_says_why(trace_server, opened_once) -> None:
    first, second = two_rounds().rounds
    reason = "Kept with ada: its prompt cache holds 12,400 tokens of the conversation."
    rounds = (first.model_copy(update={"plan": replace(first.plan, reason=reason)}), second)
    page = trace_server.show(opened_once, two_rounds().model_copy(update={"rounds": rounds}))
    assert reason in page.locator(".round").nth(0).inner_text()
    assert reason not in page.locator(".round").nth(1).inner_text()


def test_cost_saved_by_the_cache_includes_plans(trace_server, opened_once) -> None:
    trace = plain()
    saved = Spent(saved_usd=0.5)
    rounds = tuple(one.model_copy(update={"plan": replace(one.plan, spent=saved)}) for one in trace.rounds)
    page = trace_server.show(opened_once, trace.model_copy(update={"rounds": rounds}))
    assert page.inner_text(".headline div:has-text('saved by the cache') dd") == "$0.5000"


@pytest.mark.nightly
def test_a_time_is_rounded_to_whole_seconds_before_it_is_split(trace_server, opened_once) -> None:
    trace = plain().model_copy(update={"seconds": 179.7})
    page = trace_server.show(opened_once, trace)
    assert page.inner_text(".headline dd >> nth=0") == "3 min 0 s"


def test_steps_are_reached_by_keyboard(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, two_rounds())
    page.focus(".step-box >> nth=0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.inner_text(".step-detail h3") == "Step 1: bram"
    page.reload()
    page.wait_for_selector(".trace")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_raw_trace_is_the_one_that_is_exported(trace_server, opened_once) -> None:
    trace = plain()
    page = trace_server.show(opened_once, trace)
    page.click("text=raw JSON")
    assert Trace.model_validate_json(page.locator(".raw pre").text_content() or "") == trace


def test_the_link_is_copied_and_a_refusal_is_said(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("text=copy the link")
    page.wait_for_selector("button:text-is('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.wait_for_selector("text=copy the link")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    page.click("text=copy the link")
    page.wait_for_selector("[role=alert]:has-text('it is in the address bar')")


def test_a_beginning_of_an_id_is_enough_and_an_unknown_one_is_said(trace_server, opened_once) -> None:
    id_ = trace_server.add(plain())
    opened_once.go(trace_server.url, f"traces/{id_[:12]}", ".trace")
    opened_once.go(trace_server.url, "traces/0123456789", "[role=alert]")


def test_a_question_can_be_repeated_with_another_planner_and_compared(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain())
    page.click("summary:has-text('ask again')")
    page.select_option("#again", "single:gus")
    page.click("text=Ask and compare")
    page.wait_for_selector(".pair .trace >> nth=1")
    page.wait_for_selector(".difference tr:has-text('planner') td:nth-of-type(2):not(:has-text('…'))")
    cells = page.locator(".difference tr:has-text('planner') td").all_inner_texts()
    assert cells[:2] == ["constant", "single:gus"]


def test_trace_is_deleted_after_confirmation(trace_server, opened_once) -> None:
    trace = plain()
    page = trace_server.show(opened_once, trace)
    page.click("button.danger")
    page.click("text=delete for good?")
    page.wait_for_selector(".list-frame, .empty")
    assert httpx.get(f"{trace_server.url}/api/traces/{trace.id}").status_code == 404


@pytest.mark.nightly
def test_a_trace_of_a_hundred_steps_is_drawn_and_stays_at_hand(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, hundred_steps())
    page.wait_for_selector(".step-box")
    assert page.locator(".step-box").count() == 100
    assert page.locator(".bar-row").count() == 100
    drawn = page.evaluate(
        """async () => {
            let drawn = 0;
            new MutationObserver((changes) => {
                for (const change of changes) drawn += change.addedNodes.length;
            }).observe(document.body, { subtree: true, childList: true });
            for (const bar of [...document.querySelectorAll(".bar-row")].slice(0, 10)) {
                bar.click();
                await new Promise(requestAnimationFrame);
            }
            return drawn;
        }"""
    )
    assert 10 <= drawn < 1000, "a click draws the step, and not the other ninety-nine"
    assert page.inner_text(".step-detail h3").startswith("Step 9:")


def test_harmful_texts_are_shown_without_effect(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, poisoned())
    page.wait_for_selector(".step-box")
    for number in range(len(WRITABLE)):
        page.locator(".step-box").nth(number).dispatch_event("click")
        page.wait_for_selector(f".step-detail[aria-label='Step {number}']")
        for button in page.locator(".step-detail .link").all()[:2]:
            button.click()
    assert page.locator("#app img, #app script, #app iframe, #app textarea").count() == 0
    shown = page.locator("#app").evaluate("(app) => app.textContent")
    assert "<script>alert(1)</script>" in shown
    assert not {chr(0), "\x1b", "\u202e", "\u2066", "\u200b"} & set(shown)
    assert "⟨U+202E⟩" in shown
    assert "␛" in shown
    assert opened_once.overflow == 0


@pytest.mark.nightly
def test_an_answer_is_shown_whole_and_other_long_texts_are_folded(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain("a" * 1_000_000))
    lengths = "(box) => [...box.querySelectorAll('pre')].map((pre) => pre.textContent.length)"
    whole = [*[32768] * 30, 1_000_000 - 30 * 32768]
    assert page.locator(".answer").evaluate(lengths) == whole
    page.click(".step-box >> nth=0")
    response = page.locator(".step-detail .part:has(h4:has-text('Response'))")
    assert response.evaluate(lengths) == [4000]
    response.locator("text=show all 1.0 million characters").click()
    page.wait_for_selector(".step-detail pre >> nth=10")
    assert response.evaluate(lengths) == whole
    response.locator("text=show less").click()
    assert opened_once.overflow == 0


def test_a_trace_fits_a_phone(trace_server, phone) -> None:
    page = trace_server.show(phone, two_rounds())
    page.click(".step-box >> nth=0")
    page.click("text=raw JSON")
    assert phone.overflow == 0
