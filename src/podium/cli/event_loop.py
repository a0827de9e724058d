"""The event loop of a command that serves until a signal ends it."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Coroutine
from typing import Any


def run_event_loop(serving: Coroutine[Any, Any, bool]) -> bool:
    """Run on the fastest event loop available, with as many connections as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(serving)
