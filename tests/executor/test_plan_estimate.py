from __future__ import annotations

import pytest

from chat_worker import ChatClient, chat_worker
from podium.executor import Execution
from podium.executor.plan_estimate import Range, estimate_plan
from podium.types import AnswerOptions, Budget, Limits, Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow

QUESTION = Question(text="What is 6 x 7?")


def worker(name: str, *, latency_s: float | None = 2.0) -> ScriptedWorker:
    profile = Profile(name=name, price=Price(input=1.0, output=2.0), latency_s=latency_s)
    return ScriptedWorker(name, [], profile=profile, limits=Limits(max_tokens=1000))


def test_plan_estimate_adds_step_costs_including_responses_read() -> None:
    pool = Pool([worker("ada"), worker("bram")])
    alone = estimate_plan(Workflow((Step(0, "Answer."),)), pool, QUESTION, response_tokens=200)
    both = Workflow((Step(0, "Answer."), Step(1, "Check.", Access(all=True))))
    expected = estimate_plan(both, pool, QUESTION, response_tokens=200)
    first, second = expected.steps
    assert first == alone.steps[0]
    assert second.input_tokens.likely - first.input_tokens.likely > 200
    assert expected.cost_usd.likely == pytest.approx(first.cost_usd.likely + second.cost_usd.likely)
    assert first.output_tokens.likely == 200
    assert first.cost_usd.likely == pytest.approx((first.input_tokens.likely + 2 * 200) / 1e6)


def test_dollars_of_a_worker_without_a_price_are_unknown_and_not_zero() -> None:
    unpriced = chat_worker(Profile(name="bram"), ChatClient("http://127.0.0.1:1/v1"))
    pool = Pool([worker("ada"), unpriced])
    expected = estimate_plan(Workflow((Step(0, "One."), Step(1, "Two.", Access(all=True)))), pool, QUESTION)
    assert [step.unpriced for step in expected.steps] == [False, True]
    assert expected.unpriced
    assert not estimate_plan(Workflow((Step(0, "One."),)), pool, QUESTION).unpriced


@pytest.mark.parametrize("max_usd", [None, 0.5])
async def test_maximum_estimate_equals_the_budget_reservation(make_context, max_usd: float | None) -> None:
    price = Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75)
    limits = Limits(max_tokens=100, max_usd=max_usd)
    pool = Pool([ScriptedWorker("ada", ["42"], profile=Profile(name="ada", price=price), limits=limits)])
    options = AnswerOptions(
        tools=({"type": "function", "function": {"name": "f", "description": "x" * 400}},), max_tokens=60
    )
    question, plan = Question(text="What is 6 x 7?", options=options), Workflow((Step(0, "Answer."),))
    most = estimate_plan(plan, pool, question, response_tokens=10).most_usd
    for usd, status in ((most * 0.999, "refused"), (most * 1.001, "done")):
        context = make_context(pool, question=question, fence_mark="0" * 16, budget=Budget(usd=usd))
        execution = Execution(context, plan)
        await execution.run()
        assert execution.spans[0].status == status


def test_steps_nothing_needs_are_not_counted_and_siblings_take_no_longer() -> None:
    pool = Pool([worker("ada"), worker("bram")])
    plan = Workflow(
        (Step(0, "One."), Step(1, "Two."), Step(0, "Idle."), Step(1, "Both.", Access(steps=(0, 1))))
    )
    expected = estimate_plan(plan, pool, QUESTION, response_tokens=10)
    assert [step.position for step in expected.steps] == [0, 1, 3]
    assert expected.seconds == Range(4.0, 4.0, 4.0)


def test_plan_estimate_has_no_seconds_without_worker_latency() -> None:
    plan = Workflow((Step(0, "One."),))
    pool = Pool([worker("ada", latency_s=None)])
    assert estimate_plan(plan, pool, QUESTION, response_tokens=10).seconds is None
