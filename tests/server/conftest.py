"""A real server on a free port of loopback, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from running_server import Serve

from postgres_server import DATABASES

collect_ignore = [] if "postgresql" in DATABASES else ["api/test_replicas_events.py"]
if find_spec("anthropic") is None:
    collect_ignore.append("anthropic_api/test_messages.py")


@pytest.fixture(scope="module")
def plain_url() -> Iterator[str]:
    """The address of a server that the tests of a file share: those that leave nothing in it."""
    starting = Serve()
    try:
        yield starting()
    finally:
        starting.stop_all()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(pool=..., **settings)` starts a server and gives its address."""
    starting = Serve()
    try:
        yield starting
    finally:
        starting.stop_all()
