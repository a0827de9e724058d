import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from podium.calls import AttemptLog, CallState
from podium.errors import WorkerError
from podium.executor import ExecutionSettings
from podium.executor.step_call import FailedCall, WorkerAnswer, call_with_fallbacks
from podium.spending import Reservation
from podium.trace import Reply
from podium.types import AnswerOptions, Budget, Limits, Message, Price, Profile, Spent, Usage
from podium.workers.base import Request, Worker
from podium.workers.response_cache import ResponseCache
from podium.workers.scripted import ScriptedWorker


class Uneven(Worker):
    """A worker that is quick but for the next `slow` calls."""

    def __init__(self, limits: Limits) -> None:
        self.profile = Profile(name="a")
        self.limits = limits
        self.slow = 0
        self.delay = 60.0
        self.broken = False
        self.gate: asyncio.Event | None = None

    async def answer(self, request: Request) -> Reply:
        if self.slow:
            self.slow -= 1
            if self.gate is None:
                await asyncio.sleep(self.delay)
            elif self.slow:  # Of two that are slow the first waits for the second.
                await self.gate.wait()
            else:
                self.gate.set()
            if self.broken:
                raise BUSY
        return Reply("4", Usage(input_tokens=2, output_tokens=1))


REQUEST = Request((Message(role="user", content="2 + 2?"),), seed="0")
BUSY = WorkerError("Status 503.", kind="status", retryable=True)
WRONG_KEY = WorkerError("Status 401.", kind="status")


async def test_retries_are_limited_and_do_not_count_as_calls(make_context):
    worker = ScriptedWorker("a", [BUSY] * 9, limits=Limits(retries=2))
    question_context, attempts = make_context([worker], budget=Budget(calls=1)), AttemptLog()
    assert await call_with_fallbacks(question_context, worker, REQUEST, attempts) == FailedCall(
        "failed", "a: Status 503."
    )
    assert (len(attempts), len(worker.requests), question_context.ledger.totals.calls) == (3, 3, 1)
    again = await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    assert again == FailedCall("refused", "The budget of 1 calls is used up.")
    assert len(worker.requests) == 3


async def test_cost_of_a_failed_call_is_booked(make_context):
    worker = ScriptedWorker("a", [WorkerError("No.", kind="status")], failures_spend=Spent(cost_usd=0.5))
    question_context, attempts = make_context([worker]), AttemptLog()
    await call_with_fallbacks(question_context, worker, REQUEST, attempts)
    assert [attempt.spent.cost_usd for attempt in attempts] == [0.5]
    assert question_context.ledger.spent.cost_usd == 0.5


@pytest.mark.parametrize("requested_s", [0.0, 0.001, 0.06])
async def test_waits_grow_and_are_at_least_what_the_worker_asks_for(make_context, requested_s):
    told = WorkerError("Status 429.", kind="status", retryable=True, retry_after_s=requested_s)
    worker = ScriptedWorker("a", [told, told, told, "4"], limits=Limits(retries=3))
    question_context = make_context([worker], settings=ExecutionSettings(first_wait_s=0.02))
    attempts = AttemptLog()
    assert isinstance(await call_with_fallbacks(question_context, worker, REQUEST, attempts), WorkerAnswer)
    for retry, (failed, again) in enumerate(pairwise(attempts)):
        assert again.started_s - failed.ended_s >= max(requested_s, 0.02 * 2**retry) - 1e-4


async def test_a_worker_that_requests_too_long_a_wait_has_failed_for_good(make_context):
    told = WorkerError("Status 429.", kind="status", retryable=True, retry_after_s=3_600)
    worker = ScriptedWorker("a", [told, "4"])
    assert isinstance(
        await call_with_fallbacks(make_context([worker]), worker, REQUEST, AttemptLog()), FailedCall
    )
    assert len(worker.requests) == 1


