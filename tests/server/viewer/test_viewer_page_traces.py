"""Traces: the table, its filters, its twenty thousand rows, and two of them compared."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from running_server import Serve
from viewer_traces import keep, keep_rows, many, plain, two_rounds


def rows(page) -> int:
    return int(page.locator(".list-row").count())


@pytest.fixture(scope="module")
def thirty(shared_serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a server of thirty traces."""
    return shared_serve(store=keep(tmp_path_factory.mktemp("thirty") / "traces.sqlite", *many(30)))


def test_a_trace_is_found_by_its_words_and_opened(thirty, opened_once) -> None:
    page = opened_once.go(thirty, "traces", ".list-row a")
    page.wait_for_selector("text=30 traces")
    page.fill("[type=search]", "number 17")
    page.wait_for_selector("text=1 trace")
    assert page.inner_text(".list-row a") == "Question number 17"
    assert "q=number+17" in page.url
    page.click(".list-row a")
    page.wait_for_selector("text=raw JSON")
    page.go_back()
    page.wait_for_selector("text=1 trace")
    assert page.input_value("[type=search]") == "number 17"


@pytest.mark.nightly
def test_a_damaged_trace_is_left_out_and_counted(kept_server, opened, tmp_path: Path) -> None:
    kept = keep(tmp_path / "traces.sqlite", *many(30))
    with closing(sqlite3.connect(kept)) as file, file:
        damaged = file.execute(
            "UPDATE traces SET question = x'fffe' WHERE id IN (SELECT id FROM traces ORDER BY started LIMIT 2)"
        )
        assert damaged.rowcount == 2
    page = opened.go(kept_server(kept=kept), "traces", ".list-row a")
    page.wait_for_selector("text=2 damaged traces left out.")
    page.wait_for_selector("text=28 traces")


def test_filters_are_part_of_the_address_and_can_be_shared(thirty, opened_once) -> None:
    page = opened_once.go(thirty, "traces", ".list-row a")
    page.click("summary:has-text('Filters')")
    page.select_option("label:has-text('status') select", "failed")
    page.wait_for_selector("text=3 traces")
    shared = page.url
    page.goto(f"{thirty}/#/pool")
    page.wait_for_selector(".worker")
    page.goto(shared)
    page.wait_for_selector("text=3 traces")
    assert page.locator(".list-row .mark.bad").count() == 3
    page.fill("label:has-text('dollars from') input", "5")
    page.wait_for_selector("text=No trace passes these filters.")
    page.click("nav >> text=Traces")
    page.wait_for_selector("text=30 traces")


def test_four_thousand_traces_scroll_with_few_rows_drawn(kept_server, opened, tmp_path: Path) -> None:
    kept = keep_rows(tmp_path / "traces.sqlite", 4_000)
    page = opened.go(kept_server(kept=kept), "traces", ".list-row a")
    page.wait_for_selector("text=of 4,000 traces read")
    assert page.inner_text(".list-row a >> nth=0") == "Question number 3999"
    frame = page.locator(".list-frame")
    assert frame.evaluate("(frame) => frame.scrollHeight") > 4_000 * 40
    most = 0
    for row in (10, 50, 300, 301, 2000, 1500):
        frame.evaluate("(frame, top) => { frame.scrollTop = top; }", row * 40)
        page.wait_for_selector(f"text='Question number {3_999 - row - 3}'")
        most = max(most, rows(page))
    assert most < 60
    drawn = page.evaluate(
        """async () => {
            const frame = document.querySelector(".list-frame");
            frame.scrollTop = 0;
            await new Promise(requestAnimationFrame);
            let drawn = 0;
            new MutationObserver((changes) => {
                for (const change of changes)
                    drawn += [...change.addedNodes].filter((node) => node.matches?.(".list-row")).length;
            }).observe(frame, { subtree: true, childList: true });
            for (let i = 0; i < 60; i++) {
                frame.scrollTop += 700;
                await new Promise(requestAnimationFrame);
            }
            return drawn;
        }"""
    )
    assert 0 < drawn < 60 * 60, "a frame draws the rows that come into view"
    assert rows(page) < 60


@pytest.mark.nightly
def test_the_table_is_walked_by_keyboard(kept_server, opened, tmp_path: Path) -> None:
    kept = keep(tmp_path / "traces.sqlite", *many(500))
    page = opened.go(kept_server(kept=kept), "traces", ".list-row a")
    page.focus(".list-row a >> nth=0")

    def at(number: int) -> str:
        return f".list-row a:focus:text-is('Question number {number}')"

    for key, number in (("ArrowDown", 498), ("ArrowDown", 497), ("ArrowUp", 498)):
        page.keyboard.press(key)
        page.wait_for_selector(at(number))
    page.keyboard.press("PageDown")
    page.wait_for_selector(f"{at(498)}", state="detached")
    page.keyboard.press("Home")
    page.wait_for_selector(at(499))
    page.keyboard.press("Enter")
    page.wait_for_selector("text=raw JSON")


def test_two_traces_are_marked_and_compared(kept_server, opened, tmp_path: Path) -> None:
    kept = keep(tmp_path / "traces.sqlite", plain("41"), two_rounds())
    page = opened.go(kept_server(kept=kept), "traces", ".list-row a")
    button = page.locator("button:has-text('Compare')")
    assert button.is_disabled()
    for box in page.locator(".list-row input").all():
        box.check()
    button.click()
    page.wait_for_selector(".pair .trace >> nth=1")
    page.wait_for_selector("text=not the same words")
    assert "#/compare/" in page.url
    calls = page.locator(".difference tr:has-text('calls') td").all_inner_texts()
    assert sorted(calls[:2]) == ["1", "3"]
    left, right = (pane.bounding_box() for pane in page.locator(".pair > div").all())
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


@pytest.mark.nightly
def test_the_table_and_the_comparison_fit_a_phone(kept_server, phone, tmp_path: Path) -> None:
    one, other = plain("41"), two_rounds()
    url = kept_server(kept=keep(tmp_path / "traces.sqlite", one, other))
    page = phone.go(url, "traces", ".list-row a")
    page.click("summary:has-text('Filters')")
    assert phone.overflow == 0
    phone.go(url, f"compare/{one.id}/{other.id}", ".pair .trace >> nth=1")
    assert phone.overflow == 0
