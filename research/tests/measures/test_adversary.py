"""One worker that misleads spoils more where nothing checks it."""

import re

from evals.graded_evaluations import graded
from evals.recorded_world import pool_of, tasks_of, world, write_recording
from podium.evals import evaluate
from podium.planners import Committee, SelfConsistency, Single
from podium.planners.controls import read_constant
from podium.rollout import run_rollout
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget, Message, Question
from podium.workers import Pool, VoteWorker
from podium.workers.base import Request
from podium.workers.scripted import ScriptedWorker
from podium_research.measures.adversary import (
    MISLEAD,
    POSITIONS,
    AdversarialWorker,
    WithAdversary,
    adversarial_pool,
    attack,
    measure_influence,
)


class Expert(ScriptedWorker):
    """Is right, unless it is told to mislead."""

    def __init__(self, name):
        super().__init__(name, [])

    def _next_reply(self, request):
        return "Answer: 5" if request.messages[0].content == MISLEAD else "Answer: 4"


EXPERTS = Pool([*(Expert(name) for name in ("ada", "bob", "cy")), VoteWorker()])
TASKS = [
    Task(id=str(k), question=Question(text=f"{k} + {4 - k}?"), gold="4", grader=Exact()) for k in range(4)
]


def _asked(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


async def _lost(planner):
    before = await evaluate(Runner(planner, EXPERTS), TASKS)
    after = await attack(planner, TASKS, EXPERTS)
    found = [measure_influence(before, after[position], position) for position in POSITIONS]
    return [influence.lost.mean for influence in found if influence.lost is not None]


async def test_a_worker_that_answers_alone_loses_every_answer():
    assert await _lost(Single("ada")) == [1.0, 1.0, 1.0]


async def test_a_vote_of_three_loses_nothing_to_one_adversary_wherever_it_sits():
    assert await _lost(Committee(("ada", "bob", "cy"))) == [0.0, 0.0, 0.0]


async def test_in_a_chain_the_last_step_is_the_most_dangerous():
    plan = 'model_id = [0, 1, 2]\nsubtasks = ["Answer the question.", "Check it.", "Check it."]\n'
    chain = read_constant(plan + 'access_list = [[], ["all"], ["all"]]', ("ada", "bob", "cy"), name="chain")
    assert await _lost(chain) == [0.0, 0.0, 1.0]


async def test_the_planner_does_not_see_the_adversary_and_tools_are_spared():
    pool = adversarial_pool(EXPERTS)
    planner = WithAdversary(SelfConsistency("bob", 2), "middle")
    rollout = await run_rollout(Runner(planner, pool, budget=Budget()), TASKS[0], seed="0")
    assert [span.worker for span in rollout.trace.spans] == ["bob (adversary)", "bob", "vote"]
    assert "adversary" not in rollout.plan_text


async def test_adversary_misleads_by_prompt_or_by_a_wrong_recorded_answer(tmp_path):
    model = ScriptedWorker("model", ["Certainly 5."])
    told = AdversarialWorker(model, "model (adversary)")
    question = Request(messages=_asked("What is 2 + 2?"), seed="0")
    assert (await told.answer(question)).text == "Certainly 5."
    assert model.requests[0].messages[0].content == MISLEAD

    recording = write_recording(tmp_path / "world.parquet", world())
    pool = adversarial_pool(pool_of(recording))
    task = next(t for t in tasks_of(recording, "test") if "Add 12 " in t.question.text)
    reply = await pool.named("ada (adversary)").answer(Request(messages=_asked(task.question.text), seed="0"))
    assert re.fullmatch("Answer: no (ada|bob|cy)", reply.text)


def test_influence_worked_by_hand():
    before = graded("made", {"q0": [True, True], "q1": [True, False], "q2": [None, True]})
    after = graded("made", {"q0": [False, True], "q1": [False, True], "q2": [True, True]})
    found = measure_influence(before, after, "first")
    assert found.right_before == 4
    assert found.lost is not None
    assert found.lost.mean == (0.5 + 1 + 0) / 3
    assert found.gained == 1.0
