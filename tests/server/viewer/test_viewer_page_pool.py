"""Pool, and what all pages share: the frame, the theme, addresses."""

from __future__ import annotations

import pytest

from podium.errors import WorkerError
from podium.types import Limits, Price, Profile
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker


def test_workers_are_shown_with_prices_and_health(kept_server, opened) -> None:
    broken = WorkerError("The provider is down.", kind="connection", retryable=True)
    pool = Pool(
        [
            ScriptedWorker(
                "ada",
                {"": "42"},
                profile=Profile(
                    name="ada",
                    description="Strong at sums.",
                    price=Price(input=1.25, output=10),
                    skills=("sums",),
                    sees=True,
                ),
            ),
            ScriptedWorker(
                "bram", {"": broken}, limits=Limits(retries=0, failures_to_open=1, probe_after=600)
            ),
        ]
    )
    url = kept_server(pool, planner="single:ada")
    for planner in ("single:ada", "single:bram"):
        page = opened.go(url, "ask", "summary:has-text('Planner')")
        page.click("summary:has-text('Planner')")
        page.select_option("#planner", planner)
        page.fill("textarea", "What is 6 x 7?")
        page.click("form.ask button.first")
        page.wait_for_selector(".headline .mark:not(.live)")
        opened.go(url, "pool", ".worker >> nth=1")
    page.wait_for_selector(".worker:has-text('bram') .mark:has-text('cooldown')")
    ada, bram = (worker.inner_text() for worker in page.locator(".worker").all())
    assert "Strong at sums." in ada
    assert "1.25 / M" in ada
    assert "sees images" in ada
    assert "in service" in ada
    assert "The provider is down." in bram
    assert bram.count("no price") == 2
    page.wait_for_selector(".tag:text-is('single:ada, as configured')")


@pytest.mark.nightly
def test_the_pool_fits_a_phone(plain_url, phone) -> None:
    phone.go(plain_url, "pool", ".worker >> nth=5")
    assert phone.overflow == 0


@pytest.mark.nightly
def test_the_theme_is_the_system_s_until_it_is_turned_and_then_remembered(plain_url, opened) -> None:
    page = opened.go(plain_url, "pool", ".worker")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("[aria-label='Light colours']")
    assert page.evaluate(paper) != light
    page.click("[aria-label='Light colours']")
    assert page.evaluate(paper) == light
    page.reload()
    page.wait_for_selector(".worker")
    assert page.evaluate(paper) == light


@pytest.mark.nightly
def test_words_can_be_read_in_both_themes(plain_url, opened) -> None:
    contrast = """() => {
        const channels = (name) => {
            const paint = document.createElement("canvas").getContext("2d");
            paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
            paint.fillRect(0, 0, 1, 1);
            return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const light = (name) => channels(name)
            .map((value) => value / 255)
            .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
            .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
        const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const words = ["--ink", "--quiet", "--accent", "--good", "--warn", "--bad", "--calm"];
        return Math.min(...words.flatMap((word) => ["--paper", "--sheet", "--sunk"].map((under) => ratio(word, under))),
            ratio("--on-accent", "--accent"));
    }"""
    page = opened.go(plain_url, "pool", ".worker")
    assert page.evaluate(contrast) >= 4.5
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(contrast) >= 4.5
