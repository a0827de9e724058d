"""A completion is scored as a live plan would be, and infrastructure is never the policy's fault."""

import pytest

from podium.config import build
from podium.errors import WorkerError
from podium.executor import ExecutionSettings
from podium.planners import Single
from podium.planners.planner import Planner, PrewrittenPlans
from podium.rollout import Reward, RewardSettings, Rollout, reward, run_rollout
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget, Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import NOTHING, VoteWorker

TASK = Task(id="t/0", question=Question(text="What is 6 times 7?"), gold="42", grader=Exact())


def completion(*workers: int, access: str = '["all"]') -> str:
    lists = [[], *[["all"]] * (len(workers) - 1)] if access == '["all"]' else [[]] * len(workers)
    return f"model_id = {list(workers)}\nsubtasks = {['Do it.'] * len(workers)}\naccess_list = {lists}"


def pool(*replies: str | WorkerError) -> Pool:
    price = Price(input=0.0, output=1e6)
    return Pool(
        [
            ScriptedWorker(f"w{k}", {"": reply}, profile=Profile(name=f"w{k}", price=price))
            for k, reply in enumerate(replies)
        ]
    )


async def scored(
    plan: PrewrittenPlans,
    pool: Pool,
    *,
    task: Task = TASK,
    seed: str = "0",
    **limits,
) -> Rollout | None:
    """The rollout of a plan, or None if it is left out."""
    rollout = await run_rollout(Runner(plan, pool, **limits), task, seed=seed)
    return None if rollout.infrastructure_failed else rollout


def earned(rollout: Rollout, weights: RewardSettings | None = None) -> Reward:
    found = reward(rollout, weights or RewardSettings())
    assert found is not None
    return found


BROKEN = WorkerError("It is down.", kind="status")


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (completion(0), 1.0),
        (completion(1), 0.5),
        (completion(1, 0), 1.0),
        ("I would ask worker 0.", 0.0),
        (completion(7), 0.0),
        ("", 0.0),
    ],
)
async def test_right_wrong_and_unreadable_completions(text, total):
    rollout = await scored(PrewrittenPlans((text,)), pool("Answer: 42", "Answer: 41"))
    assert rollout is not None
    assert earned(rollout).total == total
    assert rollout.plan_text == text
    assert rollout.task == "t/0"
    assert rollout.valid == (total > 0)


async def test_a_draft_in_a_thought_that_was_cut_off_earns_nothing():
    draft = "<think>Perhaps so:\n" + completion(0)
    for truncated, total in ((True, 0.0), (False, 1.0)):
        rollout = await scored(PrewrittenPlans((draft,), truncated=truncated), pool("42"), seed="s")
        assert rollout is not None
        assert earned(rollout).total == total


async def test_a_failed_worker_leaves_the_rollout_out():
    workers = pool("Answer: 42", BROKEN)
    assert await scored(PrewrittenPlans((completion(1),)), workers, seed="0") is None
    assert await scored(PrewrittenPlans((completion(1, 0),)), workers, seed="0") is None, (
        "degraded is not fair either"
    )


async def test_vote_drops_the_rollout_only_if_the_vote_reads_failed_workers():
    workers = Pool([*pool(BROKEN, "Answer: 42"), VoteWorker("vote")])
    assert await scored(PrewrittenPlans((completion(0, 2),)), workers, seed="0") is None
    blind = await scored(PrewrittenPlans((completion(1, 2, access="none"),)), workers, seed="0")
    assert blind is not None
    assert (blind.trace.status, blind.trace.answer) == ("degraded", NOTHING)
    assert (blind.correct, earned(blind).total) == (False, 0.5)


async def test_a_vote_on_steps_that_the_budget_refused_is_the_plans_own_fault():
    workers = Pool([*pool("Answer: 42"), VoteWorker("vote")])
    rollout = await scored(PrewrittenPlans((completion(0, 1),)), workers, budget=Budget(usd=0.0))
    assert rollout is not None
    assert (rollout.trace.status, rollout.trace.answer, earned(rollout).total) == ("failed", None, 0.5)
    assert [span.status for span in rollout.trace.spans] == ["refused", "refused"]


async def test_a_failed_grader_leaves_the_rollout_out():
    worker = {
        "name": "judy",
        "kind": "scripted",
        "replies": {"": {"error": "status", "message": "It is down."}},
    }
    judge = build({"kind": "judge", "worker": worker}, Judge)
    task = Task(id="t/1", question=TASK.question, gold="42", grader=judge)
    assert await scored(PrewrittenPlans((completion(0),)), pool("Answer: 42"), task=task) is None
    rollout = await run_rollout(Runner(Single("w0"), pool("Answer: 42")), task, seed="0")
    assert "It is down" in (rollout.grade.failure or "")
    assert rollout.infrastructure_failed
    assert not rollout.worker_failed


async def test_failed_unneeded_step_does_not_drop_the_rollout():
    rollout = await scored(
        PrewrittenPlans((completion(1, 0, access="none"),)),
        pool("Answer: 42", BROKEN),
        settings=ExecutionSettings(run_all=True),
    )
    assert rollout is not None
    assert rollout.correct
    assert [span.status for span in rollout.trace.spans] == ["failed", "done"]
    assert rollout.steps == 1


async def test_a_plan_beyond_its_budget_is_the_plans_own_fault():
    rollout = await scored(
        PrewrittenPlans((completion(1, 0),)), pool("Answer: 42", "Answer: 41"), budget=Budget(calls=1)
    )
    assert rollout is not None
    assert not rollout.infrastructure_failed
    assert (rollout.correct, earned(rollout).total) == (False, 0.5)


async def test_spending_is_subtracted_from_the_reward():
    weights = RewardSettings(cost=0.01, calls=0.1)
    one = await scored(PrewrittenPlans((completion(0),)), pool("Answer: 42"))
    two = await scored(PrewrittenPlans((completion(0, 0),)), pool("Answer: 42"))
    assert one is not None
    assert two is not None
    cheap, dear = earned(one, weights), earned(two, weights)
    assert cheap.cost == pytest.approx(0.01 * one.trace.cost_usd)
    assert cheap.cost > 0
    assert cheap.total > dear.total > 0.5
    assert (cheap.calls, dear.calls) == (0.1, 0.2)


async def test_a_written_plan_and_a_live_one_give_the_same_rollout():
    live = await run_rollout(Runner(Single("w0"), pool("Answer: 42")), TASK, seed="s")
    text = live.plan_text
    written = await run_rollout(Runner(PrewrittenPlans((text,)), pool("Answer: 42")), TASK, seed="s")

    def told(rollout: Rollout) -> object:
        return [(span.messages, span.response, span.usage) for span in rollout.trace.spans], rollout.grade

    assert told(live) == told(written)


async def test_a_question_without_an_answer_is_wrong_and_not_an_error():
    rollout = await run_rollout(Runner(Single("w0"), pool(BROKEN)), TASK, seed="0")
    assert rollout.trace.answer is None
    assert rollout.grade.score == 0
    assert rollout.infrastructure_failed


async def test_a_planner_whose_own_model_fails_is_infrastructure():
    class Down(Planner):
        name = "down"

        async def plan(self, request):
            raise WorkerError("The policy's server is down.", kind="connection")

    rollout = await run_rollout(Runner(Down(), pool("Answer: 42")), TASK, seed="0")
    assert rollout.infrastructure_failed
    assert not rollout.valid
