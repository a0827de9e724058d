"""A question context, as a runner makes it, for tests of what runs inside one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podium.calls import CallState
from podium.executor import ExecutionSettings, QuestionContext
from podium.spending import Ledger
from podium.types import Budget, Question
from podium.workers.base import Worker
from podium.workers.pool import Pool

QUICK = ExecutionSettings(first_wait_s=0.001)


@pytest.fixture(scope="session")
def make_context() -> Callable[..., QuestionContext]:
    """`make_context(workers, budget=..., ...)`: to be called on a running event loop."""

    def make(workers: Sequence[Worker], *, budget: Budget = Budget(), **fields: Any) -> QuestionContext:
        started = asyncio.get_running_loop().time()
        values: dict[str, Any] = {
            "question": Question(text="What is 2 + 2?"),
            "pool": Pool(workers),
            "seed": "7",
            "fence_mark": "feed",
            "queue_key": "feed",
            "ledger": Ledger(budget, None if budget.seconds is None else started + budget.seconds),
            "call_state": CallState(),
            "settings": QUICK,
            "started": started,
        }
        return QuestionContext(**{**values, **fields})

    return make
