"""Every way in which a call spends money: what each try took is booked, and each try is reserved before it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from podium.calls import AttemptLog, CallState
from podium.calls.input_bound import InputTokenBound
from podium.conductor.conductor import Conductor
from podium.conductor.policy import WorkerPolicy
from podium.config import build
from podium.errors import BudgetExceededError, WorkerError
from podium.executor.step_call import FailedCall, WorkerAnswer, call_with_fallbacks
from podium.planners.voting import Single
from podium.rollout.rollout import grade_answer
from podium.spending import Ledger
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.judge import Judge
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.health_check import check_workers
from podium.team.team_worker import TeamWorker
from podium.trace import Reply
from podium.types import (
    AnswerOptions,
    Budget,
    Limits,
    Message,
    Price,
    Profile,
    ProviderState,
    Question,
    Spent,
    ToolCall,
    Usage,
)
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium.workers.response_cache import ResponseCache

REQUEST = Request((Message(role="user", content="What is 2 + 2?"),), seed="0")
USED = Usage(input_tokens=1_000, output_tokens=4_000)
COST_USD = 0.041
EMPTY = WorkerError("It wrote nothing.", kind="protocol", retryable=True)
DOWN = WorkerError("It is down.", kind="status")
"""What nobody bills."""
REFUSED = WorkerError("It refused.", kind="content_filter")
PLAN = 'model_id = [0]\nsubtasks = ["Answer."]\naccess_list = [[]]'


@dataclass(eq=False)
class Paid(Worker):
    """A worker at $1 and $10 a million tokens; `script` has what its calls give, in order, the last one for ever."""

    script: tuple[Any, ...] = ("4",)
    name: str = "a"
    fallback: str | None = None
    hedge: float | None = None
    identity: Any = None
    calls: int = 0
    delay: float = 0.0
    lost: Usage = USED
    """What each call takes that fails or is cancelled."""

    @property
    def profile(self) -> Profile:
        return Profile(name=self.name, price=Price(input=1.0, output=10.0))

    @property
    def limits(self) -> Limits:
        return Limits(hedge_quantile=self.hedge, timeout=5.0)

    async def answer(self, request: Request) -> Reply:
        said = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        if said is not DOWN:
            request.receipt.add(Spent(self.lost, self.profile.price.cost(self.lost)))
        await asyncio.sleep(60 if said == "slow" else self.delay)
        if isinstance(said, WorkerError):
            raise WorkerError(str(said), kind=said.kind, retryable=said.retryable)
        return Reply(said, USED, finish="length" if said == "cut" else "stop")


async def _step(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    context = make_context(pool, ledger=Ledger(budget, spend_limits=spend_limits))
    attempts = AttemptLog()
    answered = await call_with_fallbacks(context, pool[0], REQUEST, attempts)
    usd = sum(attempt.spent.cost_usd for attempt in attempts)
    tokens = sum(attempt.spent.usage.tokens for attempt in attempts)
    if isinstance(answered, WorkerAnswer):
        usd, tokens = usd + answered.spent.cost_usd, tokens + answered.reply.usage.tokens
    assert context.ledger.spent.cost_usd == pytest.approx(usd)
    assert context.ledger.totals.tokens == tokens
    return usd, tokens


async def _hedged(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    """The first twenty answers show how slow a call may be."""
    context = make_context(pool)
    for _ in range(20):
        await call_with_fallbacks(context, pool[0], REQUEST, AttemptLog())
    pool[0].script, pool[0].calls = ("slow", "4"), 0
    again = make_context(
        pool, ledger=Ledger(budget, spend_limits=spend_limits), call_state=context.call_state
    )
    attempts = AttemptLog()
    answered = await call_with_fallbacks(again, pool[0], REQUEST, attempts)
    assert isinstance(answered, WorkerAnswer)
    assert sum(attempt.hedge for attempt in attempts) == 1
    return again.ledger.spent.cost_usd, again.ledger.totals.tokens


async def _cancelled(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    context = make_context(pool, ledger=Ledger(budget, spend_limits=spend_limits))
    task = asyncio.create_task(call_with_fallbacks(context, pool[0], REQUEST, AttemptLog()))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
    return context.ledger.spent.cost_usd, context.ledger.totals.tokens


async def _asked(runner: Runner) -> tuple[float, int]:
    trace = await runner.answer(Question(text="What is 2 + 2?"))
    return trace.cost_usd, trace.usage.tokens


async def _plan(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    planner = Conductor(WorkerPolicy(pool[0]), second_try=True)
    free = Pool([Paid(name="free")])
    free[0].script = (DOWN,)
    return await _asked(Runner(planner, free, budget=budget, call_state=CallState(spend_limits=spend_limits)))


async def _team(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    inner = Runner(Single("a"), Pool(pool))
    team = TeamWorker(Profile(name="team"), inner)
    return await _asked(
        Runner(Single("team"), Pool([team]), budget=budget, call_state=CallState(spend_limits=spend_limits))
    )


async def _judge(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    worker = {"name": "a", "kind": "scripted", "replies": ["WRONG"]}
    judge = build({"kind": "judge", "worker": worker}, Judge)
    judge._state.worker = pool[0]
    task = Task("t", Question(text="What is 2 + 2?"), "4", judge)
    await grade_answer(task, "It is five.", CallState(spend_limits=spend_limits))
    return spend_limits[0].spent_usd, pool[0].calls * USED.tokens


async def _check(make_context, pool, spend_limits, budget) -> tuple[float, int]:
    (result,) = await check_workers(pool, spend_limits=spend_limits)
    return result.spent.cost_usd, result.spent.usage.tokens


Way = Callable[..., Awaitable[tuple[float, int]]]


@pytest.mark.parametrize(
    ("way", "workers", "tries"),
    [
        pytest.param(_step, lambda: [Paid()], 1, id="a step"),
        pytest.param(_step, lambda: [Paid((EMPTY, EMPTY, "4"))], 3, id="a retry of an empty answer"),
        pytest.param(_step, lambda: [Paid((EMPTY,))], 4, id="retries that all fail"),
        pytest.param(_step, lambda: [Paid((REFUSED,))], 1, id="a refusal"),
        pytest.param(_step, lambda: [Paid((REFUSED,), fallback="b"), Paid(name="b")], 2, id="a fallback"),
        pytest.param(_step, lambda: [Paid(("cut",), fallback="b"), Paid(name="b")], 2, id="a cut answer"),
        pytest.param(
            _step,
            lambda: [Paid(("cut",), fallback="b"), Paid((REFUSED,), name="b")],
            2,
            id="a cut answer that stays",
        ),
        pytest.param(_step, lambda: [Paid((DOWN,))], 0, id="a failure that nobody bills"),
        pytest.param(_hedged, lambda: [Paid(hedge=0.9)], 2, id="a hedge, and the slow try"),
        pytest.param(_cancelled, lambda: [Paid(("slow",))], 1, id="a call that its caller cancels"),
        pytest.param(_plan, lambda: [Paid((PLAN,))], 1, id="a plan"),
        pytest.param(_plan, lambda: [Paid((EMPTY, "no plan", PLAN))], 3, id="a plan's retry and second try"),
        pytest.param(_plan, lambda: [Paid(("no plan", REFUSED))], 2, id="a second try that fails"),
        pytest.param(_plan, lambda: [Paid((REFUSED,))], 1, id="a plan that nobody writes"),
        pytest.param(_team, lambda: [Paid((EMPTY, "4"))], 2, id="a nested team"),
        pytest.param(_team, lambda: [Paid((REFUSED,))], 1, id="a nested team without an answer"),
        pytest.param(_judge, lambda: [Paid((EMPTY, "WRONG"))], 2, id="a judge"),
        pytest.param(_check, lambda: [Paid((REFUSED,))], 1, id="a check of the pool"),
    ],
)
async def test_cost_of_each_try_is_booked_in_ledger_and_spend_limit(
    make_context: Any, way: Way, workers: Callable[[], list[Any]], tries: int
) -> None:
    spend_limit = SharedSpendLimit(None, "day", 10.0)
    usd, tokens = await way(make_context, workers(), [spend_limit], Budget())
    assert usd == pytest.approx(tries * COST_USD)
    assert tokens == tries * USED.tokens
    assert spend_limit.spent_usd == pytest.approx(usd)
    assert spend_limit.reserved_usd == 0


@pytest.mark.parametrize(
    ("way", "workers"),
    [
        pytest.param(_step, lambda: [Paid((EMPTY,))], id="retries"),
        pytest.param(_step, lambda: [Paid((EMPTY,), fallback="b"), Paid(name="b")], id="a fallback"),
        pytest.param(_plan, lambda: [Paid((EMPTY,))], id="a plan's retries"),
        pytest.param(_plan, lambda: [Paid(("no plan",))], id="a plan's second try"),
        pytest.param(_team, lambda: [Paid((EMPTY,))], id="a nested team"),
        pytest.param(_judge, lambda: [Paid((EMPTY,))], id="a judge"),
    ],
)
@pytest.mark.parametrize("shared", [False, True])
async def test_the_budget_is_checked_before_each_try(
    make_context: Any, way: Way, workers: Callable[[], list[Any]], shared: bool
) -> None:
    if way is _judge and not shared:
        return  # A judge has spend limits alone.
    spend_limit = SharedSpendLimit(None, "day", 0.05 if shared else 10.0)
    called = workers()
    with suppress(BudgetExceededError):
        await way(make_context, called, [spend_limit], Budget() if shared else Budget(usd=0.05))
    assert sum(worker.calls for worker in called) == 1
    assert spend_limit.spent_usd == pytest.approx(COST_USD)


async def test_a_refused_retry_says_why_the_first_try_failed(make_context: Any) -> None:
    worker = Paid((EMPTY,))
    unanswered = await call_with_fallbacks(
        make_context([worker], budget=Budget(usd=0.05)), worker, REQUEST, AttemptLog()
    )
    assert isinstance(unanswered, FailedCall)
    assert unanswered.error.startswith("a: It wrote nothing. It is not tried again: The call could cost $0.0")


async def test_a_failed_try_is_not_cached_and_a_cached_answer_costs_nothing(
    make_context: Any, tmp_path: Any
) -> None:
    worker = Paid((EMPTY, REFUSED, "4"), identity={"model": "a"})
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        spent = []
        for _ in range(3):
            context = make_context([worker], call_state=CallState(cache=cache))
            await call_with_fallbacks(context, worker, REQUEST, AttemptLog())
            spent.append(context.ledger.spent.cost_usd)
    assert spent == [pytest.approx(2 * COST_USD), pytest.approx(COST_USD), 0.0]


async def test_a_plan_that_the_caller_gave_up_is_in_the_trace() -> None:
    ended: list[Any] = []
    planner = Conductor(WorkerPolicy(Paid(("slow",))))
    task = asyncio.create_task(
        Runner(planner, Pool([Paid()])).answer(Question(text="2 + 2?"), on_event=ended.append)
    )
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
    trace = ended[-1].trace
    assert trace.status == "cancelled"
    assert trace.cost_usd == pytest.approx(COST_USD)
    assert [attempt.error_kind for attempt in trace.rounds[0].plan.attempts] == ["cancelled"]


def sized(text: str, **more: Any) -> Any:
    return InputTokenBound(Paid()).size((Message(role="user", content=text, **more),), AnswerOptions())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a" * 2_000, 500),
        ("Q7#!" * 500, 1_900),
        ("河流" * 800, 1_600),
        ("😀" * 500, 500),
        ("река" * 400, 900),
    ],
)
def test_token_count_lowers_the_bound_for_the_same_kind_of_text_only(text: str, tokens: int) -> None:
    bound = InputTokenBound(Paid())
    size, other = sized(text), sized("ไทย" * 500)
    first, first_of_other = bound.upper(size), bound.upper(other)
    assert first >= len(text.encode())
    bound.learn(size, tokens)
    assert tokens <= bound.upper(size) <= first
    assert bound.upper(other) == first_of_other


@pytest.mark.parametrize(
    ("text", "tokens", "factors"),
    [
        ("Where does the old river meet the sea? Ask 3 people. " * 150, 1_850, (17, 1.1, 1.7)),
        ("河流在哪里流入大海？请告诉我答案。" * 300, 4_080, (5.0, 3.8, 1.5)),
        ("😀😁" * 1_000, 5_000, (1.6, 1.6, 1.6)),
    ],
)
def test_token_bounds_exceed_the_counted_tokens_by_known_factors(
    text: str, tokens: int, factors: tuple[float, float, float]
) -> None:
    bound, size = InputTokenBound(Paid()), sized(text)
    reserved = [bound.first_call_bound(size), bound.lower(size)]
    bound.learn(size, tokens)
    reserved.append(bound.upper(size))
    assert [each / tokens for each in reserved] == pytest.approx(factors, rel=0.1)


def test_the_bound_counts_provider_state_and_passed_on_fields() -> None:
    bound, text = InputTokenBound(Paid()), "word " * 2000
    call = ToolCall(id="c", name="look", arguments="{}")
    plain = Message(role="assistant", content="", tool_calls=(call,))
    own = plain.model_copy(update={"provider_state": ProviderState(worker="a", fields=text)})
    least = bound.upper(bound.size((plain,), AnswerOptions())) + len(text)
    assert bound.upper(bound.size((own,), AnswerOptions())) >= least
    assert bound.upper(bound.size((plain,), AnswerOptions(extra={"documents": [text]}))) >= least
    foreign = plain.model_copy(update={"provider_state": ProviderState(worker="b", fields=text)})
    assert bound.upper(bound.size((foreign,), AnswerOptions())) < least


def test_token_count_above_the_bound_raises_the_bound() -> None:
    bound = InputTokenBound(Paid())
    for text, tokens in (("2 + 2?", 3_000), ("a" * 1_000, 4_500)):
        bound.learn(sized(text), tokens)
        assert bound.upper(sized(text)) >= tokens
        assert bound.upper(sized(text * 2)) >= tokens


async def test_first_question_within_budget_is_answered_without_known_counts(
    make_context: Any,
) -> None:
    prose = Request((Message(role="user", content="Where does the river end? " * 2_000),), seed="0")
    worker = Paid()
    tight = make_context([worker], budget=Budget(usd=0.0541))
    assert isinstance(await call_with_fallbacks(tight, worker, prose, AttemptLog()), WorkerAnswer)


async def test_concurrent_calls_above_their_token_bound_stay_within_budget(make_context: Any) -> None:
    prose = Request((Message(role="user", content="Where does the river end? " * 2_000),), seed="0")
    lost = Usage(input_tokens=50_000)
    worker = Paid((REFUSED,), delay=0.01, lost=lost)
    context = make_context([worker], budget=Budget(usd=0.09))
    await asyncio.gather(*(call_with_fallbacks(context, worker, prose, AttemptLog()) for _ in range(20)))
    assert context.ledger.spent.cost_usd <= 0.09
