"""A planner leaves a worker that has begun to fail, once it is told outcomes, and no other one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from podium.conductor.quarantine import QuarantinePlanner
from podium.errors import WorkerError
from podium.planners import Single
from podium.planners.planner import EarlierRound, OnlinePlanner, Planner, PlanRequest
from podium.team import Runner
from podium.trace import Plan, Trace
from podium.types import Profile, Question, Spent, Usage
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, PlanError, Step, Workflow, render

NAMES = ("ada", "bob", "cy", "dee", "egon")
POOL = Pool([ScriptedWorker(name, {"": "42"}) for name in NAMES])
REQUEST = PlanRequest(Question(text="Who?"), tuple(Profile(name=name) for name in NAMES), seed="7")


class FirstAndAnother(Planner):
    """Plans two steps: the first worker that it is shown, and then another one by the question."""

    name = "first-and-another"

    def __init__(self) -> None:
        self.shown: tuple[str, ...] = ()

    async def plan(self, request: PlanRequest) -> Plan:
        self.shown = tuple(profile.name for profile in request.pool)
        other = Random(request.seed).randrange(1, len(request.pool))
        workflow = Workflow((Step(0, "Begin."), Step(other, "Go on.", Access(steps=(0,)))))
        return Plan(render(workflow), workflow)


async def ask(planner: QuarantinePlanner, number: int, pool: Pool = POOL) -> Trace:
    return await Runner(planner, pool).answer(Question(text=f"Question {number}?"), seed=str(number))


async def serve(planner: QuarantinePlanner, numbers: range, *, bad: Collection[str] = ()) -> list[set[str]]:
    """Ask questions and tell the outcomes: each worker does 85 % of its steps rightly, a bad one none.

    Returns the workers of each question.
    """
    called = []
    for number in numbers:
        trace = await ask(planner, number)
        workers = {span.worker for span in trace.spans}
        rng = Random(f"right/{number}")
        planner.learn(trace, float(all(rng.random() < 0.85 and name not in bad for name in sorted(workers))))
        called.append(workers)
    return called


async def test_only_the_failing_worker_is_quarantined_within_50_questions() -> None:
    for bad in ("ada", "cy"):
        planner = QuarantinePlanner(FirstAndAnother())
        assert isinstance(planner, OnlinePlanner)
        before = await serve(planner, range(60))
        assert any(bad in workers for workers in before)
        after = await serve(planner, range(60, 160), bad={bad})
        last = max(place for place, workers in enumerate(after) if bad in workers)
        assert last < 50, bad
        assert planner.quarantined == (bad,)


def test_workers_that_stay_as_they_are_are_kept_good_or_poor() -> None:
    alarms = 0
    for run in range(200):
        right = (0.95, 0.85, 0.75, 0.5)[run % 4]
        rng, planner = Random(f"steady/{run}"), QuarantinePlanner(FirstAndAnother())
        for _ in range(300):
            called = ("ada", rng.choice(NAMES[1:]))
            planner.update(called, (), float(all(rng.random() < right for _ in called)))
            if planner.quarantined:
                alarms += 1
                break
    assert alarms <= 10, "one run in twenty of 300 questions may leave a good worker"


async def test_quarantined_worker_is_tried_again_and_dropped_sooner_if_failing() -> None:
    planner = QuarantinePlanner(FirstAndAnother())
    await serve(planner, range(40))
    called = await serve(planner, range(40, 240), bad={"ada"})
    tries = [place for place, workers in enumerate(called) if "ada" in workers]
    gaps = [place for place, after in pairwise(tries) if after - place > 50]
    assert len(gaps) == 1
    assert len([place for place in tries if place > gaps[0]]) < len(
        [place for place in tries if place <= gaps[0]]
    )
    planner.forget()
    assert planner.quarantined == ()


async def test_failed_calls_quarantine_the_worker_that_failed() -> None:
    broken = POOL.replaced({"bob": ScriptedWorker("bob", {"": WorkerError("It is down.", kind="status")})})
    planner = QuarantinePlanner(FirstAndAnother())
    await serve(planner, range(40))
    failed = 0
    for number in range(40, 90):
        trace = await ask(planner, number, broken)
        fails = any(span.status == "failed" for span in trace.spans)
        failed += fails
        planner.learn(trace, 0.0 if fails else 1.0)
        if failed < 3:
            assert planner.quarantined == (), "a worker may fail now and then"
    assert planner.quarantined == ("bob",)
    assert failed <= 6


async def test_a_worker_whose_fallback_answers_is_blamed_for_its_failures_alone() -> None:
    names = ("ada", "bob")
    down = WorkerError("It is down.", kind="status")
    broken = Pool([ScriptedWorker("ada", {"": down}, fallback="bob"), ScriptedWorker("bob", {"": "42"})])
    planner = QuarantinePlanner(Single("ada"))
    for _ in range(40):
        planner.update(names, (), 1.0)
    for number in range(8):
        trace = await ask(planner, number, broken)
        assert trace.spans[0].answered_by == "bob"
        planner.learn(trace, 1.0)
    assert planner.quarantined == ("ada",)


def test_a_failed_call_counts_even_if_the_answer_is_right() -> None:
    planner = QuarantinePlanner(FirstAndAnother())
    for _ in range(40):
        planner.update(("ada", "bob"), (), 1.0)
    for _ in range(6):
        planner.update(("ada",), ("bob",), 1.0)
    assert planner.quarantined == ("bob",)


def test_worker_with_a_constant_failure_rate_is_not_quarantined() -> None:
    alarms = 0
    for stream in range(10):
        rng, planner = Random(f"flaky/{stream}"), QuarantinePlanner(FirstAndAnother())
        for _ in range(300):
            fails = rng.random() < 0.05
            planner.update(("ada",) if fails else ("ada", "bob"), ("bob",) if fails else (), float(not fails))
            if planner.quarantined:
                alarms += 1
                break
    assert alarms <= 2


async def test_plan_over_a_reduced_pool_keeps_the_worker_numbers_of_the_pool() -> None:
    inner = FirstAndAnother()
    planner = QuarantinePlanner(inner)
    await serve(planner, range(40))
    await serve(planner, range(40, 90), bad={"ada"})
    assert planner.quarantined == ("ada",)
    plan = await planner.plan(REQUEST)
    assert inner.shown == NAMES[1:]
    assert isinstance(plan.decision, Workflow)
    assert plan.decision.steps[0].worker == NAMES.index("bob")
    assert plan.text == render(plan.decision)
    # A worker of an earlier plan is shown: the planner has to read that plan.
    earlier_round = EarlierRound(Workflow((Step(0, "Begin."),)), "42")
    await planner.plan(replace(REQUEST, earlier_rounds=(earlier_round,)))
    assert inner.shown == NAMES


class Wants(Planner):
    """Plans one step of the worker that it wants, else of the first one; each plan costs a tenth of a cent."""

    name = "wants"

    def __init__(self, wanted: str, *, alone: Exception | PlanError | None = None) -> None:
        self.wanted = wanted
        self.alone = alone
        """What comes of a plan where the wanted worker is missing."""
        self.shown: list[tuple[str, ...]] = []

    async def plan(self, request: PlanRequest) -> Plan:
        names = tuple(profile.name for profile in request.pool)
        self.shown.append(names)
        paid = Plan("", Workflow((Step(0, "Do it."),)), Spent(Usage(input_tokens=10, output_tokens=1), 0.001))
        request.ledger.charge(paid.spent)
        if self.wanted in names:
            workflow = Workflow((Step(names.index(self.wanted), "Do it."),))
            return replace(paid, text=render(workflow), decision=workflow)
        if isinstance(self.alone, Exception):
            raise self.alone
        return paid if self.alone is None else replace(paid, text="?", decision=self.alone)


def without_ada(inner: Planner) -> QuarantinePlanner:
    """The planner after it has quarantined ada, whose answers were right forty times and then wrong."""
    planner = QuarantinePlanner(inner)
    for score in (1.0,) * 40 + (0.0,) * 20:
        planner.update(["ada"], [], score)
    assert planner.quarantined == ("ada",)
    return planner


async def test_plan_without_quarantined_workers_is_run_unchanged() -> None:
    inner = Wants("dee")
    plan = await without_ada(inner).plan(REQUEST)
    assert inner.shown == [NAMES]
    assert plan == await inner.plan(REQUEST)


async def test_a_plan_that_calls_a_quarantined_worker_is_rejected_and_paid() -> None:
    inner = Wants("ada")
    trace = await ask(without_ada(inner), 1)
    assert inner.shown == [NAMES, NAMES[1:]]
    assert [span.worker for span in trace.spans] == ["bob"]
    (round_,) = trace.rounds
    assert (round_.plan.spent.usage.tokens, round_.plan.spent.cost_usd) == (22, 0.002)
    (rejected,) = round_.plan.rejected
    assert rejected.decision == PlanError(
        "quarantined_worker", "It calls ada, whose latest outcomes were bad."
    )
    assert rejected.text == render(Workflow((Step(0, "Do it."),)))


@pytest.mark.parametrize(
    ("alone", "cost_usd"),
    [
        (WorkerError("The policy did not answer.", kind="connection"), 0.002),
        (PlanError("missing_list", "There is no list of workers."), 0.002),
    ],
)
async def test_quarantined_worker_is_called_if_replanning_without_worker_fails(
    alone: Exception | PlanError, cost_usd: float
) -> None:
    trace = await ask(without_ada(Wants("ada", alone=alone)), 1)
    assert [span.worker for span in trace.spans] == ["ada"]
    assert trace.rounds[0].plan.spent.cost_usd == cost_usd
    assert [rejected.decision.kind for rejected in trace.rounds[0].plan.rejected] == (
        ["missing_list"] if isinstance(alone, PlanError) else []
    )


async def test_a_tool_is_suspected_for_its_failed_calls_not_for_its_input() -> None:
    planner = QuarantinePlanner(FirstAndAnother(), tools=NAMES[1:])
    for number in range(40):
        planner.learn(await ask(planner, number), 0.0)
    assert planner.quarantined == ("ada",)

    broken = POOL.replaced({"bob": ScriptedWorker("bob", {"": WorkerError("It is down.", kind="status")})})
    planner = QuarantinePlanner(FirstAndAnother(), tools=("bob",))
    await serve(planner, range(40))
    for number in range(40, 90):
        trace = await ask(planner, number, broken)
        planner.learn(trace, 0.0 if any(span.status == "failed" for span in trace.spans) else 1.0)
    assert planner.quarantined == ("bob",)
