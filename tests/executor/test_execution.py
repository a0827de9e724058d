import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import WorkerError
from podium.executor import Execution, ExecutionSettings, RoundContext
from podium.trace import Reply
from podium.types import Budget, Limits, Message, Price, Profile
from podium.workers.base import Request, Worker
from podium.workers.scripted import ScriptedWorker
from podium.workers.view import read_view
from podium.workers.vote import VoteWorker
from podium.workflow import Access, Step, Workflow, needed_steps

BROKEN = WorkerError("It broke.", kind="status")
ALL_STEPS = ExecutionSettings(run_all=True)


def workflow(*reads: tuple[int, ...]) -> Workflow:
    """Step k, with subtask "step k", is given to worker k and reads `reads[k]`."""
    return Workflow(tuple(Step(k, f"step {k}", Access(steps=seen)) for k, seen in enumerate(reads)))


def ancestors(plan: Workflow, position: int) -> set[int]:
    return {position}.union(*(ancestors(plan, j) for j in plan.reads(position)))


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    count = draw(st.integers(1, 7))
    return workflow(
        *(
            tuple(sorted(draw(st.sets(st.sampled_from(range(k)), max_size=3)))) if k else ()
            for k in range(count)
        )
    )


class Witness(Worker):
    """A worker that takes turns of the event loop instead of seconds, and notes who ran beside it."""

    def __init__(self, name: str, turns: int, log: list[tuple[str, str]], price: Price) -> None:
        self.profile = Profile(name=name, price=price)
        self.limits = Limits(max_tokens=8)
        self._turns = turns
        self._log = log

    async def answer(self, request: Request) -> Reply:
        self._log.append(("start", self.profile.name))
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._log.append(("end", self.profile.name))
        worker = ScriptedWorker(self.profile.name, {"": "well"})
        return await worker.answer(request)


def witnesses(turns: list[int], log: list[tuple[str, str]], price: Price = Price()) -> list[Witness]:
    return [Witness(str(k), turns[k % len(turns)], log, price) for k in range(7)]


@given(workflows(), st.lists(st.integers(0, 6), min_size=7, max_size=7), st.booleans())
@settings(deadline=None)
def test_step_starts_only_after_all_steps_it_reads(make_context, plan, turns, run_all):
    log: list[tuple[str, str]] = []

    async def run() -> Execution:
        how = ExecutionSettings(run_all=run_all)
        execution = Execution(make_context(witnesses(turns, log), settings=how), plan)
        await execution.run()
        return execution

    spans = asyncio.run(run()).spans
    run_steps = set(range(len(plan.steps))) if run_all else set(needed_steps(plan))
    assert {span.position for span in spans if span.status == "done"} == run_steps
    assert {span.position for span in spans if span.status == "skipped"} == (
        set(range(len(plan.steps))) - run_steps
    )
    assert sorted(log) == sorted((what, str(k)) for k in run_steps for what in ("start", "end"))
    for position in run_steps:
        for read in plan.reads(position):
            assert log.index(("end", str(read))) < log.index(("start", str(position)))


async def test_steps_of_adjacent_levels_overlap(make_context):
    log: list[tuple[str, str]] = []
    plan = workflow((), (), (0,), (1,), (2, 3))
    await Execution(make_context(witnesses([20, 50, 60, 30, 20], log)), plan).run()
    assert log.index(("start", "2")) < log.index(("end", "1"))
    assert log.index(("start", "3")) < log.index(("end", "2"))


