"""Pictures of the viewer: a real server on the team orchestra of podium-lab, questions of its world, real runs.

python runs/screenshots.py                  the pictures of docs/
python runs/screenshots.py --all FOLDER     every page, 1400 and 390 pixels wide, light and dark, into FOLDER
python runs/screenshots.py --runs FOLDER    with the runs of FOLDER; default: those of the shipped Conductors
python runs/screenshots.py --plan TRACE     with a trace as the picture of the README; default: a question of the world

TRACE is a file that `podium traces export` wrote: of a question that published models answered, say.
The questions are dated back over 30 days, so that Spend has days to show; their answers are judged by their golds.
Needs Chromium on the PATH. `SHOTS` has the pages, `DOCS` the pictures of the documents.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from podium.conductor.checkpoint import checkpoint_folder
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.tasks.task import Task
from podium.team.team_file import open_pool
from podium.trace import Outcome, Trace

ROOT = Path(__file__).parent.parent
TEAM, TASKS = "orchestra", "world"
ALONE = "single:kaspar"
PLANNERS = ("conductor", ALONE, "conductor", "random")
QUESTIONS = 40
DAYS = 30
WIDTHS, HEIGHT, MOST_TALL = (1400, 390), 900, 8000


Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@dataclass(frozen=True)
class Shot:
    """One page."""

    name: str
    address: str
    """After "#/", with the names of `made` in braces."""
    wait: str
    """Selects what has to be there."""
    act: Callable[[Page, dict[str, str]], object] | None = None
    """What to do before the picture, with what `main` made."""


def _ask(page: Page, made: dict[str, str]) -> None:
    del made
    page.focus("textarea")
    page.keyboard.press("Enter")
    page.wait_for_selector(".headline .mark.good")


def _open_last_step(page: Page, made: dict[str, str]) -> None:
    del made
    page.locator(".step-box").last.click()


def _chat(page: Page, made: dict[str, str]) -> None:
    """A thread with an answer, and a plan that waits for approval."""

    def say(text: str, wait: str) -> None:
        page.fill("#message", text)
        page.keyboard.press("Enter")
        page.wait_for_selector(wait)

    say(made["first"], ".turn-foot .mark:not(.live)")
    page.check("text=approve before paying")
    say(made["question"], ".approval .first:has-text('about')")


SHOTS = (
    Shot("ask", "ask?q={longest}", "textarea", _ask),
    Shot("chat", "chat", "#message", _chat),
    Shot("traces", "traces", ".list-row a"),
    Shot("plan", "traces/{plan}", ".step-box"),
    Shot("trace", "traces/{one}", ".step-box", _open_last_step),
    Shot("compare", "compare/{one}/{other}", ".pair .trace >> nth=1"),
    Shot("runs", "runs", ".run-list li"),
    Shot("run", "runs/{run}", ".curves canvas >> nth=0"),
    Shot("two-runs", "runs/{run}/vs/{run2}", ".curves canvas"),
    Shot("spend", "spend", ".bars svg .day"),
    Shot("spend-planner", "spend?by=planner", ".bars svg .day"),
    Shot("pool", "pool", ".worker >> nth=6"),
)
"""Every page. A new page is one line more."""


@dataclass(frozen=True)
class DocPicture:
    """A picture of docs/, as viewer-NAME.png."""

    name: str
    shot: str
    size: tuple[int, int] = (1200, 900)
    scheme: Scheme = "light"
    whole: bool = False
    """Whether it shows the page down to its end."""


DOCS = (
    DocPicture("ask", "ask"),
    DocPicture("chat", "chat", whole=True),
    DocPicture("traces", "traces"),
    DocPicture("plan", "plan", (760, 1000)),
    DocPicture("trace", "trace", (1200, 1500)),
    DocPicture("compare", "compare"),
    DocPicture("runs", "run", (1200, 2100)),
    DocPicture("spend", "spend"),
    DocPicture("pool", "pool", scheme="dark"),
    DocPicture("phone", "trace", (390, 844), "dark"),
)


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
        "--team",
        TEAM,
        f"serve.runs={runs}",
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


def fetch(url: str, body: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def is_right(task: Task, trace: Trace) -> bool:
    """Whether the task's gold answer judges the trace's answer right."""
    return asyncio.run(task.grade(trace.answer or "")).score == 1


def longest_right(url: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """The longest question that the Conductor answers right, and the id of its trace."""
    for task in sorted(tasks, key=lambda task: len(task.question.text), reverse=True):
        trace_id = ask(url, task.question.text, "conductor")
        with urllib.request.urlopen(f"{url}/api/traces/{trace_id}") as answer:
            trace = Trace.model_validate_json(answer.read())
        if is_right(task, trace):
            return task.question.text, trace_id
    raise SystemExit("The Conductor answered no question right.")


def date_back_and_judge(path: Path, asked: dict[str, Task]) -> None:
    """Spread the questions over the last days, and judge two of three answers."""
    now = datetime.now(UTC)

    with TraceStore(path) as store:
        traces = []
        for number, (id_, task) in enumerate(asked.items()):
            trace, back = store.get(id_), timedelta(days=(number * DAYS // len(asked)))
            outcome = Outcome(right=is_right(task, trace), at=now.isoformat()) if number % 3 else None
            changes = {"started_at": (now - back).isoformat(), "outcome": outcome}
            traces.append(trace.model_copy(update=changes))
        store.add_all(traces)


def run_folder(given: Path | None, folder: Path) -> Path:
    """The folder of runs: the one that was given, else one with the runs of the shipped Conductors."""
    if given is not None:
        return given
    for name, checkpoint in (("shipped", "world-conductor"), ("start", "world-warmstart")):
        shutil.copytree(checkpoint_folder(checkpoint) / "run", folder / "runs" / name)
    return folder / "runs"


def picture(page: Page, url: str, shot: Shot, made: dict[str, str], path: Path, *, whole: bool) -> None:
    """Open the page anew and take its picture."""
    page.goto("about:blank")
    page.goto(f"{url}/#/{shot.address.format(**made)}")
    page.wait_for_selector(shot.wait)
    if shot.act is not None:
        shot.act(page, made)
    size = page.viewport_size
    assert size is not None
    if whole:  # A browser draws some parts only when they are in sight.
        tall = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": size["width"], "height": max(size["height"], min(tall, MOST_TALL))})
    page.wait_for_timeout(500)
    page.screenshot(path=str(path), full_page=whole)
    page.set_viewport_size(size)
    sideways = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    print(path, f"can be moved sideways by {sideways} pixels" if sideways > 0 else "")


def make(url: str, made: dict[str, str], all_into: Path | None) -> None:
    """Make the pictures of the documents, or all pictures into a folder."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("Needs Chromium on the PATH.")
    shots = {shot.name: shot for shot in SHOTS}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def opened(width: int, height: int, scheme: Scheme) -> Page:
            return browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)

        if all_into is None:
            for one in DOCS:
                page = opened(*one.size, one.scheme)
                picture(
                    page, url, shots[one.shot], made, ROOT / f"docs/viewer-{one.name}.png", whole=one.whole
                )
                page.close()
        else:
            all_into.mkdir(parents=True, exist_ok=True)
            for width in WIDTHS:
                for scheme in SCHEMES:
                    page = opened(width, HEIGHT, scheme)
                    for shot in SHOTS:
                        path = all_into / f"{shot.name}-{width}-{scheme}.png"
                        picture(page, url, shot, made, path, whole=True)
                    page.close()
        browser.close()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Pictures of the viewer.")
    parser.add_argument(
        "--all", type=Path, metavar="FOLDER", help="every page at both widths, light and dark"
    )
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="the folder of runs")
    parser.add_argument("--plan", type=Path, metavar="TRACE", help="the trace of the README's picture")
    parser.add_argument("--run", default="shipped", help="the run of the page of a run")
    parser.add_argument("--run2", default="start", help="the run beside it")
    chosen = parser.parse_args(arguments)
    pool = open_pool(TEAM)
    tasks = list(open_tasks(TASKS, "test", size=QUESTIONS, pool=pool))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, runs = folder / "traces.sqlite", run_folder(chosen.runs, folder)
        with serving(runs, store) as url:
            asked = {
                ask(url, task.question.text, PLANNERS[number % len(PLANNERS)]): task
                for number, task in enumerate(tasks)
            }
            longest, plan = longest_right(url, tasks)
            made = {
                "plan": plan,
                "first": tasks[0].question.text,
                "one": ask(url, longest, "conductor", 2),
                "other": ask(url, longest, ALONE),
                "question": longest,
                "longest": quote(longest),
                "run": chosen.run,
                "run2": chosen.run2,
            }
        date_back_and_judge(store, asked)
        if chosen.plan is not None:
            trace = Trace.model_validate_json(chosen.plan.read_text(encoding="utf-8").splitlines()[-1])
            made["plan"] = trace.id
            with TraceStore(store) as kept:
                kept.add_all([trace])
        with serving(runs, store) as url:
            make(url, made, chosen.all)


if __name__ == "__main__":
    main(sys.argv[1:])
