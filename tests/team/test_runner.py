import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from full_disk_limit import full_disk_limit
from podium.calls import CallState
from podium.errors import StoreError, UsageError, WorkerError
from podium.executor import StepEnded, StepStarted
from podium.planners.planner import EarlierRound, Planner, PlanRequest
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.team import Event, PlanReady, QuestionEnded, RoundEnded, Runner, TraceStoreError
from podium.trace import Plan, Reply, Trace
from podium.types import Budget, Limits, Price, Profile, Question, Receipt, Spent, Usage
from podium.workers.base import Request
from podium.workers.calculator import NO_EXPRESSION, CalculatorWorker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.view import read_view
from podium.workflow import Acceptance, Access, PlanError, Step, Workflow

QUESTION = Question(text="What is 2 + 2?")
BROKEN = WorkerError("It broke.", kind="status")
UNREADABLE = PlanError("missing_list", "Expected model_id.")
CHAIN = Workflow((Step(0, "Add."), Step(1, "Check.", Access(all=True))))
SINGLE = Workflow((Step(0, "Add."),))


class ScriptedPlanner(Planner):
    """Plans written down beforehand; keeps what it was told."""

    name = "script"

    def __init__(
        self,
        *decisions: Workflow | Acceptance | PlanError | WorkerError,
        delays: Sequence[float] = (),
        usage: Usage = Usage(),
        cost_usd: float = 0.0,
    ) -> None:
        self.situations: list[PlanRequest] = []
        self._decisions = decisions
        self._delays = delays
        self._usage = usage
        self._cost_usd = cost_usd

    async def plan(self, request: PlanRequest) -> Plan:
        number = len(self.situations)
        self.situations.append(request)
        if number < len(self._delays):
            await asyncio.sleep(self._delays[number])
        decision = self._decisions[number]
        if isinstance(decision, WorkerError):
            raise decision
        spent = Spent(self._usage, self._cost_usd)
        request.ledger.charge(spent)
        return Plan(f"plan {number}", decision, spent)


def pool(a: Sequence[str | WorkerError], b: Sequence[str | WorkerError] = (), delay: float = 0.0) -> Pool:
    return Pool([ScriptedWorker("a", a), ScriptedWorker("b", b, delay=delay)])


async def test_the_last_step_answers_and_the_trace_records_all():
    planner = ScriptedPlanner(CHAIN, usage=Usage(input_tokens=100, output_tokens=10), cost_usd=0.25)
    trace = await Runner(planner, pool(["4"], ["It is 4."])).answer(QUESTION, seed="9", trace_id="f" * 32)
    assert (trace.status, trace.answer, trace.error) == ("ok", "It is 4.", None)
    assert (trace.id, trace.planner, trace.seed) == ("f" * 32, "script", "9")
    assert [profile.name for profile in trace.pool] == ["a", "b"]
    assert trace.versions.keys() == {"podium", "python"}
    (round_,) = trace.rounds
    assert (round_.plan.text, round_.workflow, round_.response) == ("plan 0", CHAIN, "It is 4.")
    assert trace.calls == 2
    assert trace.usage.tokens == 110 + sum(span.usage.tokens for span in trace.spans)
    assert trace.cost_usd == 0.25
    assert read_view(trace.spans[1].messages).earlier[0].response == "4"
    assert planner.situations == [PlanRequest(QUESTION, trace.pool, seed="9/0/plan")]
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


async def test_runner_gives_each_question_a_new_trace_id():
    runner = Runner(ScriptedPlanner(SINGLE, SINGLE), pool(["4", "4"]))
    ids = {(await runner.answer(QUESTION)).id for _ in range(2)}
    assert len(ids) == 2
    assert all(len(id_) == 32 and int(id_, 16) for id_ in ids)


@dataclass(frozen=True)
class PaysItself(Planner):
    """A planner that calls a model of its own, whose cost it counts in the ledger, or only reports."""

    counts: bool = True
    name: str = "own"

    async def plan(self, request: PlanRequest) -> Plan:
        spent = Spent(Usage(input_tokens=30, output_tokens=10), 0.25)
        if self.counts:
            request.ledger.charge(spent)
        return Plan("own", SINGLE, spent)


