"""The newest traces, read at most once every few seconds, and estimates of plans' costs from them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from podium.errors import StoreError
from podium.executor.plan_estimate import (
    ASSUMED_TOKENS,
    MIN_PAST_ANSWERS,
    NEWEST_TRACES,
    StepEstimate,
    estimate_plan,
    past_answers_in,
)
from podium.store import TraceStore
from podium.trace import Trace
from podium.types import Price, Question
from podium.workers.pool import Pool
from podium.workflow import Workflow

_LOG = logging.getLogger("podium.server")
_FRESH_S = 10.0
"""Seconds for which traces that were read are used again."""
_SOURCE = (
    f"the prices of the team file; the lengths of a worker's past answers, if the newest {NEWEST_TRACES} traces have "
    f"at least {MIN_PAST_ANSWERS} of them, else {ASSUMED_TOKENS} tokens for each of its answers."
)


class RecentTraces:
    """The newest traces of a store."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._traces: Sequence[Trace] = ()
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def read(self) -> Sequence[Trace]:
        """The traces. Those that were read a few seconds ago are used again.

        Raises:
            StoreError: the store cannot be read.
        """
        async with self._reading:
            if time.monotonic() - self._read_at > _FRESH_S:
                self._traces = await self._store.to_thread(self._store.newest, NEWEST_TRACES)
                self._read_at = time.monotonic()
            return self._traces

    async def estimate(self, workflow: Workflow, pool: Pool, question: Question) -> dict[str, Any]:
        """The estimated dollars of a plan, with the worker numbers of `pool`, and of each of its steps, ready for JSON,
        with their source."""
        try:
            traces = await self.read()
        except StoreError as error:
            # The plan is paid for and its caller is waiting, so a failing store must not lose it.
            _LOG.error("Plans are estimated without newer answers: %s", error)
            traces = self._traces
        expected = estimate_plan(workflow, pool, question, past=past_answers_in(traces))
        steps = [
            asdict(step) | {"source": _source(step, pool.named(step.worker).profile.price)}
            for step in expected.steps
        ]
        return asdict(expected) | {"source": _SOURCE, "steps": steps}


def _source(step: StepEstimate, price: Price) -> str:
    length = (
        f"{step.past_answers} past answers" if step.past_answers else f"an assumed {ASSUMED_TOKENS} tokens"
    )
    if not price.is_known:
        return f"{length}; the team file names no price"
    return f"{length}, at ${price.input:g} and ${price.output:g} per million input and output tokens"
