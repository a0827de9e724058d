"""Whether the caller still waits: one who goes away cancels what is done for them.

For work that runs in the request's own task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

from podium.errors import APIError

GONE = 499
"""The status that logs show; the caller sees none."""


def left() -> APIError:
    """What ends a request whose caller went away."""
    return APIError(GONE, "cancelled", "The caller went away.")


@asynccontextmanager
async def attended(receive: Receive) -> AsyncIterator[None]:
    """Cancels the block when the caller goes away; the body has to be read before.

    Raises:
        APIError: 499, after the block was cancelled for it.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone and not task.uncancel():
            raise left() from None
        raise
    finally:
        watcher.cancel()