async def test_dollars_that_a_planner_counts_and_reports_are_charged_once():
    limit = SharedSpendLimit(None, "run", 1.0)
    receipt = Receipt()
    runner = Runner(PaysItself(), pool(["4"]), call_state=CallState(spend_limits=[limit]))
    await runner.write_plan(QUESTION, receipt=receipt)
    assert limit.spent_usd == pytest.approx(0.25)
    assert receipt.spent == Spent(Usage(input_tokens=30, output_tokens=10), pytest.approx(0.25))


async def test_planner_that_reports_dollars_without_counting_them_is_a_bug():
    with pytest.raises(RuntimeError, match="own paid without the ledger"):
        await Runner(PaysItself(counts=False), pool(["4"])).answer(QUESTION)


async def test_after_a_plan_that_broke_the_budget_no_worker_is_called():
    trace = await Runner(PaysItself(), pool(["4"]), budget=Budget(usd=0.2)).answer(QUESTION)
    assert (trace.answer, trace.cost_usd, trace.spans[0].status) == (None, 0.25, "refused")


async def test_an_empty_question_is_refused_before_anything_starts():
    planner = ScriptedPlanner(SINGLE)
    with pytest.raises(UsageError, match="question is empty"):
        await Runner(planner, pool(["4"])).answer(Question(text=" \n"))
    assert planner.situations == []


async def test_a_plan_alone_is_checked_and_timed_as_one_that_runs():
    nobody = await Runner(ScriptedPlanner(Workflow((Step(9, "Add."),))), pool(["4"])).write_plan(QUESTION)
    assert isinstance(nobody.decision, PlanError)
    slow = Runner(ScriptedPlanner(SINGLE, delays=[5]), pool(["4"]), budget=Budget(seconds=0.05))
    late = (await slow.write_plan(QUESTION)).decision
    assert isinstance(late, PlanError)
    assert late.kind == "time_is_up"
    with pytest.raises(WorkerError, match="It broke"):
        await Runner(ScriptedPlanner(BROKEN), pool(["4"])).write_plan(QUESTION)


async def test_when_the_last_step_fails_the_latest_that_succeeded_answers():
    trace = await Runner(ScriptedPlanner(CHAIN), pool(["4"], [BROKEN])).answer(QUESTION)
    assert (trace.status, trace.answer) == ("degraded", "4")
    assert trace.error == "The last step did not succeed (b: It broke.); step 0 is the latest that did."


async def test_previous_step_answers_if_the_last_tool_has_no_result():
    workers = Pool([ScriptedWorker("a", ["Four, I think."]), CalculatorWorker()])
    chain = Workflow((Step(0, "Add."), Step(1, "Work it out.", Access(steps=(0,)))))
    trace = await Runner(ScriptedPlanner(chain), workers).answer(QUESTION)
    assert (trace.status, trace.answer) == ("degraded", "Four, I think.")
    assert (trace.error or "").startswith("The last step's tool has no result (There is no result: ")
    none = Workflow((Step(1, "Work it out."), Step(1, "Work it out.", Access(steps=(0,)))))
    question = Question(text="What is the sum?")
    nothing = await Runner(ScriptedPlanner(none), workers).answer(question)
    assert (nothing.status, nothing.answer) == ("degraded", NO_EXPRESSION)
    assert nothing.error == f"No step has a result. {NO_EXPRESSION}"


async def test_a_step_that_fails_on_the_way_does_not_degrade_the_answer():
    trace = await Runner(ScriptedPlanner(CHAIN), pool([BROKEN], ["4"])).answer(QUESTION)
    assert (trace.status, trace.answer) == ("ok", "4")
    assert [span.status for span in trace.spans] == ["failed", "done"]


async def test_when_no_step_succeeds_the_error_names_what_failed():
    trace = await Runner(ScriptedPlanner(CHAIN), pool([BROKEN], [BROKEN])).answer(QUESTION)
    assert (trace.status, trace.answer) == ("failed", None)
    assert trace.error == "No step succeeded. Step 0: a: It broke. Step 1: b: It broke."


async def test_a_plan_that_cannot_be_read_fails_the_question():
    trace = await Runner(ScriptedPlanner(UNREADABLE), pool(["4"])).answer(QUESTION)
    assert (trace.status, trace.answer) == ("failed", None)
    assert trace.error == "There is no plan to run. Expected model_id."
    (round_,) = trace.rounds
    assert (str(round_.error), round_.error_kind) == ("Expected model_id.", "missing_list")
    assert (round_.workflow, trace.calls) == (None, 0)


