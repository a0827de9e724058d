"""The pictures of the viewer in docs/: a real server on the embedded pool, real questions, a real run.

python runs/screenshots.py [FOLDER OF RUNS]

The folder has to hold a run called demo, as `make demo` leaves it in runs/. Needs Chromium on the PATH.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from podium.orchestrator.team import open_pool
from podium.tasks import open_tasks

DOCS = Path(__file__).parent.parent / "docs"
PLANNERS = ("conductor", "single:gus", "conductor", "random")
QUESTIONS = 40
WIDE, NARROW, PHONE = ({"width": w, "height": h} for w, h in ((1200, 900), (760, 600), (390, 844)))
FIRST = "First add 17 to 25; next turn the result into a Roman numeral; last, count the letters in it."
"""The question of the README."""


@contextmanager
def serving(runs: Path, store: Path) -> Iterator[str]:
    """The address of a server, which is ended with the block."""
    command = [
        sys.executable,
        "-m",
        "podium",
        "serve",
        "--port",
        "0",
        "--runs",
        str(runs),
        "--store",
        str(store),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = re.search(r"http://\S+", server.stdout.readline())
            if said is None:
                raise SystemExit("The server did not start.")
            yield said[0]
        finally:
            server.terminate()


def ask(url: str, text: str, planner: str, rounds: int = 1) -> str:
    """The id of the trace of a question that has ended."""
    body = {"question": text, "planner": planner, "rounds": rounds}
    found = str(fetch(f"{url}/api/ask", body)["id"])
    with urllib.request.urlopen(f"{url}/api/traces/{found}/events") as events:
        events.read()
    return found


def ask_until_right(url: str) -> str:
    """The id of the trace of the README's question, asked until the simulated workers do not err."""
    while True:
        found = ask(url, FIRST, "conductor")
        with urllib.request.urlopen(f"{url}/api/traces/{found}") as trace:
            if json.load(trace)["answer"].endswith("Answer: 4"):
                return found


def fetch(url: str, body: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=str(DOCS / f"viewer-{name}.png"), full_page=whole)
    print(f"docs/viewer-{name}.png")


def chat(page: Page, url: str, longest: str) -> None:
    """A thread with an answer, and a plan that waits for approval."""
    page.goto(f"{url}/#/chat")
    page.wait_for_selector("#message")
    page.fill("#message", FIRST)
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn-foot .mark:not(.live)")
    while not page.locator(".said-by-team").last.inner_text().endswith("Answer: 4"):  # Simulated workers err.
        page.click("[aria-label^=Delete]")
        page.click("[aria-label^=Delete]")
        page.wait_for_selector(".thread .empty")
        page.fill("#message", FIRST)
        page.keyboard.press("Enter")
        page.wait_for_selector(".turn-foot .mark:not(.live)")
    page.check("text=approve before paying")
    page.fill("#message", longest)
    page.keyboard.press("Enter")
    page.wait_for_selector(".approval .first:has-text('about')")
    picture(page, "chat", whole=True)


def main(runs: Path) -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or not (runs / "demo").is_dir():
        raise SystemExit("Needs Chromium on the PATH, and a run called demo: make demo")
    pool = open_pool("embedded")
    tasks = [task.question.text for task in open_tasks("embedded", "test", size=QUESTIONS, pool=pool)]
    longest = max(tasks, key=len)
    with tempfile.TemporaryDirectory() as folder, serving(runs, Path(folder) / "traces.sqlite") as url:
        for number, task in enumerate(tasks):
            ask(url, task, PLANNERS[number % len(PLANNERS)])
        plan = ask_until_right(url)
        one, other = ask(url, longest, "conductor", 2), ask(url, longest, "single:gus")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport=WIDE, color_scheme="light")
            page.goto(f"{url}/#/ask")
            page.fill("textarea", longest)
            page.keyboard.press("Enter")
            page.wait_for_selector(".headline .mark.good")
            picture(page, "ask")
            page.goto(f"{url}/#/traces")
            page.wait_for_selector(".list-row a")
            picture(page, "traces")
            page.set_viewport_size(NARROW)
            page.goto(f"{url}/#/traces/{plan}")
            page.wait_for_selector(".step-box")
            picture(page, "plan", whole=True)
            page.set_viewport_size(WIDE)
            page.goto(f"{url}/#/traces/{one}")
            page.locator(".step-box").last.click()
            page.wait_for_selector(".step-detail")
            picture(page, "trace", whole=True)
            page.goto(f"{url}/#/compare/{one}/{other}")
            page.wait_for_selector(".pair .trace >> nth=1")
            picture(page, "compare")
            chat(page, url, longest)
            page.goto(f"{url}/#/runs/demo")
            page.wait_for_selector(".frontier circle")
            picture(page, "runs", whole=True)
            page.emulate_media(color_scheme="dark")
            page.goto(f"{url}/#/pool")
            page.wait_for_selector(".worker >> nth=6")
            picture(page, "pool")
            page.set_viewport_size(PHONE)
            page.goto(f"{url}/#/traces/{one}")
            page.wait_for_selector(".step-box")
            picture(page, "phone")
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