@given(
    plan=workflows(),
    turns=st.lists(st.integers(0, 6), min_size=7, max_size=7),
    budget=st.builds(
        Budget,
        calls=st.none() | st.integers(0, 6),
        tokens=st.none() | st.integers(0, 900),
        usd=st.none() | st.floats(0, 1e-3),
    ),
)
@settings(deadline=None)
def test_spans_never_add_up_to_more_than_the_budget(make_context, plan, turns, budget):
    price = Price(input=1.0, output=3.0)

    async def run() -> Execution:
        workers = witnesses(turns, [], price)
        question_context = make_context(workers, budget=budget, settings=ALL_STEPS)
        execution = Execution(question_context, plan)
        await execution.run()
        assert sum(span.usage.tokens for span in execution.spans) == question_context.ledger.totals.tokens
        assert sum(span.spent.cost_usd for span in execution.spans) == pytest.approx(
            question_context.ledger.spent.cost_usd
        )
        assert sum(span.called for span in execution.spans) == question_context.ledger.totals.calls
        return execution

    spans = asyncio.run(run()).spans
    assert {span.status for span in spans} <= {"done", "refused"}
    assert all((span.status == "refused") == (span.error is not None) for span in spans)
    assert budget.calls is None or sum(span.called for span in spans) <= budget.calls
    assert budget.tokens is None or sum(span.usage.tokens for span in spans) <= budget.tokens
    assert budget.usd is None or sum(span.spent.cost_usd for span in spans) <= budget.usd * (1 + 1e-9)
    if budget == Budget():
        assert all(span.status == "done" for span in spans)


@given(workflows(), st.integers(0, 12))
@settings(deadline=None)
def test_cancellation_leaves_nothing_running(make_context, plan, turns_before):
    async def run() -> None:
        log: list[tuple[str, str]] = []
        execution = Execution(make_context(witnesses([8], log), settings=ALL_STEPS), plan)
        task = asyncio.create_task(execution.run())
        for _ in range(turns_before):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        if not task.cancelled():  # It had ended before.
            return
        ended, started = (sum(what == kind for what, _ in log) for kind in ("end", "start"))
        statuses = [span.status for span in execution.spans]
        assert statuses.count("done") == ended
        assert statuses.count("cancelled") == len(plan.steps) - ended
        assert sum(span.called for span in execution.spans) == started
        noted = len(log)
        await asyncio.sleep(0.001)
        assert len(log) == noted

    asyncio.run(run())


async def test_workers_that_never_pause_are_refused_when_time_is_up(make_context):
    workers = [ScriptedWorker(str(k), ["ok"]) for k in range(2)]
    question_context = make_context(workers, budget=Budget(seconds=1.0), started=-10.0)
    question_context.ledger.deadline = asyncio.get_running_loop().time()
    execution = Execution(question_context, workflow((), (0,)))
    await execution.run()
    assert [span.status for span in execution.spans] == ["refused", "refused"]
    assert not workers[0].requests


async def test_a_failed_step_is_left_out_and_the_workflow_goes_on(make_context):
    workers = [ScriptedWorker("0", ["four"]), ScriptedWorker("1", [BROKEN]), ScriptedWorker("2", ["4"])]
    execution = Execution(make_context(workers), workflow((), (), (0, 1)))
    await execution.run()
    _, failed, last = execution.spans
    assert (failed.status, failed.error, failed.response) == ("failed", "1: It broke.", None)
    assert (last.status, last.reads) == ("done", (0, 1))
    assert [shown.position for shown in read_view(last.messages).earlier] == [0]


@pytest.mark.parametrize("layout", ["packed", "chat"])
async def test_a_worker_gets_its_context_as_data_beside_the_messages(make_context, layout):
    """Also where the messages alone would show an exchange of the chat as the response of a step."""
    workers = [ScriptedWorker("0", ["Answer: 4"]), ScriptedWorker("1", ["ok"])]
    past = (Message(role="user", content="Hello."), Message(role="assistant", content="Answer: 9"))
    of_question = make_context(workers, settings=ExecutionSettings(layout=layout))
    of_question = replace(of_question, question=of_question.question.model_copy(update={"history": past}))
    await Execution(of_question, workflow((), (0,))).run()
    view = workers[1].requests[0].view
    assert view.question == of_question.question.text
    assert [(step.position, step.response) for step in view.earlier] == [(0, "Answer: 4")]


