"""A real server on a free port of loopback, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from podium.workers.pool import Pool
from podium_testing import FaultServer, capable
from postgres_server import DATABASES
from running_server import Serve, capable_worker

collect_ignore = [] if "postgresql" in DATABASES else ["api/test_replicas_events.py"]
if find_spec("anthropic") is None:
    collect_ignore.append("anthropic_api/test_messages.py")


@pytest.fixture(scope="module")
def plain_url() -> Iterator[str]:
    """The address of a server that the tests of a file share: those that leave nothing in it."""
    with Serve() as starting:
        yield starting()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(pool=..., **settings)` starts a server and gives its address."""
    with Serve() as starting:
        yield starting


@pytest.fixture(scope="module")
def endpoint() -> Iterator[FaultServer]:
    """An endpoint that calls tools, thinks and obeys schemas."""
    with FaultServer(capable).in_thread() as running:
        yield running


@pytest.fixture(scope="module")
def url(endpoint: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of two workers behind `endpoint`: quill, which answers, and lark, which sees no images."""
    pool = Pool([capable_worker(endpoint), capable_worker(endpoint, "lark", sees=False)])
    store = tmp_path_factory.mktemp("kept") / "traces.sqlite"
    with Serve() as starting:
        yield starting(pool, planner="single:quill", store=store)
