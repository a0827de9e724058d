"""A server with keys: the viewer asks for one, once, keeps it in its tab, and shows what the key may see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from key_storage import KeyStorage


def keyed(serve, folder: Path, **allowed: object) -> tuple[str, str]:
    storage = KeyStorage(str(folder / "traces.sqlite"))
    with ThreadPoolExecutor(1) as thread:  # Playwright's own event loop runs in this one.
        key = thread.submit(lambda: storage.add("eve", **allowed)).result()
    return serve(keys=storage.keys(), store=folder / "traces.sqlite"), key


def test_the_viewer_requests_a_key_once_and_sends_it_with_every_request(
    serve, opened, tmp_path: Path
) -> None:
    url, key = keyed(serve, tmp_path, deny=("gus",))
    page = opened.go(url, "ask", "dialog[open]")
    page.fill("#key", "pk-wrong")
    page.click("text=Go on")
    page.wait_for_selector("dialog[open] p:has-text('key')")
    page.fill("#key", key)
    page.click("text=Go on")
    page.wait_for_selector("dialog:not([open])", state="attached")
    page.fill("textarea", "What is 6 x 7?")
    page.click("form.ask button.first")
    page.wait_for_selector(".headline .mark:not(.live)")
    page.reload()
    page.wait_for_selector("summary:has-text('Planner')")
    page.goto(f"{url}/#/pool")
    page.wait_for_selector(".worker")
    assert page.locator("dialog[open]").count() == 0
    assert page.locator(".worker:has-text('gus')").count() == 0
    page.goto(f"{url}/#/traces")
    page.wait_for_selector("text=1 trace")
    assert key not in page.content()
    assert key not in page.url
    assert page.evaluate("Object.keys(localStorage)") == []


@pytest.mark.nightly
def test_a_shortened_key_is_refused_and_the_whole_one_taken(serve, opened, tmp_path: Path) -> None:
    url, key = keyed(serve, tmp_path)
    page = opened.go(url, "pool", "dialog[open]")
    page.fill("#key", key[:12] + "…")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] p:has-text('not a whole key')")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    page.wait_for_selector(".worker")


def test_viewer_says_that_a_key_is_needed(serve, opened, tmp_path: Path) -> None:
    url, _ = keyed(serve, tmp_path)
    page = opened.go(url, "traces", "dialog[open]")
    page.click("text=Not now")
    page.wait_for_selector("[role=alert]:has-text('A key is needed')")


@pytest.mark.nightly
def test_a_key_that_is_refused_is_not_asked_for_again_by_itself(
    serve, opened_with_clock, tmp_path: Path
) -> None:
    url, _ = keyed(serve, tmp_path)
    opened_with_clock.page.clock.install()
    page = opened_with_clock.go(url, "pool", "dialog[open]")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.click("text=Not now")
    page.wait_for_selector("[role=alert]:has-text('A key is needed')")
    page.clock.run_for(60_000)
    assert asked == []