async def test_a_worker_that_wants_a_long_pause_has_it_and_its_fallback_answers(make_context):
    told = WorkerError("Status 429.", kind="rate_limited", retryable=True, retry_after_s=3_600)
    a = ScriptedWorker("a", [told, "4"], fallback="b")
    question_context = make_context([a, ScriptedWorker("b", {"": "four"})])
    for _ in range(3):
        async with asyncio.timeout(5):
            answered = await call_with_fallbacks(question_context, a, REQUEST, AttemptLog())
        assert isinstance(answered, WorkerAnswer)
        assert answered.worker == "b"
    assert len(a.requests) == 1
    assert question_context.call_state.channels[0].breaker.state == "open"


async def test_a_chain_of_fallbacks_is_followed_to_its_end(make_context):
    a = ScriptedWorker("a", [WRONG_KEY] * 9, fallback="b")
    b = ScriptedWorker("b", [WRONG_KEY] * 9, fallback="c")
    c = ScriptedWorker("c", [WRONG_KEY] * 9)
    unanswered = await call_with_fallbacks(make_context([a, b, c]), a, REQUEST, AttemptLog())
    assert unanswered == FailedCall("failed", "a: Status 401. b: Status 401. c: Status 401.")
    assert [len(worker.requests) for worker in (a, b, c)] == [1, 1, 1]


async def test_fallback_costs_its_own_price_and_counts_as_the_same_call(make_context):
    dear = Profile(name="b", price=Price(input=10.0, output=20.0))
    a = ScriptedWorker("a", [WRONG_KEY], fallback="b")
    b = ScriptedWorker("b", ["four"], profile=dear)
    question_context, attempts = make_context([a, b], budget=Budget(calls=1)), AttemptLog()
    answered = await call_with_fallbacks(question_context, a, REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert answered.worker == "b"
    assert answered.spent.cost_usd == dear.price.cost(answered.reply.usage) > 0
    assert question_context.ledger.spent.cost_usd == answered.spent.cost_usd
    assert [attempt.worker for attempt in attempts] == ["a", "b"]


async def test_an_answer_of_a_worker_without_a_price_is_unpriced(make_context):
    for price, unpriced in (
        (Price(), True),
        (Price(input=0.0, output=0.0), False),
        (Price(input=1.0), False),
    ):
        worker = ScriptedWorker("a", ["four"], profile=Profile(name="a", price=price))
        answered = await call_with_fallbacks(make_context([worker]), worker, REQUEST, AttemptLog())
        assert isinstance(answered, WorkerAnswer)
        assert answered.spent.unpriced == unpriced


async def test_a_fallback_that_could_break_the_budget_is_not_called(make_context):
    a = ScriptedWorker("a", [WRONG_KEY], fallback="b")
    b = ScriptedWorker("b", ["four"], profile=Profile(name="b", price=Price(output=1e6)))
    unanswered = await call_with_fallbacks(
        make_context([a, b], budget=Budget(usd=1.0)), a, REQUEST, AttemptLog()
    )
    assert isinstance(unanswered, FailedCall)
    assert unanswered.status == "failed"
    assert unanswered.error.startswith("a: Status 401. The call could cost $4096.000000, ")
    assert b.requests == []


@pytest.mark.parametrize(
    ("images", "options"),
    [
        (("https://example.com/a.png",), AnswerOptions()),
        ((), AnswerOptions(tools=({"type": "function", "function": {"description": " " * 4000}},))),
        ((), AnswerOptions(response_format={"type": "json_schema", "json_schema": {"a": " " * 4000}})),
    ],
)
async def test_budget_reservation_includes_images_tools_and_schemas(make_context, images, options):
    worker = ScriptedWorker("a", ["4"], limits=Limits(max_tokens=10))
    request = Request((Message(role="user", content="2 + 2?", images=images),), seed="0", options=options)
    refused = await call_with_fallbacks(
        make_context([worker], budget=Budget(tokens=1000)), worker, request, AttemptLog()
    )
    assert isinstance(refused, FailedCall)
    assert isinstance(
        await call_with_fallbacks(make_context([worker]), worker, request, AttemptLog()), WorkerAnswer
    )


async def test_a_worker_that_is_down_cools_down_and_its_fallback_answers(make_context):
    down = ScriptedWorker("a", {"": "4"}, delay=60.0, fallback="b", limits=Limits(timeout=0.05, retries=3))
    b = ScriptedWorker("b", {"": "four"})
    question_context, attempts = make_context([down, b]), AttemptLog()
    for _ in range(5):
        answered = await call_with_fallbacks(question_context, down, REQUEST, attempts)
        assert isinstance(answered, WorkerAnswer)
        assert answered.worker == "b"
    assert len(down.requests) == 1
    assert [attempt.error_kind for attempt in attempts] == ["timeout"] + [None] * 5
    assert question_context.call_state.channels[0].breaker.state == "open"
    cooldown = question_context.call_state.channels[0].breaker.cooldown
    assert cooldown is not None
    assert cooldown.error == "No answer within 0.05 s."


async def test_a_cooldown_is_waited_for_if_the_fallback_cannot_answer(make_context):
    limits = Limits(failures_to_open=1, retries=0, probe_after=0.05)
    a = ScriptedWorker("a", [BUSY, "4"], fallback="b", limits=limits)
    b = ScriptedWorker("b", [WRONG_KEY] * 9)
    question_context, attempts = make_context([a, b], budget=Budget(calls=1)), AttemptLog()
    answered = await call_with_fallbacks(question_context, a, REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert (answered.worker, answered.reply.text) == ("a", "4")
    assert [attempt.worker for attempt in attempts] == ["a", "b", "a"]


async def test_a_worker_that_comes_back_is_used_again_after_its_cooldown(make_context):
    limits = Limits(failures_to_open=2, retries=1, probe_after=0.05)
    worker = ScriptedWorker("a", [BUSY, BUSY, "4", "5"], limits=limits)
    question_context = make_context([worker])
    assert isinstance(await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()), FailedCall)
    assert question_context.call_state.channels[0].breaker.state == "open"
    answered = await asyncio.gather(
        *(call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()) for _ in range(2))
    )
    assert all(isinstance(outcome, WorkerAnswer) for outcome in answered)
    assert question_context.call_state.channels[0].breaker.state == "closed"


