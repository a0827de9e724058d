"""Steps that run while the rest of their plan is being written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_texts import workflows
from podium.calls import CallState
from podium.conductor.open import build_endpoint, make_worker_conductor
from podium.conductor.settings import ConductorSettings
from podium.errors import UsageError, WorkerError
from podium.executor import StepEnded, StepStarted, StepText
from podium.planners.planner import Planner, PlanRequest
from podium.team import Event, PlanReady, QuestionEnded, Runner
from podium.trace import Plan, Reply, Trace
from podium.types import Budget, Limits, Price, Profile, Question, Spent, Usage
from podium.workers import Pool, ScriptedWorker
from podium.workers.base import Request, Worker
from podium.workflow import Acceptance, Access, PlanError, Step, Workflow
from podium_testing import Answer, FaultServer, Rule, SlowDrip

QUESTION = Question(text="What is 2 + 2?")
UNREADABLE = PlanError("missing_list", "Expected model_id.")
ANSWERED, LOST = Usage(input_tokens=7, output_tokens=3), Usage(input_tokens=7, estimated=True)
PRICE = Price(input=1.0, output=2.0)


class Metered(Worker):
    """A worker that takes a while, costs money also when it is cancelled, and counts what it was paid."""

    def __init__(self, name: str, seconds: float) -> None:
        self.profile = Profile(name=name, price=PRICE)
        self.limits = Limits(retries=0, max_tokens=50)
        self.paid_usd = 0.0
        self.running = 0
        self._seconds = seconds

    async def answer(self, request: Request) -> Reply:
        self.running += 1
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            request.receipt.add(Spent(LOST, PRICE.cost(LOST)))
            self.paid_usd += PRICE.cost(LOST)
            raise
        finally:
            self.running -= 1
        self.paid_usd += PRICE.cost(ANSWERED)
        seen = [step.response for step in request.view.earlier]
        text = f"{self.profile.name}: {request.view.subtask} {seen}"
        if request.on_text is not None:
            request.on_text(text)
        return Reply(text, ANSWERED)


@dataclass
class SlowPlanner(Planner):
    """Tells the first steps of drafts while it writes, with pauses, and then decides."""

    drafts: Sequence[tuple[Step, ...]]
    decision: Workflow | Acceptance | PlanError | Exception
    pause_s: float = 0.001
    usd: float = 0.01
    name: str = "slow"
    streams_steps: bool = True
    told: list[int] = field(default_factory=list)

    async def plan(self, request: PlanRequest) -> Plan:
        for draft in self.drafts:
            if request.on_steps is not None:
                request.on_steps(draft)
                self.told.append(len(draft))
            await asyncio.sleep(self.pause_s)
        request.ledger.charge(Spent(Usage(input_tokens=1), self.usd))
        if isinstance(self.decision, Exception):
            raise self.decision
        return Plan("written", self.decision, Spent(Usage(input_tokens=1), self.usd))


def pool(*seconds: float) -> Pool:
    return Pool([Metered(f"worker-{number}", each) for number, each in enumerate(seconds)])


def assert_paid_once(trace: Trace, workers: Pool, planner_usd: float) -> None:
    """All that workers were paid stands in the trace, and none of them runs on."""
    metered = [worker for worker in workers if isinstance(worker, Metered)]
    assert not any(worker.running for worker in metered)
    assert trace.cost_usd == pytest.approx(planner_usd + sum(worker.paid_usd for worker in metered))


@st.composite
def writings(draw: st.DrawFn) -> tuple[list[tuple[Step, ...]], Any]:
    """Drafts that grow along a workflow, perhaps one that is not decided for, and what is decided."""
    written = draw(workflows(max_steps=5))
    told = draw(st.lists(st.integers(1, max(1, len(written.steps) - 1)), max_size=4))
    drafts = [written.steps[:count] for count in sorted(told) if count < len(written.steps)]
    end = draw(st.sampled_from(["whole", "other", "error", "failure"]))
    decisions = {
        "whole": written,
        "other": draw(workflows(max_steps=5)),
        "error": UNREADABLE,
        "failure": WorkerError("It broke.", kind="status"),
    }
    return drafts, decisions[end]


def plain(trace: Trace) -> Any:
    """What a question's answer is, whenever its steps ran."""
    spans = [
        (span.position, span.worker, span.status, span.response, span.messages)
        for span in trace.rounds[-1].spans
    ]
    return trace.answer, trace.status, spans


@given(writing=writings(), seconds=st.tuples(*[st.sampled_from([0.0, 0.002, 0.01])] * 5))
def test_a_plan_in_parts_gives_the_answer_of_a_whole_one(writing: Any, seconds: tuple[float, ...]) -> None:
    drafts, decision = writing

    def ask(overlap: bool) -> tuple[Trace, Pool]:
        async def answer() -> tuple[Trace, Pool]:
            workers = pool(*seconds)
            runner = Runner(SlowPlanner(drafts, decision), workers, overlap=overlap, plan_fallback="worker-1")
            return await runner.answer(QUESTION, seed="1"), workers

        return asyncio.run(answer())

    (early, workers), (late, others) = ask(True), ask(False)
    assert early.answer == late.answer
    needed = {span.position for span in late.rounds[-1].spans if span.status != "skipped"}
    assert [row for row in plain(early)[2] if row[0] in needed] == [
        row for row in plain(late)[2] if row[0] in needed
    ]
    assert_paid_once(early, workers, 0.01)
    assert_paid_once(late, others, 0.01)


