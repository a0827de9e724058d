"""A budget over many questions at once holds to the last dollar, and what was reserved and not needed is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from podium.calls import CallState
from podium.config import build
from podium.errors import BudgetExceededError
from podium.evals import evaluate
from podium.executor import ExecutionSettings
from podium.planners import Committee, SelfConsistency, Single
from podium.planners.planner import Planner
from podium.rollout import run_rollout
from podium.scoring import RolloutRequest, ScoringSession, ScoringSettings
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Reply
from podium.types import Budget, Limits, Price, Profile, Question, Usage
from podium.workers import Pool
from podium.workers.base import Request, Worker
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VoteWorker
from scripted_team import Sums


class Meter(Worker):
    """A worker that takes a moment, and knows what it was paid and what is being paid at any moment."""

    def __init__(self, spend_limit: SharedSpendLimit) -> None:
        self.profile = Profile(name="meter", price=Price(output=1e4))
        self.limits = Limits(max_tokens=100, retries=0, concurrency=64)
        self.paid = 0.0
        self.calls = 0
        self.peak = 0
        self.seen: list[float] = []
        self._spend_limit = spend_limit
        self._in_flight = 0
        self._random = Random("meter")

    async def answer(self, request: Request) -> Reply:
        self.calls += 1
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        self.seen.append(self._spend_limit.spent_usd + self._spend_limit.reserved_usd)
        await asyncio.sleep(self._random.uniform(0, 0.004))
        self._in_flight -= 1
        tokens = self._random.randrange(1, 101)
        self.paid += tokens / 100
        return Reply("Answer: 4", Usage(input_tokens=9, output_tokens=tokens))


@pytest.fixture
def spend_limit(tmp_path: Path) -> Iterator[SharedSpendLimit]:
    opened = SharedSpendLimit(tmp_path / "spending.sqlite", "run", 40.0)
    yield opened
    opened.close()


@pytest.fixture
def meter(spend_limit: SharedSpendLimit) -> Meter:
    return Meter(spend_limit)


@pytest.mark.parametrize("planner", [Single("meter"), SelfConsistency("meter", 3)])
async def test_with_64_questions_in_flight_spending_never_passes_the_limit(
    spend_limit: SharedSpendLimit, meter: Meter, planner: Planner
) -> None:
    call_state = CallState(spend_limits=[spend_limit])
    runner = Runner(planner, Pool([meter, VoteWorker("vote")]), budget=Budget(usd=3.0), call_state=call_state)
    questions = iter(range(256))

    async def work() -> None:
        for number in questions:
            await runner.answer(Question(text=f"What is {number} + 4?"), seed=str(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(work())
    assert meter.peak > 30
    assert max(meter.seen) <= 40.0 + 1e-9, "what is spent and what may yet be spent"
    assert spend_limit.reserved_usd == 0.0
    assert spend_limit.spent_usd == pytest.approx(meter.paid)
    assert spend_limit.spent_usd <= 40.0
    assert spend_limit.refusal is not None
    assert 0 < meter.calls < 256


async def test_an_evaluation_stops_with_the_sentence_of_the_spend_limit(
    spend_limit: SharedSpendLimit, meter: Meter
) -> None:
    call_state = CallState(spend_limits=[spend_limit])
    with pytest.raises(BudgetExceededError, match=r"of the run's \$40 are left"):
        await evaluate(Runner(Single("meter"), Pool([meter]), call_state=call_state), Sums("test", 256))
    assert spend_limit.spent_usd == pytest.approx(meter.paid), "calls in flight were not cut off"
    assert spend_limit.reserved_usd == 0.0


async def test_an_evaluation_goes_on_when_only_questions_reach_their_own_budgets(
    spend_limit: SharedSpendLimit, meter: Meter
) -> None:
    call_state = CallState(spend_limits=[spend_limit])
    runner = Runner(Single("meter"), Pool([meter]), budget=Budget(usd=0.5), call_state=call_state)
    evaluation = await evaluate(runner, Sums("test", 4))
    assert [rollout.trace.spans[0].status for rollout in evaluation.rollouts] == ["refused"] * 4
    assert (meter.calls, spend_limit.refusal) == (0, None)


async def test_vote_decided_early_ignores_a_refused_voter(
    spend_limit: SharedSpendLimit, meter: Meter
) -> None:
    spend_limit.reserve(39.5)
    spend_limit.settle(39.5, 39.5)
    free = [ScriptedWorker(name, {"": "Answer: 4"}) for name in "abc"]
    pool, call_state = Pool([meter, *free, VoteWorker("vote")]), CallState(spend_limits=[spend_limit])
    task = Task("t", Question(text="2 + 2?"), "4", Exact())
    with pytest.raises(BudgetExceededError):
        await run_rollout(Runner(Single("meter"), pool, call_state=call_state), task, seed="0")
    stopping = ExecutionSettings(early_stop=True)
    committee = Runner(
        Committee(("a", "b", "c")), pool, settings=stopping, call_state=call_state, max_steps=4
    )
    rollout = await run_rollout(committee, task, seed="0")
    assert [span.status for span in rollout.trace.spans] == ["done", "done", "skipped", "done"]
    assert rollout.correct


async def test_a_trainings_batch_is_given_up_once_calls_in_flight_are_answered(
    spend_limit: SharedSpendLimit, meter: Meter
) -> None:
    plan = 'model_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]'
    tasks = {task.id: task for task in Sums("test", 256)}
    session = ScoringSession(ScoringSettings(), tasks, Pool([meter]), CallState(spend_limits=[spend_limit]))

    async def score() -> None:
        async with asyncio.TaskGroup() as group:
            for name in tasks:
                group.create_task(session.score(RolloutRequest(task=name, group=name, plans=(plan,))))

    with pytest.raises(BaseExceptionGroup) as stopped:
        await score()
    assert stopped.group_contains(BudgetExceededError)
    assert spend_limit.spent_usd == pytest.approx(meter.paid)
    assert spend_limit.reserved_usd == 0.0


@pytest.mark.parametrize(("verdict", "cost_usd"), [("RIGHT", None), ("Who knows.", 2 * 3.0)])
async def test_judging_is_paid_for_also_where_it_failed(
    spend_limit: SharedSpendLimit, meter: Meter, verdict: str, cost_usd: float | None
) -> None:
    worker = {"name": "judy", "kind": "scripted", "replies": {"": verdict}}
    worker |= {"price": {"output": 1e6}, "limits": {"max_tokens": 4}}
    task = Task("t", Question(text="Why?"), "Because.", build({"kind": "judge", "worker": worker}, Judge))
    runner = Runner(Single("meter"), Pool([meter]), call_state=CallState(spend_limits=[spend_limit]))
    rollout = await run_rollout(runner, task, seed="0")
    assert rollout.infrastructure_failed == (cost_usd is not None)
    assert rollout.grade.cost_usd > 0
    assert cost_usd is None or rollout.grade.cost_usd == pytest.approx(cost_usd)
    assert spend_limit.spent_usd == pytest.approx(meter.paid + rollout.grade.cost_usd)
