"""Why this answer: steps to be read without a click, rejected plans, fallbacks, thoughts, and one worker alone."""

from __future__ import annotations

import pytest

from viewer_traces import rejected_first, troubled, two_rounds


def test_the_steps_are_read_from_top_to_bottom_without_a_click(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, two_rounds())
    last = page.locator(".step-item").nth(2)
    assert last.locator("dt").all_inner_texts() == ["told", "saw", "said", "cost"]
    told, saw, said, cost = last.locator("dd").all_inner_texts()
    assert (told, saw, said) == ("Decide.", "the question, step 0 (ada), step 1 (bram)", "6")
    assert "tokens in" in cost
    assert page.locator(".step-item").first.locator("dd").nth(1).inner_text() == "the question alone"


def test_a_fallback_is_shown_as_such_in_graph_waterfall_list_and_detail(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, troubled())
    box = page.locator(".step-box").first
    assert box.locator(".state").text_content() == "↪"
    assert "↪ bram" in box.locator(".figure").text_content()
    assert "done by its fallback bram" in box.get_attribute("aria-label")
    assert page.locator(".bar-name").first.inner_text() == "0 ada ↪ bram"
    assert "↪ its fallback bram answered" in page.locator(".step-item").first.inner_text()
    box.click()
    assert "done by its fallback" in page.locator(".step-detail header").inner_text()


def test_a_rejected_plan_stands_with_error_prompt_thoughts_parameters(trace_server, opened_once) -> None:
    trace = rejected_first()
    (rejected,) = trace.rounds[0].plan.rejected
    page = trace_server.show(opened_once, trace)
    shown = page.inner_text(".rejected")
    assert "No plan at all." in shown
    assert str(rejected.decision) in shown
    assert "tokens · $" in shown
    assert "A sum: one worker will do." in page.inner_text(".picture .thought")
    assert "Six sevens." in page.inner_text(".step-item .thought")
    page.click("summary:has-text('The planner\\'s prompt')")
    prompt = page.locator(".picture .message pre").all_text_contents()
    assert [text[:1000] for text in prompt] == [sent.content[:1000] for sent in trace.rounds[0].plan.messages]
    page.click(".step-item button:has-text('details')")
    assert '"max_tokens": 64' in page.inner_text(".step-detail")


@pytest.mark.nightly
def test_one_worker_alone_is_priced_with_its_source_on_a_phone(trace_server, phone) -> None:
    page = trace_server.show(phone, rejected_first())
    page.wait_for_selector(".explanation")
    said = page.inner_text(".explanation")
    for text in (
        "Quill is best at sums.",
        "It has the best rating on questions like this one.",
        "Estimated from its price in the team file and the tokens of this question",
        "90% likely right",
        "8 measured questions of the kind 'sums'",
        "It has the second best rating.",
    ):
        assert text in said
    list_, picture = (page.locator(selector).first.bounding_box() for selector in (".step-list", ".picture"))
    assert list_["y"] >= picture["y"] + picture["height"]
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert phone.overflow == 0


def test_the_list_is_beside_the_graph_where_there_is_room(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, rejected_first())
    list_, graph = (page.locator(selector).first.bounding_box() for selector in (".step-list", ".graph"))
    assert list_["x"] >= graph["x"] + graph["width"]


def test_a_worker_has_one_colour_of_its_own_on_every_page(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, rejected_first())
    page.wait_for_selector(".explanation")
    colour = "(mark) => getComputedStyle(mark).backgroundColor"
    quill, vet = (
        page.locator(f".explanation td:has-text('{name}') .dot").evaluate(colour) for name in ("quill", "vet")
    )
    assert quill != vet
    assert page.locator(".step-item .dot").evaluate(colour) == vet
    assert page.locator(".bar").evaluate(colour) == vet
    assert page.locator(".step-box .swatch").evaluate("(box) => getComputedStyle(box).fill") == vet
    pools = page.evaluate(
        """async () => {
            const { colour } = await import("/viewer/worker_colour.js");
            const pool = ["ada", "bram", "cleo", "dot", "eve", "fay", "gus", "hal", "ivy"];
            const found = (names) => pool.map((name) => colour(name, names));
            return [found(pool), found([...pool].reverse())];
        }"""
    )
    assert pools[0] == pools[1]
    assert len(set(pools[0])) == 9
