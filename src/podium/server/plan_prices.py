"""Estimates the cost of a plan in the form of the API: the dollars of each step and of the plan, with their source.

The lengths of answers come from the newest traces, which are read at most once every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from podium.errors import StoreError
from podium.executor.estimate import ASSUMED_TOKENS, ENOUGH, StepEstimate, estimate_plan
from podium.store.answers import PastAnswers, answers_in
from podium.store.async_store import AsyncTraceStore
from podium.types import Price, Question
from podium.workers.pool import Pool
from podium.workflow import Workflow

_LOG = logging.getLogger("podium.server")
_TRACES = 200
"""How many of the newest traces are read for lengths."""
_FRESH_S = 10.0
"""Seconds for which lengths that were read are used again."""
_SOURCE = (
    f"the prices of the pool file; the lengths of a worker's past answers, if the newest {_TRACES} traces have at "
    f"least {ENOUGH} of them, else {ASSUMED_TOKENS} tokens for each of its answers."
)


class PlanPrices:
    """Estimates plans.

    Args:
        store: the store with past answers. While it cannot be read, the lengths that were read last are used.
    """

    def __init__(self, store: AsyncTraceStore) -> None:
        self._store = store
        self._past: Mapping[str, PastAnswers] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def estimate(self, workflow: Workflow, pool: Pool, question: Question) -> dict[str, Any]:
        """The estimate, ready for JSON, of a workflow with the worker numbers of `pool`."""
        past = await self._read()
        expected = estimate_plan(workflow, pool, question, past=past)
        steps = [
            asdict(step) | {"source": _source(step, pool.named(step.worker).profile.price)}
            for step in expected.steps
        ]
        return asdict(expected) | {"source": _SOURCE, "steps": steps}

    async def _read(self) -> Mapping[str, PastAnswers]:
        async with self._reading:
            if time.monotonic() - self._read_at > _FRESH_S:
                try:
                    self._past = answers_in(await self._store.newest(_TRACES))
                except StoreError as error:
                    # The plan is paid for and its caller is waiting, so a failing store must not lose it.
                    _LOG.error("Plans are estimated without newer answers: %s", error)
                self._read_at = time.monotonic()
            return self._past


def _source(step: StepEstimate, price: Price) -> str:
    length = (
        f"{step.past_answers} past answers" if step.past_answers else f"an assumed {ASSUMED_TOKENS} tokens"
    )
    if not price.is_known:
        return f"{length}; the pool file names no price"
    return f"{length}, at ${price.input:g} and ${price.output:g} per million input and output tokens"
