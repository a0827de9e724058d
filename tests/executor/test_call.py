import asyncio
from itertools import pairwise

from podium.errors import WorkerError
from podium.executor import ExecutionSettings
from podium.executor.call import Answered, Unanswered, call
from podium.types import Budget, Limits, Message, Price, Profile
from podium.workers.base import Request
from podium.workers.scripted import ScriptedWorker

REQUEST = Request((Message(role="user", content="2 + 2?"),), seed="0")
BUSY = WorkerError("Status 503.", kind="status", passing=True)
WRONG_KEY = WorkerError("Status 401.", kind="status")


async def test_what_may_pass_is_tried_again(inquire):
    worker = ScriptedWorker("a", [BUSY, BUSY, "4"], limits=Limits(retries=2))
    attempts = []
    answered = await call(inquire([worker]), worker, REQUEST, attempts)
    assert isinstance(answered, Answered)
    assert (answered.worker, answered.reply.text) == ("a", "4")
    assert [attempt.error_kind for attempt in attempts] == ["status", "status", None]
    assert all(a.ended_s <= b.started_s for a, b in pairwise(attempts))


async def test_retries_are_no_further_calls_and_are_limited(inquire):
    worker = ScriptedWorker("a", [BUSY] * 9, limits=Limits(retries=2))
    inquiry, attempts = inquire([worker], budget=Budget(calls=1)), []
    assert await call(inquiry, worker, REQUEST, attempts) == Unanswered("a: Status 503.", refused=False)
    assert (len(attempts), len(worker.requests), inquiry.ledger.calls) == (3, 3, 1)
    again = await call(inquiry, worker, REQUEST, [])
    assert again == Unanswered("The budget of 1 calls is used up.", refused=True)
    assert len(worker.requests) == 3


async def test_what_cannot_pass_is_not_tried_again(inquire):
    worker = ScriptedWorker("a", [WRONG_KEY, "4"])
    attempts = []
    unanswered = await call(inquire([worker]), worker, REQUEST, attempts)
    assert unanswered == Unanswered("a: Status 401.", refused=False)
    assert [(a.error_kind, a.error) for a in attempts] == [("status", "Status 401.")]


async def test_retry_after_is_obeyed(inquire):
    told = WorkerError("Status 429.", kind="status", passing=True, retry_after_s=0.1)
    worker = ScriptedWorker("a", [told, "4"])
    attempts = []
    assert isinstance(await call(inquire([worker]), worker, REQUEST, attempts), Answered)
    assert attempts[1].started_s - attempts[0].ended_s >= 0.1


async def test_a_worker_that_asks_for_too_long_a_wait_has_failed_for_good(inquire):
    told = WorkerError("Status 429.", kind="status", passing=True, retry_after_s=3_600)
    worker = ScriptedWorker("a", [told, "4"])
    assert isinstance(await call(inquire([worker]), worker, REQUEST, []), Unanswered)
    assert len(worker.requests) == 1


async def test_a_call_past_its_time_limit_is_a_timeout_that_may_pass(inquire):
    worker = ScriptedWorker("a", {"": "4"}, delay=5.0, limits=Limits(timeout=0.02, retries=1))
    attempts = []
    unanswered = await call(inquire([worker]), worker, REQUEST, attempts)
    assert unanswered == Unanswered("a: No answer within 0.02 s.", refused=False)
    assert [attempt.error_kind for attempt in attempts] == ["timeout", "timeout"]


async def test_a_chain_of_fallbacks_is_followed_to_its_end(inquire):
    a = ScriptedWorker("a", [WRONG_KEY] * 9, fallback="b")
    b = ScriptedWorker("b", [WRONG_KEY] * 9, fallback="c")
    c = ScriptedWorker("c", [WRONG_KEY] * 9)
    unanswered = await call(inquire([a, b, c]), a, REQUEST, [])
    assert unanswered == Unanswered("a: Status 401. b: Status 401. c: Status 401.", refused=False)
    assert [len(worker.requests) for worker in (a, b, c)] == [1, 1, 1]


async def test_a_fallback_answers_at_its_own_price_and_within_the_one_call(inquire):
    dear = Profile(name="b", price=Price(input=10.0, output=20.0))
    a = ScriptedWorker("a", [WRONG_KEY], fallback="b")
    b = ScriptedWorker("b", ["four"], profile=dear)
    inquiry, attempts = inquire([a, b], budget=Budget(calls=1)), []
    answered = await call(inquiry, a, REQUEST, attempts)
    assert isinstance(answered, Answered)
    assert answered.worker == "b"
    assert answered.cost_usd == dear.price.cost(answered.reply.usage) > 0
    assert inquiry.ledger.usd == answered.cost_usd
    assert [attempt.worker for attempt in attempts] == ["a", "b"]


async def test_a_fallback_that_could_break_the_budget_is_not_called(inquire):
    a = ScriptedWorker("a", [WRONG_KEY], fallback="b")
    b = ScriptedWorker("b", ["four"], profile=Profile(name="b", price=Price(output=1e6)))
    unanswered = await call(inquire([a, b], budget=Budget(usd=1.0)), a, REQUEST, [])
    assert isinstance(unanswered, Unanswered)
    assert not unanswered.refused
    assert unanswered.error.startswith("a: Status 401. The call could cost $4096.000000, ")
    assert b.requests == []


async def test_no_more_calls_at_once_than_the_worker_takes(inquire):
    worker = ScriptedWorker("a", {"": "4"}, delay=0.01, limits=Limits(concurrency=2))
    inquiry, attempts = inquire([worker]), []
    async with asyncio.TaskGroup() as group:
        for _ in range(7):
            group.create_task(call(inquiry, worker, REQUEST, attempts))
    assert len(attempts) == 7
    for attempt in attempts:
        during = [a for a in attempts if a.started_s <= attempt.started_s < a.ended_s]
        assert len(during) <= 2


async def test_a_slot_is_free_while_a_call_waits_for_its_retry(inquire):
    worker = ScriptedWorker("a", [BUSY, "b", "a"], limits=Limits(concurrency=1))
    inquiry = inquire([worker], settings=ExecutionSettings(first_wait_s=0.05))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(call(inquiry, worker, REQUEST, []))
        second = group.create_task(call(inquiry, worker, REQUEST, []))
    assert [task.result().reply.text for task in (first, second)] == ["a", "b"]


async def test_a_cancelled_call_gives_its_hold_back_and_leaves_its_attempt(inquire):
    worker = ScriptedWorker("a", {"": "4"}, delay=5.0, limits=Limits(max_tokens=100))
    inquiry, attempts = inquire([worker], budget=Budget(tokens=150)), []
    task = asyncio.create_task(call(inquiry, worker, REQUEST, attempts))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [attempt.error_kind for attempt in attempts] == ["cancelled"]
    quick = ScriptedWorker("b", ["4"], limits=Limits(max_tokens=100))
    assert isinstance(await call(inquiry, quick, REQUEST, []), Answered)


async def test_a_worker_without_retries_is_tried_once(inquire):
    worker = ScriptedWorker("a", [BUSY, "4"], limits=Limits(retries=0))
    unanswered = await call(inquire([worker]), worker, REQUEST, [])
    assert unanswered == Unanswered("a: Status 503.", refused=False)
    assert len(worker.requests) == 1
