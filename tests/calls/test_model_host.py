"""Models that share a machine's memory: whose turn it is, and what a machine that loads them sees of that."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.calls import rate_limiter
from podium.calls.rate_limiter import ModelHost, RateLimiter
from podium.errors import UsageError
from podium.executor.plan_estimate import estimate_plan
from podium.library.evaluation import evaluate
from podium.planners.planner import Planner, PlanRequest, PrewrittenPlans
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team.health_check import check_workers
from podium.team.runner import Runner
from podium.team.team import Team
from podium.team.team_file import open_pool
from podium.trace import Plan, Reply
from podium.types import Limits, Profile, Question, Usage
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow
from podium_testing import Answer, FaultServer, SwappedModels

ONE = Workflow((Step(0, "Answer."),))
CHAIN = Workflow((Step(0, "Draft."), Step(1, "Check.", Access(all=True)), Step(2, "Join.", Access(all=True))))


def write_team(path: Path, url: str, *, shared: str, more: str = "") -> str:
    path.write_text(
        "".join(
            f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}-1"\nbase_url = "{url}"\n'
            f"limits = {{ concurrency = 2{shared}{more if name == 'c' else ''} }}\n"
            for name in "abc"
        )
    )
    return str(path)


async def loads(path: Path, *, shared: str, loaded_at_once: int = 1) -> list[str]:
    """The models that a machine loads for eight questions at once, each with a chain of three steps."""
    models = SwappedModels(Answer("4"), load_s=0.01, loaded_at_once=loaded_at_once)
    async with FaultServer(models) as server:
        pool = open_pool(write_team(path / "team.toml", server.url, shared=shared))
        runner = Runner(PrewrittenPlans((Plan("", CHAIN),)), pool)
        asked = (runner.answer(Question(text="2 + 2?"), seed=str(number)) for number in range(8))
        traces = await asyncio.gather(*asked)
        await pool.close()
    assert {trace.status for trace in traces} == {"ok"}
    return models.loads


async def test_calls_of_all_questions_are_grouped_by_model(tmp_path: Path) -> None:
    assert await loads(tmp_path, shared=', host = "here"') == ["a-1", "b-1", "c-1"]
    assert len(await loads(tmp_path, shared="")) > 3, "what a machine does without it"


async def test_machine_uses_as_many_models_at_once_as_can_be_loaded(tmp_path: Path) -> None:
    shared = ', host = "here", loaded_at_once = 2'
    assert await loads(tmp_path, shared=shared, loaded_at_once=2) == ["a-1", "b-1", "c-1"]


def test_workers_of_one_machine_must_agree_on_loaded_at_once(tmp_path: Path) -> None:
    path = write_team(
        tmp_path / "team.toml", "http://x/v1", shared=', host = "here"', more=", loaded_at_once = 2"
    )
    with pytest.raises(UsageError, match="c says that here holds 2 models at once"):
        open_pool(path)


class Computing(Worker):
    """A model on this machine, which notes how many models compute at the same time."""

    def __init__(self, name: str, computing: set[int], most: list[int], *, alone: bool) -> None:
        self.profile = Profile(name=name)
        self._computing, self._most, self._alone = computing, most, alone

    @property
    def takes_all_cores(self) -> bool:
        return self._alone

    async def answer(self, request: Request) -> Reply:
        self._computing.add(id(self))
        for _ in range(9):
            self._most.append(len(self._computing))
            await asyncio.sleep(0)
        self._computing.discard(id(self))
        return Reply("4", Usage())


@pytest.mark.parametrize(("alone", "at_once"), [(True, 1), (False, 3)])
async def test_models_that_take_all_cores_compute_one_after_the_other(alone: bool, at_once: int) -> None:
    computing: set[int] = set()
    most: list[int] = []
    pool = Pool([Computing(name, computing, most, alone=alone) for name in "abc"])
    steps = tuple(Step(number, "Answer.") for number in range(3))
    plan = Workflow((*steps, Step(0, "Join.", Access(all=True))))

    trace = await Runner(PrewrittenPlans((Plan("", plan),)), pool).answer(Question(text="2 + 2?"))

    assert (trace.status, max(most)) == ("ok", at_once)
    most.clear()
    same = [Computing("a", computing, most, alone=alone) for _ in range(3)]
    teams = [Runner(PrewrittenPlans((Plan("", ONE),)), Pool([worker])) for worker in same]
    traces = await asyncio.gather(*(team.answer(Question(text="2 + 2?")) for team in teams))
    assert ([trace.status for trace in traces], max(most)) == (["ok"] * 3, at_once)
    most.clear()
    assert all(result.answered for result in await check_workers(pool))
    assert max(most) == at_once


async def test_a_model_that_others_wait_for_gives_way_after_its_turn() -> None:
    shared = ModelHost(1, longest_turn_s=0.1)
    first, second = (RateLimiter(Limits(concurrency=1), shared, model) for model in "ab")
    order: list[str] = []

    async def call(limiter: RateLimiter, name: str, seconds: float) -> None:
        permit = await limiter.acquire(name, 1)
        await asyncio.sleep(seconds)
        order.append(name)
        limiter.release(permit, 1)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(call(first, "a", 0.02))
        await asyncio.sleep(0)
        group.create_task(call(second, "b", 0.02))
    assert 1 < order.index("b") < 29
    assert len(order) == 31


async def test_the_next_step_of_a_question_finds_its_model_still_there() -> None:
    shared = ModelHost(1, 60.0)
    first, second = (RateLimiter(Limits(concurrency=1), shared, model) for model in "ab")
    permit = await first.acquire("q", 1)
    other = asyncio.create_task(second.acquire("r", 1))
    await asyncio.sleep(0)
    first.release(permit, 1)
    await asyncio.sleep(0)
    permit = await first.acquire("q", 1)
    assert shared.loaded == {"a"}
    first.release(permit, 1)
    second.release(await other, 1)
    assert shared.loaded == {"b"}


@given(seed=st.integers(0, 10_000), models=st.integers(1, 4), holds=st.integers(1, 3))
def test_no_more_models_have_calls_than_the_machine_holds(seed: int, models: int, holds: int) -> None:
    async def play() -> None:
        rng, shared = Random(f"machine/{seed}"), ModelHost(holds, 60.0)
        limiters = [RateLimiter(Limits(concurrency=rng.randint(1, 3)), shared, str(k)) for k in range(models)]

        async def call(number: int) -> None:
            limiter = rng.choice(limiters)
            await asyncio.sleep(rng.choice([0, 0, 0.001, 0.003]))
            permit = await limiter.acquire(str(number % 5), 1)
            try:
                assert sum(one.in_flight > 0 for one in limiters) <= holds
                limiter.pause(rng.choice([0, 0, 0.002]))
                await asyncio.sleep(rng.choice([0, 0.001]))
            finally:
                limiter.release(permit, 1)

        async with asyncio.timeout(30):
            tasks = [asyncio.create_task(call(number)) for number in range(25)]
            for task in rng.sample(tasks, 5):
                await asyncio.sleep(0.0005)
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(one is None or isinstance(one, asyncio.CancelledError) for one in ended)
        assert not any(one.in_flight or one.waiting for one in limiters)

    linger, rate_limiter._LINGER_S = rate_limiter._LINGER_S, 0.0
    try:
        asyncio.run(play())
    finally:
        rate_limiter._LINGER_S = linger


def local(name: str, *, holds: int = 1) -> ScriptedWorker:
    limits = Limits(host="here", loaded_at_once=holds, load_s=5.0)
    return ScriptedWorker(name, ["4"] * 9, profile=Profile(name=name, latency_s=1.0), limits=limits)


@pytest.mark.parametrize(("holds", "seconds"), [(1, 3 * 6.0), (2, 2 * 6.0 + 1.0)])
def test_an_estimate_has_the_seconds_of_loading(holds: int, seconds: float) -> None:
    pool = Pool([local("a", holds=holds), local("b", holds=holds)])
    steps = (Step(0, "Draft."), Step(1, "Check.", Access(all=True)), Step(0, "Join.", Access(all=True)))
    expected = estimate_plan(Workflow(steps), pool, Question(text="2 + 2?")).seconds
    assert expected is not None
    assert expected.likely == seconds


class Told(Planner):
    """A planner that keeps what it was told, and asks the first worker."""

    name = "told"

    def __init__(self) -> None:
        self.unloaded_models: list[tuple[str, ...]] = []

    async def plan(self, request: PlanRequest) -> Plan:
        self.unloaded_models.append(request.unloaded_models)
        return Plan("", Workflow((Step(0, "Answer."),)))


async def test_a_planner_is_told_which_models_would_have_to_be_loaded() -> None:
    told = Told()
    async with Team.open(Pool([local("a"), local("b"), ScriptedWorker("c", ["4"])]), planner=told) as team:
        for _ in range(2):
            await team.ask("2 + 2?")
    assert told.unloaded_models == [(), ("b",)]


async def test_cached_plan_does_not_depend_on_loaded_models(tmp_path: Path) -> None:
    told, path = Told(), str(tmp_path / "responses.sqlite")
    async with Team.open(Pool([local("a"), local("b")]), planner=told, cache=path) as team:
        for _ in range(2):
            await team.ask("2 + 2?")
    assert told.unloaded_models == [(), ()]


async def test_an_evaluation_plans_alike_whatever_is_loaded() -> None:
    told = Told()
    tasks = [Task(id=name, question=Question(text=f"{name}?"), gold="4", grader=Exact()) for name in "xy"]
    async with Team.open(Pool([local("a"), local("b")]), planner=told) as team:
        await team.ask("2 + 2?")
        await evaluate(team, tasks)
    assert told.unloaded_models == [()] * 3


async def test_rate_limited_call_loads_no_model() -> None:
    shared = ModelHost(1, 60.0)
    first, second = (RateLimiter(Limits(concurrency=1), shared, model) for model in "ab")
    permit = await first.acquire("q", 1)
    second.pause(0.3)
    paused = asyncio.create_task(second.acquire("r", 1))
    await asyncio.sleep(0)
    first.release(permit, 1)
    await asyncio.sleep(0.15)
    assert shared.loaded == {"a"}
    async with asyncio.timeout(10):
        first.release(await first.acquire("q", 1), 1)
        second.release(await paused, 1)
    assert shared.loaded == {"b"}


async def test_model_with_paused_calls_yields_to_other_models_at_once() -> None:
    shared = ModelHost(1, 60.0)
    first, second = (RateLimiter(Limits(concurrency=1), shared, model) for model in "ab")
    permit = await first.acquire("q", 1)
    first.pause(0.5)
    paused, other = (asyncio.create_task(one.acquire("r", 1)) for one in (first, second))
    await asyncio.sleep(0)
    first.release(permit, 1)
    async with asyncio.timeout(10):
        second.release(await other, 1)
        assert not paused.done()
        first.release(await paused, 1)
    assert shared.loaded == {"a"}
