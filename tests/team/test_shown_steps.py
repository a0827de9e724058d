"""In a later round a planner chooses which earlier responses its steps are shown."""

import asyncio

import pytest

from podium.errors import WorkerError
from podium.executor import ExecutionSettings
from podium.planner import Planner
from podium.team import Runner
from podium.trace import Plan
from podium.types import Budget, Limits, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.view import EarlierStep, read_view
from podium.workers.vote import VoteWorker
from podium.workflow import Access, Step, Workflow, render

FIRST = Workflow(
    (Step(0, "Say one."), Step(0, "Say two."), Step(0, "Fail."), Step(0, "End.", Access(all=True)))
)
SECOND = Workflow(
    (Step(0, "Blind."), Step(0, "Look.", Access((0,), previous=True)), Step(1, "Vote.", Access(all=True)))
)


class Rounds(Planner):
    name = "rounds"

    async def plan(self, request):
        workflow = SECOND if request.earlier_rounds else FIRST
        return Plan(
            render(workflow),
            workflow,
            visible_responses=((0, 1), (0, 2), (0, 0)) if request.earlier_rounds else (),
        )


@pytest.mark.parametrize("layout", ["packed", "chat"])
def test_a_step_sees_the_chosen_responses_without_those_that_failed(layout):
    replies = {
        "one": "1",
        "two": "2",
        "Fail": WorkerError("No.", kind="bad"),
        "End": "3",
        "Blind": "4",
        "Look": "1",
    }
    ada = ScriptedWorker("ada", replies, limits=Limits(retries=0))
    runner = Runner(
        Rounds(),
        Pool([ada, VoteWorker()]),
        budget=Budget(rounds=2),
        settings=ExecutionSettings(layout=layout),
    )
    trace = asyncio.run(runner.answer(Question(text="How many?")))
    blind, look = ada.requests[-2:]
    two, one = EarlierStep(1, "Say two.", "2", 0), EarlierStep(0, "Say one.", "1", 0)
    assert blind.view.earlier == ()
    assert look.view.earlier == (two, one, EarlierStep(0, "Blind.", "4"))
    assert look.view.previous is None
    assert [step.response for step in read_view(look.messages).earlier] == ["2", "1", "4"]
    if layout == "packed":
        assert read_view(look.messages).earlier == look.view.earlier
    assert trace.rounds[1].plan.visible_responses == ((0, 1), (0, 2), (0, 0))
    assert trace.rounds[1].spans[-1].reply.votes.agreeing == 2  # 2, 1, 4, 1.
    assert trace.answer.endswith("Answer: 1")
