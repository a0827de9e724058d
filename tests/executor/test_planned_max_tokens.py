"""A plan may limit the tokens of each step: the worker is told, the trace shows it, the caller's lower limit wins."""

from podium.planner import Planner
from podium.team import Runner
from podium.trace import Plan
from podium.types import AnswerOptions, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow, render

CHAIN = Workflow(
    (Step(0, "Think."), Step(0, "Check.", Access(all=True)), Step(0, "Write.", Access(all=True)))
)


class Limiting(Planner):
    name = "limiting"

    async def plan(self, request):
        return Plan(render(CHAIN), CHAIN, max_tokens=(500, None, 900))


async def test_steps_use_max_tokens_of_the_plan_or_a_lower_limit_of_the_caller():
    for caller, last in ((None, 900), (700, 700), (2000, 900)):
        worker = ScriptedWorker("ada", ["one", "two", "three"])
        question = Question(text="How many?", options=AnswerOptions(max_tokens=caller, temperature=0.5))
        trace = await Runner(Limiting(), Pool([worker])).answer(question)
        assert [request.options.max_tokens for request in worker.requests] == [500, None, last]
        assert [request.options.temperature for request in worker.requests] == [None, None, 0.5]
        assert [span.max_tokens for span in trace.spans] == [500, None, 900]
