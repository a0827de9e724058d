"""What a plan may say beside its steps: which responses they are shown, their tokens, and the step that answered."""

import pytest

from podium.errors import WorkerError
from podium.executor import ExecutionSettings
from podium.planners.planner import PrewrittenPlans
from podium.team import Runner
from podium.trace import Plan
from podium.types import AnswerOptions, Budget, Limits, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.view import EarlierStep, read_view
from podium.workers.vote import VoteWorker
from podium.workflow import Acceptance, Access, Step, Workflow, render

FIRST = Workflow(
    (Step(0, "Say one."), Step(0, "Say two."), Step(0, "Fail."), Step(0, "End.", Access(all=True)))
)
SECOND = Workflow(
    (Step(0, "Blind."), Step(0, "Look.", Access((0,), previous=True)), Step(1, "Vote.", Access(all=True)))
)
CHAIN = Workflow(
    (Step(0, "Think."), Step(0, "Check.", Access(all=True)), Step(0, "Write.", Access(all=True)))
)
CHECKED = Workflow((Step(1, "Answer."), Step(0, "Check.", Access(all=True))))


@pytest.mark.parametrize("layout", ["packed", "chat"])
async def test_a_step_sees_the_chosen_responses_without_those_that_failed(layout):
    replies = {
        "one": "1",
        "two": "2",
        "Fail": WorkerError("No.", kind="bad"),
        "End": "3",
        "Blind": "4",
        "Look": "1",
    }
    ada = ScriptedWorker("ada", replies, limits=Limits(retries=0))
    chosen = ((0, 1), (0, 2), (0, 0))
    planner = PrewrittenPlans(
        (Plan(render(FIRST), FIRST), Plan(render(SECOND), SECOND, visible_responses=chosen))
    )
    settings = ExecutionSettings(layout=layout)
    runner = Runner(planner, Pool([ada, VoteWorker()]), budget=Budget(rounds=2), settings=settings)
    trace = await runner.answer(Question(text="How many?"))
    blind, look = ada.requests[-2:]
    two, one = EarlierStep(1, "Say two.", "2", 0), EarlierStep(0, "Say one.", "1", 0)
    assert blind.view.earlier == ()
    assert look.view.earlier == (two, one, EarlierStep(0, "Blind.", "4"))
    assert look.view.previous is None
    assert [step.response for step in read_view(look.messages).earlier] == ["2", "1", "4"]
    if layout == "packed":
        assert read_view(look.messages).earlier == look.view.earlier
    assert trace.rounds[1].plan.visible_responses == chosen
    assert trace.rounds[1].spans[-1].reply.votes.agreeing == 2  # 2, 1, 4, 1.
    assert trace.answer.endswith("Answer: 1")


async def test_the_answer_is_the_response_of_the_accepted_step():
    pool = Pool([ScriptedWorker("ada", ["one", "two"]), ScriptedWorker("bo", ["four", "five"])])
    checked = Plan(render(CHECKED), CHECKED)
    planner = PrewrittenPlans(
        (checked, checked, Plan(render(Acceptance()), Acceptance(), accepted_step=(0, 1)))
    )
    trace = await Runner(planner, pool, budget=Budget(rounds=3)).answer(Question(text="How many?"))
    said = [tuple(span.response for span in round_.spans) for round_ in trace.rounds]
    assert said == [("four", "one"), ("five", "two"), ()]
    assert (trace.status, trace.answer) == ("ok", "one")
    assert trace.rounds[-1].accepted
    assert trace.rounds[-1].plan.accepted_step == (0, 1)
    assert trace.rounds[-1].response == "one"


@pytest.mark.parametrize(("caller", "last"), [(None, 900), (700, 700), (2000, 900)])
async def test_steps_use_max_tokens_of_the_plan_or_a_lower_limit_of_the_caller(caller, last):
    worker = ScriptedWorker("ada", ["one", "two", "three"])
    question = Question(text="How many?", options=AnswerOptions(max_tokens=caller, temperature=0.5))
    planner = PrewrittenPlans((Plan(render(CHAIN), CHAIN, max_tokens=(500, None, 900)),))
    trace = await Runner(planner, Pool([worker])).answer(question)
    assert [request.options.max_tokens for request in worker.requests] == [500, None, last]
    assert [request.options.temperature for request in worker.requests] == [None, None, 0.5]
    assert [span.max_tokens for span in trace.spans] == [500, None, 900]