async def test_a_prompt_says_how_many_responses_are_missing(make_context):
    workers = [
        ScriptedWorker("0", ["four"]),
        ScriptedWorker("1", [BROKEN]),
        ScriptedWorker("2", [BROKEN]),
        ScriptedWorker("3", ["4"]),
    ]
    await Execution(make_context(workers), workflow((), (), (0, 1), (0, 1, 2))).run()
    assert [worker.requests[0].missing_responses for worker in workers] == [(), (), (1,), (1, 2)]


@pytest.mark.parametrize(
    ("budget", "status"), [(Budget(), "failed"), (Budget(usd=0.0), "refused")], ids=["failed", "refused"]
)
async def test_vote_without_responses_gets_the_status_of_its_steps(make_context, budget, status):
    dear = Profile(name="0", price=Price(output=1.0))
    workers = [ScriptedWorker("0", [BROKEN], profile=dear), VoteWorker("1")]
    execution = Execution(make_context(workers, budget=budget), workflow((), (0,)))
    await execution.run()
    assert [span.status for span in execution.spans] == [status, status]
    assert [attempt.error_kind for attempt in execution.spans[1].attempts] == ["missing"]


@pytest.mark.parametrize("layout", ["packed", "chat"])
async def test_access_lists_hide_other_work_but_never_the_question(make_context, layout):
    plan = Workflow(
        (
            Step(0, "step 0"),
            Step(0, "step 1", Access(steps=(0,))),
            Step(0, "step 2"),
            Step(0, "step 3", Access(all=True)),
            Step(0, "step 4", Access(steps=(1,), previous=True)),
        )
    )
    worker = ScriptedWorker("0", {f"step {k}": f"response {k}" for k in range(5)})
    how = ExecutionSettings(layout=layout, run_all=True)
    execution = Execution(make_context([worker], settings=how), plan, RoundContext(response="earlier answer"))
    await execution.run()
    for span, seen in zip(execution.spans, [(), (0,), (), (0, 1, 2), (1,)], strict=True):
        view = read_view(span.messages)
        sent = "\n".join(message.content for message in span.messages)
        assert (view.question, view.subtask) == ("What is 2 + 2?", f"step {span.position}")
        assert [k for k in range(5) if f"response {k}" in sent] == list(seen) == list(span.reads)
        assert ("earlier answer" in sent) == (span.position >= 3)


async def test_each_call_has_a_seed_of_its_own(make_context):
    worker = ScriptedWorker("0", {"": "ok"})
    plan = Workflow((Step(0, "a"), Step(0, "a"), Step(0, "b", Access(all=True))))
    for number in range(2):
        await Execution(make_context([worker]), plan, RoundContext(number)).run()
    seeds = [request.seed for request in worker.requests]
    assert seeds == ["7/0/0", "7/0/1", "7/0/2", "7/1/0", "7/1/1", "7/1/2"]


async def test_a_simulated_worker_claims_its_seconds_without_sleeping(make_context):
    class Simulated(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            reply = await super().answer(request)
            return Reply(reply.text, reply.usage, latency_s=30.0)

    question_context = make_context([Simulated("0", ["4"])])
    execution = Execution(question_context, workflow(()))
    await execution.run()
    assert execution.spans[0].seconds == execution.spans[0].claimed_s == 30.0
    assert question_context.elapsed() < 5.0


async def test_a_bug_in_a_worker_escapes_and_stops_the_rest(make_context):
    class Buggy(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            raise ZeroDivisionError

    slow = ScriptedWorker("0", ["4"], delay=5.0)
    execution = Execution(make_context([slow, Buggy("1", [])], settings=ALL_STEPS), workflow((), ()))
    with pytest.raises(ExceptionGroup) as caught:
        await execution.run()
    assert caught.group_contains(ZeroDivisionError)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(slow.requests) == 1


async def test_a_parallel_step_waits_for_the_budget_that_the_other_does_not_use(make_context):
    workers = [ScriptedWorker(str(k), ["ok"], delay=0.01, limits=Limits(max_tokens=1_000)) for k in range(3)]
    execution = Execution(make_context(workers, budget=Budget(tokens=2_000)), workflow((), (), (0, 1)))
    await execution.run()
    assert [span.status for span in execution.spans] == ["done", "done", "done"]