@given(writing=writings(), seconds=st.tuples(*[st.sampled_from([0.0, 0.002, 0.01])] * 5))
def test_only_the_answer_is_streamed(writing: Any, seconds: tuple[float, ...]) -> None:
    drafts, decision = writing
    texts: list[StepText] = []

    async def answer() -> Trace:
        runner = Runner(SlowPlanner(drafts, decision), pool(*seconds), overlap=True, plan_fallback="worker-1")
        return await runner.answer(
            QUESTION,
            streams=True,
            on_event=lambda event: texts.append(event) if isinstance(event, StepText) else None,
        )

    trace = asyncio.run(answer())
    last = len(trace.rounds[-1].spans) - 1
    assert [(text.position, text.text) for text in texts] == [(last, trace.answer)] * (last >= 0)


@given(
    writing=writings(),
    budget=st.sampled_from(
        [Budget(calls=1), Budget(calls=2), Budget(usd=0.0101), Budget(tokens=130), Budget(seconds=0.006)]
    ),
    leave_s=st.none() | st.floats(0.0, 0.012),
)
def test_streamed_steps_all_stop_and_are_paid_once_at_any_end(
    writing: Any, budget: Budget, leave_s: float | None
) -> None:
    drafts, decision = writing
    traces: list[Trace] = []

    async def answer() -> Pool:
        workers = pool(0.0, 0.003, 0.003, 0.005, 0.01)
        runner = Runner(SlowPlanner(drafts, decision), workers, overlap=True, budget=budget)
        asking = asyncio.create_task(
            runner.answer(
                QUESTION,
                on_event=lambda event: traces.extend(
                    [event.trace] if hasattr(event, "trace") and isinstance(event.trace, Trace) else []
                ),
            )
        )
        await asyncio.wait([asking], timeout=leave_s)
        asking.cancel()
        await asyncio.wait([asking])
        return workers

    workers = asyncio.run(answer())
    (trace,) = traces
    planned = sum(round_.plan.spent.cost_usd for round_ in trace.rounds)
    assert_paid_once(trace, workers, planned)


async def test_a_step_that_the_plan_does_not_keep_is_in_the_trace() -> None:
    workers = pool(0.0, 10.0)
    drafts = [(Step(0, "Draft."),), (Step(0, "Draft."), Step(1, "Wait."))]
    decision = Workflow((Step(0, "Solve."),))
    events: list[Event] = []
    trace = await Runner(SlowPlanner(drafts, decision), workers, overlap=True).answer(
        QUESTION, on_event=events.append
    )
    (round_,) = trace.rounds
    assert [(span.subtask, span.status) for span in round_.abandoned] == [
        ("Draft.", "done"),
        ("Wait.", "cancelled"),
    ]
    assert [span.subtask for span in round_.spans] == ["Solve."]
    assert_paid_once(trace, workers, 0.01)
    first_step = next(
        place for place, event in enumerate(events) if isinstance(event, StepStarted | StepEnded)
    )
    assert isinstance(events[first_step - 1], PlanReady)