async def test_unreachable_planner_fails_the_question_with_its_error_kind():
    trace = await Runner(ScriptedPlanner(BROKEN), pool(["4"])).answer(QUESTION)
    assert (trace.status, trace.error) == ("failed", "There is no plan to run. script: It broke.")
    assert trace.rounds[0].error_kind == "planner_failed"


@pytest.mark.parametrize(
    ("decision", "part"),
    [
        (Workflow((Step(2, "Add."),)), "2"),
        (Workflow((Step(0, "Add.", Access(steps=(0,))),)), "0"),
        (Workflow(()), "step"),
        (Acceptance(), "nothing"),
    ],
)
async def test_workflow_of_a_planner_without_parser_is_checked_too(decision, part):
    trace = await Runner(ScriptedPlanner(decision), pool(["4"])).answer(QUESTION)
    assert trace.status == "failed"
    assert part in str(trace.rounds[0].error) or part in trace.rounds[0].error_kind
    assert trace.calls == 0


async def test_a_second_round_sees_the_first_and_replaces_its_answer():
    second = Workflow((Step(1, "Mend.", Access(previous=True)), Step(1, "Alone.")))
    planner = ScriptedPlanner(SINGLE, second)
    workers = pool(["5"], ["It is 4."])
    trace = await Runner(planner, workers, budget=Budget(rounds=2)).answer(QUESTION)
    assert (trace.status, trace.answer) == ("ok", "It is 4.")
    assert planner.situations[1].earlier_rounds == (EarlierRound(SINGLE, "5", responses=("5",)),)
    assert [round_.response for round_ in trace.rounds] == ["5", "It is 4."]
    # "Mend." is dead, so only "Alone." ran, and saw nothing of the round before.
    mend, alone = trace.rounds[1].spans
    assert (mend.status, read_view(alone.messages).previous) == ("skipped", None)


@pytest.mark.parametrize("access", [Access(previous=True), Access(all=True)])
async def test_a_step_with_access_sees_the_response_of_the_round_before(access):
    planner = ScriptedPlanner(CHAIN, Workflow((Step(0, "Mend.", access),)))
    workers = pool(["4", "It is 4."], [BROKEN])
    trace = await Runner(planner, workers, budget=Budget(rounds=2)).answer(QUESTION)
    assert read_view(trace.rounds[1].spans[0].messages).previous == "4"
    assert (trace.status, trace.answer) == ("ok", "It is 4.")


async def test_acceptance_ends_the_rounds_and_keeps_the_answer():
    planner = ScriptedPlanner(SINGLE, Acceptance(), SINGLE)
    trace = await Runner(planner, pool(["4"]), budget=Budget(rounds=5)).answer(QUESTION)
    assert (trace.status, trace.answer) == ("ok", "4")
    assert [round_.accepted for round_ in trace.rounds] == [False, True]


@pytest.mark.parametrize("second", [UNREADABLE, BROKEN, CHAIN])
async def test_a_later_round_that_comes_to_nothing_keeps_the_answer(second):
    trace = await Runner(
        ScriptedPlanner(SINGLE, second), pool(["4", BROKEN], [BROKEN]), budget=Budget(rounds=2)
    ).answer(QUESTION)
    assert (trace.status, trace.answer) == ("degraded", "4")
    assert trace.error is not None
    assert trace.error.endswith(" The answer is that of an earlier round.")


async def test_no_round_is_planned_when_no_call_is_left():
    planner = ScriptedPlanner(SINGLE, SINGLE)
    trace = await Runner(planner, pool(["4"]), budget=Budget(rounds=2, calls=1)).answer(QUESTION)
    assert (trace.status, trace.answer, len(planner.situations)) == ("ok", "4", 1)


async def test_question_fails_if_planning_uses_up_the_time_limit():
    planner = ScriptedPlanner(SINGLE, delays=[5.0])
    trace = await Runner(planner, pool(["4"]), budget=Budget(seconds=0.05)).answer(QUESTION)
    assert (trace.status, trace.error) == (
        "failed",
        "There is no plan to run. The time limit of 0.05 s was reached.",
    )
    assert trace.rounds[0].error_kind == "time_is_up"


