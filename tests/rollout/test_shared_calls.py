"""Rollouts with a response cache: which of their calls are equal, and so are paid for once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podium.calls import CallState
from podium.planners.planner import PrewrittenPlans
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.types import Question
from podium.workers.response_cache import ResponseCache
from podium_testing import FaultServer

WORKER = '[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'


def plan(models: str, subtasks: str, access: str) -> str:
    return f"model_id = [{models}]\nsubtasks = [{subtasks}]\naccess_list = [{access}]"


async def test_equal_calls_share_one_payment_except_steps_of_one_plan(
    tmp_path: Path,
) -> None:
    with ResponseCache(tmp_path / "answers.sqlite") as cache:
        async with FaultServer("Answer: 7") as server:
            path = tmp_path / "pool.toml"
            path.write_text("".join(WORKER.format(name=name, url=server.url) for name in ("ada", "bo")))
            pool = open_pool(path)

            async def paid(text: str, seed: str) -> int:
                before = len(server.requests)
                runner = Runner(PrewrittenPlans((text,)), pool, call_state=CallState(cache=cache))
                trace = await runner.answer(Question(text="3 + 4?"), seed=seed)
                assert trace.status == "ok"
                return len(server.requests) - before

            checked = '"Solve it.", "Check it."'
            assert await paid(plan("0, 0", checked, '[], ["all"]'), "a") == 2
            assert await paid(plan("1, 0", checked, '[], ["all"]'), "b") == 1  # Ada's check is the same call.
            twice = plan("0, 0, 1", '"Solve it.", "Solve it.", "Compare."', '[], [], ["all"]')
            assert await paid(twice, "c") == 2  # Ada's second solution, and the comparison.
            assert await asyncio.gather(paid(twice, "d"), paid(twice, "e")) == [0, 0]
            await pool.close()
