"""Feedback on the page of a trace: right, wrong, a note, and taking it back."""

from __future__ import annotations

from pathlib import Path

import httpx

from viewer_traces import keep, plain


def test_answer_can_be_judged_with_a_note_and_filtered_by_outcome(
    kept_server, opened, tmp_path: Path
) -> None:
    trace = plain()
    url = kept_server(kept=keep(tmp_path / "traces.sqlite", trace))

    def kept() -> dict[str, object] | None:
        return httpx.get(f"{url}/api/traces/{trace.id}").json()["outcome"]

    page = opened.go(url, f"traces/{trace.id}", ".feedback")
    page.click(".feedback .wrong")
    page.wait_for_selector(".feedback .wrong[aria-pressed=true]")
    page.click("text=add a note")
    page.keyboard.type("It is <b>43</b>.")
    page.keyboard.press("Enter")
    page.wait_for_selector(".feedback .said")
    assert page.inner_text(".feedback .said") == "It is <b>43</b>."
    said = kept()
    assert said is not None
    assert (said["right"], said["note"]) == (False, "It is <b>43</b>.")
    page.reload()
    page.wait_for_selector(".feedback .wrong[aria-pressed=true]")
    page.click(".feedback .wrong")
    page.wait_for_selector(".feedback .wrong[aria-pressed=false]")
    assert kept() == said | {"right": None, "at": kept()["at"]}
    page = opened.go(url, "traces?outcome=note", ".list-row a")
    page.select_option(".filter:has-text('outcome') select", "right")
    page.wait_for_selector("text=No trace passes these filters.")
