"""A call that takes too long fails, and so does one whose worker met a time limit of its own."""

from __future__ import annotations

import asyncio

import pytest

from podium.errors import WorkerError
from podium.workers.base import time_limit


async def test_a_call_ends_at_its_limit_and_says_it() -> None:
    with pytest.raises(WorkerError, match=r"^No answer within 0\.01 s\.$") as ended:
        async with time_limit(0.01):
            await asyncio.sleep(60)
    assert (ended.value.kind, ended.value.retryable) == ("timeout", True)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (TimeoutError(), "It raised TimeoutError."),
        (TimeoutError("No row."), "It raised TimeoutError: No row."),
    ],
)
async def test_a_time_limit_of_the_worker_itself_is_not_called_the_calls(
    raised: TimeoutError, said: str
) -> None:
    with pytest.raises(WorkerError) as ended:
        async with time_limit(120):
            raise raised
    assert (str(ended.value), ended.value.kind) == (said, "timeout")
