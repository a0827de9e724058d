"""Tells a planner that learns while it serves how the answers to its questions turned out.

What it learned is in the trace store alone: the latest judged traces. So it survives a restart, all servers of one
store learn the same, and an outcome that is changed, taken back or deleted with its trace counts as it is now.
"""

from __future__ import annotations

import asyncio
import logging
import time

from podium.errors import StoreError
from podium.planner import Learner, Planner
from podium.trace.async_store import AsyncTraceStore

_LOG = logging.getLogger("podium.server")
_FRESH_S = 5.0
"""Seconds for which outcomes that were read are used again, unless this server takes a new one."""


class Learning:
    """Reads outcomes for planners.

    Args:
        store: where the judged traces are; None: planners learn nothing. While it cannot be read, they know what they
            knew before.
    """

    def __init__(self, store: AsyncTraceStore | None) -> None:
        self._store = store
        self._read_at: dict[str, float] = {}
        self._reading = asyncio.Lock()

    def outcome_came(self) -> None:
        """The next plan reads the store again."""
        self._read_at.clear()

    async def refresh(self, planner: Planner) -> None:
        """Let a planner that learns take in the latest outcomes of its traces anew, in the order of the questions."""
        if self._store is None or not isinstance(planner, Learner):
            return
        async with self._reading:
            now = time.monotonic()
            if now - self._read_at.get(planner.name, float("-inf")) <= _FRESH_S:
                return
            self._read_at[planner.name] = now
            try:
                traces = await self._store.judged(planner.name, planner.memory)
            except StoreError as error:
                _LOG.error("The planner %s plans without newer outcomes: %s", planner.name, error)
                return
            planner.forget()
            for trace in traces:
                if trace.outcome is not None and trace.outcome.right is not None:
                    planner.learn(trace, float(trace.outcome.right))
