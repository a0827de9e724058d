"""The requests under way, and whether more questions are taken: what draining a server waits for and cuts short.

Filled by `guards.clock`, emptied by `serving`, shown by `health` and `metrics`. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio

_LOOK_S = 0.02


class Traffic:
    """Requests by what they are for. Belongs to one event loop."""

    def __init__(self) -> None:
        self.draining = False
        """Whether no further question is taken, because the server is about to end."""
        self.asking: set[asyncio.Task[object]] = set()
        """Tasks of requests that ask or change something."""
        self.looking: set[asyncio.Task[object]] = set()
        """Tasks of requests that only read, which may follow a question for as long as it runs."""
        self._cut: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self.asking) + len(self.looking)

    def begin(self, *, asks: bool) -> asyncio.Task[object]:
        """Count the running task as one of these; to be given to `end`."""
        task = asyncio.current_task()
        assert task is not None
        (self.asking if asks else self.looking).add(task)
        return task

    def end(self, task: asyncio.Task[object]) -> None:
        """It is answered."""
        self.asking.discard(task)
        self.looking.discard(task)
        self._cut.discard(task)

    def was_cut(self, task: asyncio.Task[object]) -> bool:
        """Whether it was cancelled by `cut`."""
        return task in self._cut

    def cut(self, tasks: set[asyncio.Task[object]]) -> None:
        """Cancel these, once: a second cancellation would disturb what the first one set off."""
        for task in tasks - self._cut:
            self._cut.add(task)
            task.cancel()

    async def gone(self, *groups: set[asyncio.Task[object]] | dict[str, asyncio.Task[object]]) -> None:
        """Wait until all of these are empty."""
        while any(groups):  # noqa: ASYNC110 - they change in many places, and this is waited for once in a life
            await asyncio.sleep(_LOOK_S)