async def test_a_worker_that_stays_down_costs_at_most_two_cooldowns(make_context):
    limits = Limits(failures_to_open=1, retries=3, probe_after=0.05)
    worker = ScriptedWorker("a", [BUSY] * 99, limits=limits)
    question_context = make_context([worker])
    outcomes = await asyncio.gather(
        *(call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()) for _ in range(20))
    )
    assert all(isinstance(outcome, FailedCall) for outcome in outcomes)
    assert len(worker.requests) < 30


async def test_when_all_calls_fail_each_is_tried_less_often(make_context):
    limits = Limits(retries=3, failures_to_open=1_000)
    worker = ScriptedWorker("a", [BUSY] * 999, limits=limits)
    question_context = make_context([worker])
    outcomes = [await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()) for _ in range(10)]
    assert len(worker.requests) == 10 + 20
    assert outcomes[-1].error == (
        "a: Status 503. It is not tried again: too many calls to this worker failed lately."
    )


async def test_a_slow_call_is_made_a_second_time_and_the_first_reply_counts(make_context):
    worker = Uneven(Limits(hedge_quantile=0.9))
    question_context = make_context([worker], budget=Budget(tokens=1_000_000))
    for _ in range(20):
        await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    worker.slow = 1
    attempts = AttemptLog()
    answered = await call_with_fallbacks(question_context, worker, REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert [(a.hedge, a.error_kind) for a in attempts] == [(True, None), (False, "cancelled")]
    assert question_context.call_state.channels[0].hedges == 1
    assert question_context.call_state.channels[0].rate_limiter.in_flight == 0
    assert question_context.ledger.totals.tokens == 21 * answered.reply.usage.tokens
    left = 1_000_000 - question_context.ledger.totals.tokens
    assert question_context.ledger.affords(Reservation(1, left, 0.0), 0.0)


async def test_a_second_request_that_the_budget_does_not_allow_is_not_made(make_context):
    worker = Uneven(Limits(hedge_quantile=0.9, max_tokens=100))
    question_context = make_context([worker])
    for _ in range(20):
        await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    tight = make_context([worker], budget=Budget(tokens=150), call_state=question_context.call_state)
    worker.slow, worker.delay = 1, 0.2
    attempts = AttemptLog()
    assert isinstance(await call_with_fallbacks(tight, worker, REQUEST, attempts), WorkerAnswer)
    assert [attempt.hedge for attempt in attempts] == [False]


async def test_call_pays_both_hedged_requests_if_both_are_answered(make_context):
    worker = Uneven(Limits(hedge_quantile=0.9))
    worker.profile = Profile(name="a", price=Price(output=1e6))
    question_context = make_context([worker])
    for _ in range(20):
        await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    spent, attempts = question_context.ledger.spent.cost_usd, AttemptLog()
    worker.slow, worker.gate = 2, asyncio.Event()
    answered = await call_with_fallbacks(question_context, worker, REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert len(attempts) == 2
    assert sum(attempt.spent.cost_usd for attempt in attempts) == answered.spent.cost_usd == 1.0
    assert question_context.ledger.spent.cost_usd - spent == 2.0


class Leaving(Uneven):
    """A worker whose answer arrives just as the caller is cancelled."""

    caller: asyncio.Task[object] | None = None

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        if self.caller is not None:
            asyncio.get_running_loop().call_soon(self.caller.cancel)
        return reply


async def test_a_hedged_call_cancelled_as_it_is_answered_is_paid(make_context):
    worker = Leaving(Limits(hedge_quantile=0.9))
    worker.profile = Profile(name="a", price=Price(output=1e6))
    question_context = make_context([worker])
    for _ in range(20):
        await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    attempts = AttemptLog()
    worker.caller = asyncio.create_task(call_with_fallbacks(question_context, worker, REQUEST, attempts))
    with pytest.raises(asyncio.CancelledError):
        await worker.caller
    assert [(a.error_kind, a.spent.cost_usd) for a in attempts] == [("cancelled", 1.0)]


async def test_when_both_requests_fail_the_first_error_is_reported(make_context):
    worker = Uneven(Limits(hedge_quantile=0.9, retries=0))
    question_context = make_context([worker])
    for _ in range(20):
        await call_with_fallbacks(question_context, worker, REQUEST, AttemptLog())
    worker.slow, worker.delay, worker.broken = 2, 0.05, True
    attempts = AttemptLog()
    assert await call_with_fallbacks(question_context, worker, REQUEST, attempts) == FailedCall(
        "failed", "a: Status 503."
    )
    assert sorted(attempt.hedge for attempt in attempts) == [False, True]


class Cut(Worker):
    """A worker whose answers are as long as they may be, and no longer."""

    def __init__(self, name: str, price: Price, fallback: str | None = None) -> None:
        self.profile = Profile(name=name, price=price)
        self.limits = Limits()
        self.fallback = fallback
        self.finish = "length"

    async def answer(self, request: Request) -> Reply:
        return Reply("The answer is", Usage(input_tokens=10, output_tokens=100), finish=self.finish)


async def test_an_answer_that_was_cut_goes_to_the_fallback_and_both_are_paid_for(make_context):
    cut = Cut("a", Price(output=1e4), fallback="b")
    question_context, attempts = make_context([cut, ScriptedWorker("b", {"": "4"})]), AttemptLog()
    answered = await call_with_fallbacks(question_context, cut, REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert (answered.worker, answered.reply.text) == ("b", "4")
    assert [(a.worker, a.error_kind, a.spent.cost_usd) for a in attempts] == [
        ("a", "length", 1.0),
        ("b", None, 0.0),
    ]
    assert question_context.ledger.spent.cost_usd == 1.0


async def test_cached_truncated_answer_and_its_fallback_report_equal_costs(make_context, tmp_path):
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        call_state = CallState(cache=cache)
        saved, calls = [], []
        for _ in range(2):
            cut, b = Cut("a", Price(output=1e4), fallback="b"), Cut("b", Price(output=1e2))
            cut.identity, b.identity, b.finish = {"model": "a"}, {"model": "b"}, "stop"
            question_context, attempts = make_context([cut, b], call_state=call_state), AttemptLog()
            answered = await call_with_fallbacks(question_context, cut, REQUEST, attempts)
            assert isinstance(answered, WorkerAnswer)
            paid = answered.spent.cost_usd + sum(attempt.spent.cost_usd for attempt in attempts)
            assert paid + answered.spent.saved_usd == pytest.approx(1.01)
            saved.append(answered.spent.saved_usd)
            calls.append(question_context.ledger.totals.calls)
        assert saved == [0.0, pytest.approx(1.01)]
        assert calls == [1, 0]


async def test_after_a_cut_answer_from_the_cache_the_fallback_counts_as_a_call(make_context, tmp_path):
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        cut, b = Cut("a", Price(), fallback="b"), ScriptedWorker("b", {"": "4"})
        cut.identity = {"model": "a"}
        for calls in (1, 1):  # b's answers are not kept.
            question_context = make_context([cut, b], call_state=CallState(cache=cache))
            answered = await call_with_fallbacks(question_context, cut, REQUEST, AttemptLog())
            assert isinstance(answered, WorkerAnswer)
            assert (answered.worker, question_context.ledger.totals.calls) == ("b", calls)


async def test_truncated_answer_is_kept_if_no_fallback_gives_a_complete_answer(make_context):
    broken = ScriptedWorker("b", [WRONG_KEY] * 9)
    for other, spent in ((Cut("b", Price(output=1e4)), 2.0), (broken, 1.0)):
        cut = Cut("a", Price(output=1e4), fallback="b")
        question_context, attempts = make_context([cut, other]), AttemptLog()
        answered = await call_with_fallbacks(question_context, cut, REQUEST, attempts)
        assert isinstance(answered, WorkerAnswer)
        assert (answered.worker, answered.reply.text) == ("a", "The answer is")
        assert answered.spent.cost_usd + sum(attempt.spent.cost_usd for attempt in attempts) == spent
        assert question_context.ledger.spent.cost_usd == spent


async def test_a_cut_answer_stays_without_a_fallback_or_where_short_is_wanted(make_context):
    alone = Cut("a", Price())
    assert isinstance(
        await call_with_fallbacks(make_context([alone]), alone, REQUEST, AttemptLog()), WorkerAnswer
    )
    cut, b = Cut("a", Price(), fallback="b"), ScriptedWorker("b", {"": "4"})
    short = replace(REQUEST, options=AnswerOptions(max_tokens=5))
    answered = await call_with_fallbacks(make_context([cut, b]), cut, short, AttemptLog())
    assert isinstance(answered, WorkerAnswer)
    assert answered.worker == "a"


async def test_a_slot_is_free_while_a_call_waits_for_its_retry(make_context):
    worker = ScriptedWorker("a", [BUSY, "b", "a"], limits=Limits(concurrency=1))
    question_context = make_context([worker], settings=ExecutionSettings(first_wait_s=0.05))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()))
        second = group.create_task(call_with_fallbacks(question_context, worker, REQUEST, AttemptLog()))
    assert [task.result().reply.text for task in (first, second)] == ["a", "b"]


async def test_a_cancelled_call_frees_its_reservation_and_leaves_its_attempt(make_context):
    worker = ScriptedWorker("a", {"": "4"}, delay=5.0, limits=Limits(max_tokens=100))
    question_context, attempts = make_context([worker], budget=Budget(tokens=150)), AttemptLog()
    task = asyncio.create_task(call_with_fallbacks(question_context, worker, REQUEST, attempts))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [attempt.error_kind for attempt in attempts] == ["cancelled"]
    quick = ScriptedWorker("b", ["4"], limits=Limits(max_tokens=100))
    assert isinstance(await call_with_fallbacks(question_context, quick, REQUEST, AttemptLog()), WorkerAnswer)