class Lingering(Metered):
    """A worker that takes a while to stop once it is cancelled."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(name, seconds)
        self.is_stopping = asyncio.Event()

    async def answer(self, request: Request) -> Reply:
        try:
            return await super().answer(request)
        except asyncio.CancelledError:
            self.is_stopping.set()
            await asyncio.sleep(0.1)
            raise


@pytest.mark.parametrize("seconds", [0.03, 0.2])
@pytest.mark.parametrize("third", ["Old.", "New."])
async def test_no_step_of_an_old_draft_starts_while_others_are_cancelled(third: str, seconds: float) -> None:
    workers = Pool([Metered("worker-0", seconds / 2), Lingering("worker-1", 10.0)])
    old = (Step(0, "First."), Step(1, "Unneeded."), Step(0, "Old.", Access(steps=(0,))))
    reads = (0,) if third == "Old." else (0, 2)
    new = Workflow((*old[:2], Step(0, third, Access(steps=(0,))), Step(0, "Last.", Access(steps=reads))))
    trace = await Runner(SlowPlanner([old], new), workers, overlap=True).answer(QUESTION)
    unneeded = "skipped" if third == "Old." else "done"
    assert [span.status for span in trace.spans] == ["done", "cancelled", unneeded, "done"]
    assert trace.rounds[0].abandoned == ()
    assert_paid_once(trace, workers, 0.01)


@pytest.mark.parametrize("overlap", [True, False])
async def test_planner_error_is_raised_unchanged_and_stops_streamed_steps(overlap: bool) -> None:
    workers = pool(10.0)
    planner = SlowPlanner([(Step(0, "Draft."),)], UsageError("The prompt is too long."))
    with pytest.raises(UsageError, match="too long"):
        await Runner(planner, workers, overlap=overlap).answer(QUESTION)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [worker.running for worker in workers if isinstance(worker, Metered)] == [0]


class Buggy(Metered):
    async def answer(self, request: Request) -> Reply:
        await super().answer(request)
        raise ZeroDivisionError


@pytest.mark.parametrize("seconds", [0.0, 0.1])
async def test_bug_in_an_early_step_is_raised_as_it_is(seconds: float) -> None:
    """Also if the step ends after the plan."""
    steps = (Step(0, "First."), Step(1, "Wait."), Step(1, "Last.", Access(all=True)))
    workers = Pool([Buggy("worker-0", seconds), Metered("worker-1", 10.0)])
    with pytest.raises(ZeroDivisionError):
        await Runner(SlowPlanner([steps[:2]], Workflow(steps), 0.05), workers, overlap=True).answer(QUESTION)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_early_step_is_cut_off_once_the_time_of_its_question_is_up() -> None:
    steps = (Step(0, "First."), Step(1, "Wait."), Step(1, "Last.", Access(all=True)))
    workers, budget = pool(0.0, 10.0), Budget(seconds=1.0)
    planner = SlowPlanner([steps[:2]], Workflow(steps), 0.02)
    trace = await Runner(planner, workers, overlap=True, budget=budget).answer(QUESTION)
    assert [(span.status, span.error) for span in trace.spans] == [
        ("done", None),
        ("cancelled", "The time limit of 1 s was reached."),
        ("refused", "The time limit of 1 s was reached."),
    ]
    assert_paid_once(trace, workers, 0.01)


async def test_question_cancelled_while_steps_are_stopped_keeps_the_others() -> None:
    workers = Pool([Metered("worker-0", 0.0), lingering := Lingering("worker-1", 10.0)])
    draft, events = (Step(0, "First."), Step(1, "Unneeded.")), list[Event]()
    decision = Workflow((draft[0], Step(0, "Last.", Access(all=True))))
    runner = Runner(SlowPlanner([draft], decision, 0.02), workers, overlap=True)
    asking = asyncio.create_task(runner.answer(QUESTION, on_event=events.append))
    await lingering.is_stopping.wait()
    asking.cancel()
    await asyncio.wait([asking])
    (trace,) = [event.trace for event in events if isinstance(event, QuestionEnded)]
    assert [span.status for span in trace.rounds[0].abandoned] == ["cancelled"]
    assert [span.status for span in trace.rounds[0].spans] == ["done", "cancelled"]
    assert_paid_once(trace, workers, 0.01)


async def test_a_step_that_nothing_reads_is_cancelled_in_its_place() -> None:
    workers = pool(0.0, 10.0)
    steps = (Step(1, "Nobody reads this."), Step(0, "Solve."))
    trace = await Runner(SlowPlanner([steps[:1]], Workflow(steps)), workers, overlap=True).answer(QUESTION)
    assert [span.status for span in trace.spans] == ["cancelled", "done"]
    assert trace.status == "ok"
    assert_paid_once(trace, workers, 0.01)


async def test_a_model_held_to_a_schema_starts_its_first_step_early() -> None:
    written = {
        "thought": "two",
        "steps": [
            {"worker": "a", "subtask": "Solve it.", "sees": []},
            {
                "worker": "b",
                "subtask": "Check all of it, and then write the whole answer anew. " * 6,
                "sees": [0],
            },
        ],
    }

    def model(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        schema = body["response_format"]["json_schema"]["schema"]
        if "steps" in json.dumps(schema):
            return Answer(json.dumps(written))
        probed = schema["properties"].items()
        return Answer(
            json.dumps({key: value["enum"][-1] if "enum" in value else "x" for key, value in probed})
        )

    table = ConductorSettings(base_url="http://unused", model="m")
    workers = Pool([ScriptedWorker("a", {"": "Answer: 4"}), ScriptedWorker("b", {"": "Answer: 4"})])
    async with FaultServer(model, rules=[Rule(fault=SlowDrip(seconds=0.01))]) as server:
        table = table.model_copy(update={"base_url": server.url})
        endpoint = build_endpoint(table, workers)
        planner = make_worker_conductor(endpoint, table)
        runner = Runner(planner, workers, overlap=True, call_state=CallState())
        for asked in ("first", "second"):
            trace = await runner.answer(replace_text(asked))
            first, last = trace.rounds[0].spans
            assert trace.answer == "Answer: 4"
            assert first.ended_s < trace.rounds[0].plan.seconds < last.started_s
        late = await replace(runner, overlap=False).answer(replace_text("third"))
        await endpoint.close()
    assert late.rounds[0].spans[0].started_s >= late.rounds[0].plan.seconds
    assert late.cost_usd == trace.cost_usd


def replace_text(text: str) -> Question:
    return Question(text=text)