async def test_finished_step_answers_when_the_time_limit_is_reached():
    trace = await Runner(
        ScriptedPlanner(CHAIN), pool(["4"], ["It is 4."], delay=5.0), budget=Budget(seconds=0.2)
    ).answer(QUESTION)
    assert (trace.status, trace.answer) == ("degraded", "4")
    assert trace.spans[1].status == "cancelled"


@pytest.mark.parametrize("planner", [ScriptedPlanner(CHAIN), ScriptedPlanner(CHAIN, delays=[5.0])])
async def test_a_caller_that_goes_away_leaves_nothing_running_but_a_trace(planner):
    events: list[Event] = []
    runner = Runner(planner, pool(["4"], ["It is 4."], delay=5.0))
    task = asyncio.create_task(runner.answer(QUESTION, on_event=events.append))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    ended = events[-1]
    assert isinstance(ended, QuestionEnded)
    assert (ended.trace.status, ended.trace.error) == ("cancelled", "The question was cancelled.")
    assert [span.status for span in ended.trace.spans] in ([], ["done", "cancelled"])


async def test_events_tell_the_story_in_order():
    events: list[Event] = []
    planner = ScriptedPlanner(SINGLE, Acceptance())
    runner = Runner(planner, pool(["4"]), budget=Budget(rounds=2))
    trace = await runner.answer(QUESTION, on_event=events.append)
    kinds = [PlanReady, StepStarted, StepEnded, RoundEnded, PlanReady, RoundEnded, QuestionEnded]
    assert [type(event) for event in events] == kinds
    assert events[-1] == QuestionEnded(trace)
    assert events[2] == StepEnded(0, trace.spans[0])


async def test_one_seed_gives_one_trace_up_to_times():
    def story(trace: Trace) -> list[object]:
        return [(span.messages, span.response, span.usage) for span in trace.spans]

    traces = [
        await Runner(ScriptedPlanner(CHAIN), pool(["4"], ["It is 4."])).answer(QUESTION, seed=seed)
        for seed in ("1", "1", "2")
    ]
    assert story(traces[0]) == story(traces[1])
    assert story(traces[0]) != story(traces[2])  # Another mark on the fences.


class Counting(ScriptedWorker):
    """Counts how many calls are in flight at once, at most."""

    most = now = 0

    async def answer(self, request: Request) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().answer(request)
        finally:
            self.now -= 1


@pytest.mark.parametrize("concurrency", [1, 2, 4])
async def test_questions_share_the_limits_of_a_worker(concurrency: int):
    worker = Counting("a", {"": "4"}, delay=0.01, limits=Limits(concurrency=concurrency))
    runner = Runner(ScriptedPlanner(*[SINGLE] * 8), Pool([worker]))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(runner.answer(QUESTION)) for _ in range(8)]
    assert {task.result().answer for task in tasks} == {"4"}
    assert worker.most == concurrency


PAID = Pool(
    [ScriptedWorker(name, {"": "4"}, profile=Profile(name=name, price=Price(output=1.0))) for name in "ab"]
)


async def test_an_unwritable_limit_ends_the_question_and_its_trace_is_sent(tmp_path):
    told = []
    with full_disk_limit(tmp_path / "state.sqlite") as limit:
        runner = Runner(ScriptedPlanner(SINGLE), PAID, call_state=CallState(spend_limits=[limit]))
        with pytest.raises(StoreError, match="disk full"):
            await runner.answer(QUESTION, on_event=told.append)
    assert isinstance(told[-1], QuestionEnded)
    assert told[-1].trace.status == "failed"
    assert "disk full" in told[-1].trace.error


async def test_spend_limit_error_carries_the_trace_with_earlier_payments(tmp_path):
    with full_disk_limit(tmp_path / "state.sqlite", after_first=True) as limit:
        runner = Runner(ScriptedPlanner(CHAIN), PAID, call_state=CallState(spend_limits=[limit]))
        with pytest.raises(TraceStoreError, match="disk full") as failure:
            await runner.answer(QUESTION)
        trace = failure.value.trace
        assert 0 < limit.spent_usd == pytest.approx(trace.cost_usd)
    assert (trace.answer, trace.status) == ("4", "degraded")
    assert "disk full" in trace.error
