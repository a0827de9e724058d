"""A model proposes workflows from an archive of scored ones; each is tried, and the best for each cost are kept."""

import asyncio
from typing import Any

import pytest

from podium.errors import ConfigError, UsageError, WorkerError
from podium.planners.controls import CHECK
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.trace import Reply
from podium.types import ANSWER_WHOLE_QUESTION, Price, Profile, Question
from podium.workers.base import Request
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow, render
from podium_research.search.settings import WorkflowSearch
from podium_research.search.workflows import (
    ConstantPlan,
    ConstantPlanFront,
    TriedWorkflow,
    choose,
    search_workflows,
    undominated,
)

TASKS = [
    Task(id=f"t/{k}", question=Question(text=f"Which? {k}"), gold="yes", grader=Exact()) for k in range(4)
]
TRICK = "Think of the trick first."
RIGHT = Workflow((Step(0, TRICK),))
DEARER = Workflow((Step(0, ANSWER_WHOLE_QUESTION), Step(0, TRICK, Access(all=True))))


def pool(*proposals: str, says: str = "yes") -> Pool:
    """A worker that is right only after the trick, and a model that proposes."""
    cheap = ScriptedWorker(
        "cheap",
        {TRICK: f"Answer: {says}", ANSWER_WHOLE_QUESTION: "Answer: no", CHECK: "Answer: no"},
        profile=Profile(name="cheap", price=Price(output=1.0)),
    )
    # It answers the questions of the workflows that the archive begins with, too: 4 alone, 2 x 4 in checks.
    return Pool([cheap, ScriptedWorker("writer", ["Answer: no"] * 12 + list(proposals))])


async def tried_by(
    team: Pool,
    writer: str,
    tasks: list[Task] = TASKS,
    *,
    kept: list[TriedWorkflow] | None = None,
    **settings: Any,
) -> ConstantPlanFront:
    """Search and choose; `kept` gets the entries, also of a search that fails."""
    chosen = WorkflowSearch(pool="given", tasks="given", writer=writer, **settings)
    archive = [] if kept is None else kept
    async for entry in search_workflows(team, tasks, chosen):
        archive.append(entry)
    return await choose(team, tasks, chosen, archive)


def plan(accuracy: float, cost: float, text: str = "") -> ConstantPlan:
    return ConstantPlan(plan=text or f"{accuracy} {cost}", accuracy=accuracy, cost_usd=cost)


def test_frontier_keeps_only_undominated_plans():
    plans = [plan(0.5, 1), plan(0.4, 2), plan(0.6, 2), plan(0.6, 3), plan(0.5, 1, "twin"), plan(0.9, 9)]
    assert undominated(plans) == (plan(0.5, 1), plan(0.6, 2), plan(0.9, 9))


async def test_the_models_proposal_is_tried_and_the_archive_tells_it_the_result():
    team = pool(f"Another trick.\n{render(DEARER)}", f"Cheaper:\n{render(RIGHT)}")
    found = await tried_by(team, "writer", proposals=2)
    assert [(plan.plan, plan.accuracy) for plan in found.plans if plan.accuracy == 1] == [
        (render(RIGHT), 1.0)
    ]
    first, second = (request.messages[-1].content for request in team.named("writer").requests[12:])
    assert render(DEARER) not in first
    assert f"100.0% right, ${found.plans[0].cost_usd:.6f}" not in first
    assert "100.0% right" in second
    assert render(DEARER) in second.partition("100.0% right")[2]
    assert "Which? 0" in first


async def test_an_unreadable_or_known_proposal_is_written_again_three_times():
    known = render(Workflow((Step(0, ANSWER_WHOLE_QUESTION),)))
    team = pool("no lists", known, render(RIGHT), "no", "no", "no")
    found = await tried_by(team, "writer", proposals=2)
    assert found.plans[-1].plan == render(RIGHT)
    requests = team.named("writer").requests[12:]
    assert [len(request.messages) for request in requests] == [1, 3, 5, 1, 3, 5]
    assert "It is in the archive already." in requests[2].messages[-1].content


async def test_failed_questions_do_not_count_against_a_workflow():
    down = WorkerError("Down.", kind="protocol")
    partly = ScriptedWorker(
        "ada", {"Which? 1": down, "Which? 2": down, "Which? 3": "Answer: no", "": "Answer: yes"}
    )
    kept: list[TriedWorkflow] = []
    with pytest.raises(UsageError, match="did not answer"):
        await tried_by(Pool([partly]), "ada", kept=kept, proposals=1, max_steps=1)
    assert [entry.tried.accuracy for entry in kept] == [0.5]


class Busy(ScriptedWorker):
    """Counts the calls that it has at once."""

    now = most = 0

    async def answer(self, request: Request) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return await super().answer(request)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_as_many_questions_are_asked_at_once_as_the_setting_says(concurrency: int) -> None:
    busy = Busy("ada", {"": "Answer: no"})
    await tried_by(Pool([busy]), "ada", proposals=1, max_steps=1, concurrency=concurrency)
    assert busy.most == concurrency


async def test_an_outage_stops_the_search_and_nothing_of_it_is_kept():
    kept: list[TriedWorkflow] = []
    broken = ScriptedWorker("ada", {"": WorkerError("Down.", kind="protocol")})
    with pytest.raises(UsageError, match="failed on all 4 questions of a workflow of ada"):
        await tried_by(Pool([broken]), "ada", kept=kept)
    assert kept == []


async def test_a_limit_on_cost_is_kept_and_wrong_input_gets_a_sentence():
    assert (await tried_by(pool(render(RIGHT)), "writer", proposals=1, max_cost=0.0)).plans != ()
    with pytest.raises(UsageError, match="no tasks to search"):
        await tried_by(pool(), "writer", [])
    with pytest.raises(ConfigError, match="no worker named 'writter'"):
        await tried_by(pool(), "writter")
    with pytest.raises(UsageError, match="did not answer"):
        await tried_by(pool(), "writer", proposals=1)
