"""A planner may end with the response of any earlier step."""

import asyncio

from podium.planner import Planner
from podium.team import Runner
from podium.trace import Plan
from podium.types import Budget, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Acceptance, Access, Step, Workflow, render


class BestOfRounds(Planner):
    """Two rounds; then it accepts the last step of the first one."""

    name = "best-of-rounds"
    rounds = 3

    def __init__(self):
        self.seen = []

    async def plan(self, request):
        self.seen = [earlier_round.responses for earlier_round in request.earlier_rounds]
        if len(request.earlier_rounds) < 2:
            workflow = Workflow((Step(1, "Answer."), Step(0, "Check.", Access(all=True))))
            return Plan(render(workflow), workflow)
        return Plan(render(Acceptance()), Acceptance(), accepted_step=(0, 1))


def test_the_answer_is_the_response_of_the_accepted_step():
    pool = Pool([ScriptedWorker("ada", ["one", "two"]), ScriptedWorker("bo", ["four", "five"])])
    planner = BestOfRounds()
    trace = asyncio.run(Runner(planner, pool, budget=Budget(rounds=3)).answer(Question(text="How many?")))
    assert planner.seen == [("four", "one"), ("five", "two")]
    assert (trace.status, trace.answer) == ("ok", "one")
    assert trace.rounds[-1].accepted
    assert trace.rounds[-1].plan.accepted_step == (0, 1)
    assert trace.rounds[-1].response == "one"
