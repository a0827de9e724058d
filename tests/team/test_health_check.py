import asyncio

import pytest

from podium.team.health_check import check_workers
from podium.types import Limits
from podium.workers.function import FunctionWorker, worker


@pytest.mark.parametrize("at_once", [1, 2])
async def test_a_check_asks_models_that_share_a_memory_in_turns(at_once: int) -> None:
    running: list[int] = []
    most = 0

    def model(number: int) -> FunctionWorker:
        @worker(f"m{number}", limits=Limits(host="here", loaded_at_once=at_once))
        async def answer(messages: list[dict[str, str]]) -> str:
            nonlocal most
            running.append(number)
            most = max(most, len(running))
            await asyncio.sleep(0.01)
            running.remove(number)
            return "ready"

        return answer

    results = await check_workers([model(number) for number in range(4)])
    assert [result.worker for result in results if result.answered] == ["m0", "m1", "m2", "m3"]
    assert most == at_once
