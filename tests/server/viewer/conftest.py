"""The viewer in a real Chromium, before a real server.

Where there is no Chromium the tests of its pages are not collected, and a warning says so; those of its files and
routes always are.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podium.trace import Trace
from running_server import Serve
from viewer_traces import keep

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)  # A quarter less time in the first.
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
collect_ignore_glob = [] if CHROMIUM else ["test_viewer_page_*.py"]
WIDE = {"width": 1200, "height": 900}
PHONE = {"width": 390, "height": 844}


if CHROMIUM is None:
    warnings.warn(
        "No Chromium here, so the viewer's pages are not tested; Debian's package: chromium", stacklevel=1
    )


@dataclass
class Opened:
    """A page, and everything in it that should not have happened."""

    page: Any
    faults: list[str] = field(default_factory=list)

    def go(self, url: str, path: str, wait: str) -> Any:
        """Open `#path` of the viewer at `url` and wait for what `wait` selects; gives the page."""
        if self.page.url.startswith(url):  # So that nothing is left of what it showed before.
            self.page.unroute_all()
            self.page.goto(f"{url}/#/nowhere")
            self.page.wait_for_selector("text=There is no such page.")
            self.page.evaluate("localStorage.clear()")
        self.page.goto(f"{url}/#/{path}")
        self.page.wait_for_selector(wait)
        return self.page

    @property
    def overflow(self) -> int:
        """Pixels by which the page can be moved sideways."""
        return int(self.page.evaluate("scrollTo(1000, scrollY), scrollX"))


@dataclass
class Browser:
    """Chromium. A context is a window of it, which costs as much as a test: pages of one size share theirs."""

    playwright: Any
    chromium: Any
    contexts: dict[int, Any] = field(default_factory=dict)

    def context(self, size: dict[str, int]) -> Any:
        """The shared context of this size; its first page stays empty and keeps its window."""
        if size["width"] not in self.contexts:
            self.contexts[size["width"]] = self.new_context(size)
        return self.contexts[size["width"]]

    def new_context(self, size: dict[str, int]) -> Any:
        context = self.chromium.new_context(viewport=size, reduced_motion="reduce")
        context.set_default_timeout(30_000)
        context.new_page()
        return context

    def close(self) -> None:
        self.chromium.close()
        self.playwright.stop()


_BROWSER = pytest.StashKey[Browser]()


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Browser:
    """Chromium, one for this folder's tests."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not needed where there is no Chromium

    stash = request.config.stash
    if _BROWSER not in stash:
        playwright = sync_playwright().start()
        # Without its sandbox, for Chromium has none as root; --disable-dev-shm-usage for small containers. One process
        # for all pages: each test has a server of its own, so each would start another.
        flags = [
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--renderer-process-limit=1",
            "--disable-site-isolation-trials",
        ]
        stash[_BROWSER] = Browser(
            playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        )
    return stash[_BROWSER]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End Chromium with the folder: Playwright's event loop would be in the way of asynchronous tests."""
    yield
    stash = item.config.stash
    if _BROWSER in stash and (nextitem is None or nextitem.path.parent != item.path.parent):
        stash[_BROWSER].close()
        del stash[_BROWSER]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """A page of its own; at the end nothing may have gone wrong in it, and nothing asked of other machines."""
    yield from _open(browser.context(WIDE))


@pytest.fixture(scope="module")
def opened_once(browser: Browser) -> Iterator[Opened]:
    """The same for all tests of a file that leave nothing in it: to load the viewer costs as much as a test."""
    yield from _open(browser.context(WIDE))


@pytest.fixture
def phone(browser: Browser) -> Iterator[Opened]:
    """The same, on a phone's width."""
    yield from _open(browser.context(PHONE))


@pytest.fixture
def opened_with_clock(browser: Browser) -> Iterator[Opened]:
    """A page whose clock can be moved: all pages of a context have one."""
    context = browser.new_context(WIDE)
    yield from _open(context)
    context.close()


def _open(context: Any) -> Iterator[Opened]:
    others = list(context.pages)
    opened = Opened(context.new_page())
    page, faults = opened.page, opened.faults
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda said: _is_fault(said) and faults.append(f"console: {said.text}"))
    page.on("request", lambda asked: _is_foreign(asked.url) and faults.append(f"asked: {asked.url}"))
    yield opened
    if page.url.startswith("http"):
        page.evaluate("localStorage.clear()")  # A later server may have the same port.
    for each in context.pages:
        if each not in others:
            each.close()
    assert faults == []


def _is_fault(said: Any) -> bool:
    # The browser itself reports every refused request; what the viewer makes of it is what tests look at.
    return said.type == "error" and "Failed to load resource" not in said.text


def _is_foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "blob:", "data:"))


@dataclass
class TraceServer:
    """A server of one file's traces, which they are put into one after the other."""

    url: str
    kept: Path

    def show(self, opened: Opened, trace: Trace) -> Any:
        """The page of a trace that it did not have yet."""
        return opened.go(self.url, f"traces/{self.add(trace)}", ".trace")

    def add(self, trace: Trace) -> str:
        """Its id."""
        keep(self.kept, trace)
        return trace.id


@pytest.fixture(scope="module")
def shared_serve() -> Iterator[Serve]:
    """Starts servers that the tests of a file share."""
    with Serve() as serve:
        yield serve


@pytest.fixture(scope="module")
def trace_server(shared_serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> TraceServer:
    kept = tmp_path_factory.mktemp("shown") / "traces.sqlite"
    return TraceServer(shared_serve(store=kept), kept)


@pytest.fixture
def kept_server(serve: Any, tmp_path: Path) -> Callable[..., str]:
    """`kept_server(pool, kept=PATH, ...)`: a server that keeps its traces, in the file given or one of its own."""

    def start(pool: Any = None, *, kept: Path | None = None, **settings: Any) -> str:
        return str(serve(pool, store=kept or tmp_path / "kept.sqlite", **settings))

    return start
