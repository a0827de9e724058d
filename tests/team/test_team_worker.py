"""Whole teams as workers: pools within pools, each with a planner of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.errors import ConfigError, WorkerError
from podium.executor import ExecutionSettings, StepText
from podium.planners.planner import Planner, PlanRequest
from podium.team import Event, Runner
from podium.team.team_file import open_pool
from podium.team.team_worker import TeamWorker
from podium.trace import Plan
from podium.types import Budget, Limits, Message, Price, Profile, Question, Spent, ToolCall, Usage
from podium.workers import Pool, Reply, Request, ScriptedWorker, Worker
from podium.workers.build import UnavailableWorker
from podium.workflow import Access, Step, Workflow
from podium_testing import FaultServer
from tiny_policy import BRIEF, write_policy

INNER = """
[[worker]]
name = "ada"
kind = "scripted"
replies = { "" = "Answer: 5" }
price = { input = 1.0, output = 2.0 }

[[worker]]
name = "bob"
kind = "scripted"
replies = { "" = "Right.\\nAnswer: 5" }
price = { input = 3.0, output = 6.0 }
"""
PLAN = """
model_id = [0, 1]
subtasks = ["Add the numbers.", "Check the sum."]
access_list = [[], ["all"]]
"""
QUESTION = Question(text="The sum of 2 and 3?")
ASKED = Request((Message(role="user", content="The sum of 2 and 3?"),), seed="s")


def team(keys: str = 'plan.planner = "single:ada"', *, name: str = "team", pool: str = "inner.toml") -> str:
    return f'[[worker]]\nname = "{name}"\nkind = "podium"\npool = "{pool}"\n{keys}\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "inner.toml").write_text(INNER)
    (tmp_path / "plan.txt").write_text(PLAN)
    (tmp_path / "outer.toml").write_text(team())
    return tmp_path


class StepsPlanner(Planner):
    """One plan, which costs something."""

    name = "constant"

    def __init__(self, *steps: Step, usage: Usage = Usage(), cost_usd: float = 0.0) -> None:
        self.situations: list[PlanRequest] = []
        self._plan = Plan("the plan", Workflow(steps), Spent(usage, cost_usd))

    async def plan(self, plan_request: PlanRequest) -> Plan:
        self.situations.append(plan_request)
        plan_request.ledger.charge(self._plan.spent)
        return self._plan


class Priced(ScriptedWorker):
    """Says what each reply cost."""

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        return Reply(reply.text, Usage(input_tokens=10, output_tokens=5), cost_usd=0.25)


def led(
    workers: Sequence[Worker],
    planner: Planner | None = None,
    *,
    budget: Budget = Budget(),
    **settings: Limits,
) -> TeamWorker:
    planner = planner or StepsPlanner(Step(0, "Add."))
    return TeamWorker(Profile(name="team"), Runner(planner, Pool(workers), budget=budget), **settings)


async def test_a_teams_reply_has_its_trace_and_its_cost() -> None:
    planner = StepsPlanner(Step(0, "Add."), usage=Usage(input_tokens=100, output_tokens=10), cost_usd=0.5)
    reply = await led([Priced("ada", ["5"])], planner).answer(ASKED)
    assert reply.nested is not None
    assert (reply.text, reply.nested.answer, reply.nested.status) == ("5", "5", "ok")
    assert reply.usage == Usage(input_tokens=110, output_tokens=15) == reply.nested.usage
    assert reply.cost(Profile(name="team")) == reply.cost_usd == 0.75
    assert reply.nested.question == QUESTION
    assert reply.latency_s is None


async def test_team_worker_passes_earlier_messages_as_history() -> None:
    planner = StepsPlanner(Step(0, "Add."))
    past = (Message(role="system", content="Be brief."), Message(role="user", content="Hello"))
    past += (Message(role="assistant", content="Hi."),)
    reply = await led([ScriptedWorker("ada", ["5"])], planner).answer(
        Request((*past, Message(role="user", content="And 2 + 3?")), seed="s", sample=3)
    )
    assert reply.nested is not None
    assert reply.nested.question == Question(text="And 2 + 3?", history=past)
    assert planner.situations[0].question.history == past


async def test_team_worker_keeps_tool_messages_after_the_last_question() -> None:
    call = ToolCall(id="c", name="weather", arguments="{}")
    question = Message(role="user", content="How is the weather?", images=("https://example.com/sky.png",))
    called = (
        question,
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="sunny", tool_call_id="c"),
    )
    house = Message(role="system", content="Be brief.")
    for messages, history, images in ((called, called, ()), ((question, house), (house,), question.images)):
        planner = StepsPlanner(Step(0, "Answer."))
        await led([ScriptedWorker("ada", ["Sun."])], planner).answer(Request(messages, seed="s"))
        asked = Question(text="How is the weather?", history=history, images=images)
        assert planner.situations[0].question == asked


async def test_an_outer_trace_holds_the_inner_one_and_pays_for_it_once(place: Path) -> None:
    (place / "outer.toml").write_text(team('plan.planner = "constant:plan.txt"'))
    pool = open_pool(str(place / "outer.toml"))
    trace = await Runner(StepsPlanner(Step(0, "Solve it.")), pool).answer(QUESTION, seed="9")
    (span,) = trace.spans
    assert (trace.status, trace.answer) == ("ok", "Right.\nAnswer: 5")
    assert span.nested is not None
    assert [inner.worker for inner in span.nested.spans] == ["ada", "bob"]
    assert span.nested.question.text == span.messages[-1].content
    assert trace.cost_usd == span.nested.cost_usd > 0
    assert trace.usage == span.nested.usage
    assert trace.calls == 1
    assert type(trace).model_validate_json(trace.model_dump_json()) == trace


@pytest.mark.parametrize(("keys", "asked"), [("", 3), ("plan.early_stop = true", 2)])
async def test_a_team_s_votes_may_stop_early(place: Path, keys: str, asked: int) -> None:
    (place / "inner.toml").write_text(f'{INNER}\n[[worker]]\nname = "vote"\nkind = "vote"\n')
    (place / "outer.toml").write_text(team(f'plan.planner = "self-consistency:ada:3"\n{keys}'))
    pool = open_pool(str(place / "outer.toml"))
    reply = await pool[0].answer(ASKED)
    assert reply.nested is not None
    assert [span.worker for span in reply.nested.spans if span.called] == ["ada"] * asked + ["vote"]


async def test_team_worker_gives_the_same_messages_for_the_same_seed(place: Path) -> None:
    pool = open_pool(str(place / "outer.toml"))
    stories = []
    for seed in ("1", "1", "2"):
        trace = await Runner(StepsPlanner(Step(0, "Solve it.")), pool).answer(QUESTION, seed=seed)
        assert trace.spans[0].nested is not None
        stories.append([span.messages for span in trace.spans[0].nested.spans])
    assert stories[0] == stories[1] != stories[2]


async def test_team_latency_is_the_latency_of_its_slowest_chain() -> None:
    class Claims(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            return Reply("5", Usage(), latency_s=3.0)

    planner = StepsPlanner(Step(0, "Add."), Step(1, "Check.", Access(all=True)))
    reply = await led([Claims("ada", []), Claims("bob", [])], planner).answer(ASKED)
    assert reply.latency_s == 6.0


async def test_team_worker_without_an_answer_fails_and_names_the_failed_steps() -> None:
    broken = WorkerError("It broke.", kind="status")
    with pytest.raises(WorkerError) as caught:
        await led([ScriptedWorker("ada", [broken])]).answer(ASKED)
    assert str(caught.value) == "The team has no answer. No step succeeded. Step 0: ada: It broke."
    assert (caught.value.kind, caught.value.retryable) == ("exhausted", False)


@pytest.mark.parametrize(
    "messages", [(), (Message(role="system", content="Be brief."),), (Message(role="user", content=" "),)]
)
async def test_a_call_of_a_team_without_a_question_fails(messages: tuple[Message, ...]) -> None:
    with pytest.raises(WorkerError, match=r"The team (cannot take|needs a message)") as caught:
        await led([ScriptedWorker("ada", ["5"])]).answer(Request(messages, seed="s"))
    assert caught.value.kind == "protocol"


async def test_a_cancelled_call_cancels_the_whole_team() -> None:
    begun = asyncio.Event()

    class Begins(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            begun.set()
            return await super().answer(request)

    inner = led([Begins("ada", ["5"], delay=600.0)])
    outer = Runner(StepsPlanner(Step(0, "Solve it.")), Pool([led([inner])]))
    task = asyncio.create_task(outer.answer(QUESTION))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_team_worker_stops_before_its_call_timeout_and_keeps_answers(place: Path) -> None:
    slow = INNER.replace('name = "bob"\nkind = "scripted"', 'name = "bob"\nkind = "scripted"\ndelay = 600.0')
    (place / "inner.toml").write_text(slow)
    (place / "outer.toml").write_text(team('plan.planner = "constant:plan.txt"\nlimits = { timeout = 2.0 }'))
    pool = open_pool(str(place / "outer.toml"))
    trace = await Runner(StepsPlanner(Step(0, "Solve it.")), pool).answer(QUESTION)
    (span,) = trace.spans
    assert (trace.status, trace.answer) == ("ok", "Answer: 5")
    assert span.nested is not None
    assert (span.nested.status, span.nested.spans[1].status) == ("degraded", "cancelled")
    assert len(span.attempts) == 1


async def test_max_usd_of_a_team_worker_is_its_inner_budget(place: Path) -> None:
    (place / "outer.toml").write_text(team('plan.planner = "single:bob"\nlimits = { max_usd = 0.0001 }'))
    pool = open_pool(str(place / "outer.toml"))
    trace = await Runner(StepsPlanner(Step(0, "Solve it.")), pool).answer(QUESTION)
    assert trace.status == "failed"
    assert "The team has no answer." in (trace.error or "")
    assert "$0.0001" in (trace.error or "")


async def test_a_budget_holds_back_as_much_as_a_team_may_cost() -> None:
    worker = led([Priced("ada", {"": "5"})], limits=Limits(retries=0, max_usd=0.3))
    planner = StepsPlanner(*(Step(0, "Solve it.") for _ in range(3)))
    runner = Runner(
        planner, Pool([worker]), budget=Budget(usd=0.35), settings=ExecutionSettings(run_all=True)
    )
    trace = await runner.answer(QUESTION)
    assert sorted(span.status for span in trace.spans) == ["done", "refused", "refused"]
    assert trace.cost_usd == 0.25


async def test_a_piece_of_text_comes_through_as_it_is_written() -> None:
    class Speaks(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            for piece in ("It ", "is 5."):
                if request.on_text is not None:
                    request.on_text(piece)
            return Reply("It is 5.", Usage())

    heard: list[Event] = []
    outer = Runner(StepsPlanner(Step(0, "Solve it.")), Pool([led([Speaks("ada", [])])]))
    await outer.answer(QUESTION, on_event=heard.append, streams=True)
    assert "".join(event.text for event in heard if isinstance(event, StepText)) == "It is 5."


@pytest.mark.parametrize(
    ("tries", "passed_on"),
    [
        (("Hello ", "Hello world."), "Hello world."),
        (("Hello ", "Good day."), "Hello "),
        (("Hello ", "Hell", "Hello you."), "Hello you."),
    ],
)
async def test_text_of_an_inner_retry_is_passed_on_only_where_it_goes_on(
    tries: tuple[str, ...], passed_on: str
) -> None:
    class BreaksOff(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            text = tries[len(self.requests)]
            for piece in text:
                if request.on_text is not None:
                    request.on_text(piece)
            return await super().answer(request)

    broken = WorkerError("It broke off.", kind="connection", retryable=True)
    speaker = BreaksOff("ada", [*[broken] * (len(tries) - 1), tries[-1]], limits=Limits(retries=3))
    planner, quick = StepsPlanner(Step(0, "Greet.")), ExecutionSettings(first_wait_s=0.001)
    inner = TeamWorker(Profile(name="team"), Runner(planner, Pool([speaker]), settings=quick))
    heard: list[Event] = []
    trace = await Runner(planner, Pool([inner])).answer(QUESTION, on_event=heard.append, streams=True)
    assert trace.answer == tries[-1]
    assert "".join(event.text for event in heard if isinstance(event, StepText)) == passed_on


def test_a_shipped_pool_named_by_a_team_is_found_from_any_folder(place: Path) -> None:
    (place / "outer.toml").write_text(team('plan.planner = "random"', pool="ollama"))
    (worker,) = open_pool(str(place / "outer.toml"))
    assert isinstance(worker, TeamWorker)
    assert worker.runner.pool.names == open_pool("ollama").names


def test_the_first_model_leads_unless_a_planner_or_conductor_is_named(place: Path) -> None:
    for keys, planner in (
        ("", "conductor:ada"),
        ('conductor.worker = "bob"', "conductor:bob"),
        ('plan.planner = "random"', "random"),
    ):
        (place / "outer.toml").write_text(team(keys))
        (worker,) = open_pool(str(place / "outer.toml"))
        assert isinstance(worker, TeamWorker)
        assert worker.runner.planner.name == planner


async def test_a_served_conductor_may_lead_and_is_paid_for(place: Path) -> None:
    async with FaultServer(PLAN) as server:
        price = "conductor.price = { input = 1000.0, output = 1000.0 }"
        keys = f'conductor.base_url = "{server.url}"\nconductor.model = "m"\n{price}'
        (place / "outer.toml").write_text(team(keys))
        pool = open_pool(str(place / "outer.toml"))
        (worker,) = pool
        reply = await worker.answer(ASKED)
        await pool.close()
        await pool.close()
    assert len(server.requests) == 7  # Six probes of a server that obeys no format, and the plan.
    assert reply.nested is not None
    assert [span.worker for span in reply.nested.spans] == ["ada", "bob"]
    assert reply.cost_usd == reply.nested.cost_usd > reply.nested.rounds[0].plan.spent.cost_usd > 0


async def test_closing_a_team_gives_back_the_connections_of_its_workers(place: Path) -> None:
    async with FaultServer("Answer: 5") as server:
        (place / "inner.toml").write_text(
            f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{server.url}"\n'
        )
        pool = open_pool(str(place / "outer.toml"))
        assert (await pool[0].answer(ASKED)).text == "Answer: 5"
        assert server.connections == 1
        await pool.close()
        async with asyncio.timeout(20):
            while server.connections:  # noqa: ASYNC110 - a socket tells nobody that it is closed
                await asyncio.sleep(0.005)


def test_a_teams_answers_are_cached_by_team_and_only_if_the_file_says_so(
    place: Path,
) -> None:
    def identity(keys: str) -> str | None:
        (place / "outer.toml").write_text(team(keys))
        found = open_pool(str(place / "outer.toml"))[0].identity
        return None if found is None else json.dumps(found, sort_keys=True)

    assert identity('plan.planner = "random"') is None
    kept = identity('plan.planner = "random"\ncache = true')
    assert kept == identity('plan.planner = "random"\ncache = true')
    others = [
        'plan.planner = "single:ada"',
        'plan.planner = "random"\nbudget.rounds = 2',
        'plan.planner = "random"\nplan.max_steps = 3',
        'plan.planner = "random"\nplan.early_stop = true',
    ]
    assert len({kept, *(identity(f"{keys}\ncache = true") for keys in others)}) == 5
    (place / "inner.toml").write_text(INNER.replace('name = "bob"', 'name = "bob"\nprofile = "Checks."'))
    assert kept != identity('plan.planner = "random"\ncache = true')


def test_team_worker_plans_as_its_conductor_was_trained_by_default(
    place: Path,
) -> None:
    write_policy(place / "plain")
    write_policy(place / "trained", podium={**BRIEF, "plan": {"rounds": 2, "max_steps": 3}})

    def limits(keys: str) -> tuple[int, int]:
        (place / "outer.toml").write_text(team(keys))
        (worker,) = open_pool(str(place / "outer.toml"))
        assert isinstance(worker, TeamWorker)
        return worker.runner.budget.rounds, worker.runner.max_steps

    assert limits('conductor.checkpoint = "trained"') == (2, 3)
    assert limits('conductor.checkpoint = "trained"\nbudget.rounds = 1\nplan.max_steps = 4') == (1, 4)
    assert limits('conductor.checkpoint = "plain"') == (1, 5)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            "price = { input = 1.0 }",
            "worker.team.price: a team costs what its workers cost; leave its price out.",
        ),
        ("plan.planner = 'single:eve'", "'eve'"),
        ("plan.planner = 'constant:none.txt'", "{place}/none.txt: there is no such file; check the path."),
        ("conductor.checkpoint = 'nowhere'", "{place}/nowhere is not a folder"),
        ("conductor.checkpoint = 'plain'\nplan.cost_sensitivity = 3", "cost_sensitivity 3: "),
    ],
)
def test_a_team_that_cannot_be_opened_is_refused_in_one_sentence(
    place: Path, keys: str, sentence: str
) -> None:
    path = place / "outer.toml"
    path.write_text(team(keys))
    write_policy(place / "plain")
    with pytest.raises(ConfigError) as refused:
        open_pool(str(path))
    assert str(refused.value).startswith(f"{path}, line ")
    assert sentence.format(place=place) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_team_s_pool_that_cannot_be_used_is_refused_with_both_places(place: Path) -> None:
    path = place / "outer.toml"
    (place / "inner.toml").write_text(INNER.replace("scripted", "scriptd"))
    with pytest.raises(ConfigError) as refused:
        open_pool(str(path))
    assert str(refused.value).startswith(f"{path}, line 4: Worker 'team': {place}/inner.toml, line ")
    path.write_text(team(pool="none.toml"))
    with pytest.raises(ConfigError, match=r"none\.toml: there is no such file"):
        open_pool(str(path))


def test_pools_in_a_circle_are_refused_with_the_circle(place: Path) -> None:
    path = place / "outer.toml"
    path.write_text(team('plan.planner = "random"', pool="outer.toml"))
    with pytest.raises(ConfigError) as refused:
        open_pool(str(path))
    assert str(refused.value) == (
        f"{path}, line 4: Worker 'team': the pool contains itself: {path} -> {path}; name another pool."
    )
    (place / "sub").mkdir()
    path.write_text(team('plan.planner = "random"', pool="sub/middle.toml"))
    (place / "sub" / "middle.toml").write_text(team('plan.planner = "random"', pool="../outer.toml"))
    with pytest.raises(ConfigError) as refused:
        open_pool(str(path))
    circle = f"the pool contains itself: {path} -> {place}/sub/middle.toml -> {path}; name another pool."
    assert circle in str(refused.value)


def test_more_than_three_pools_within_one_another_are_refused(place: Path) -> None:
    for number in range(3):
        pool = "inner.toml" if number == 2 else f"pool{number + 1}.toml"
        (place / f"pool{number}.toml").write_text(team('plan.planner = "random"', pool=pool))
    with pytest.raises(ConfigError) as refused:
        open_pool(str(place / "pool0.toml"))
    chain = " -> ".join(
        str(place / name) for name in ("pool0.toml", "pool1.toml", "pool2.toml", "inner.toml")
    )
    assert f"{chain} are more than 3 pools within one another; leave one out." in str(refused.value)
    assert len(open_pool(str(place / "pool1.toml"))) == 1


def test_two_team_workers_may_share_a_pool_with_different_planners(place: Path) -> None:
    both = team('plan.planner = "single:ada"', name="first") + team('plan.planner = "random"', name="second")
    (place / "outer.toml").write_text(both)
    assert open_pool(str(place / "outer.toml")).names == ("first", "second")


def test_a_team_that_is_not_ready_lets_its_pool_be_looked_at(place: Path) -> None:
    (place / "inner.toml").unlink()
    (worker,) = open_pool(str(place / "outer.toml"), ready=False)
    assert isinstance(worker, UnavailableWorker)


async def test_cost_of_a_cancelled_team_call_is_booked(place: Path) -> None:
    inner = Pool(
        [
            ScriptedWorker("ada", {"": "5"}, profile=Profile(name="ada", price=Price(output=1e6))),
            ScriptedWorker("bob", {"": "5"}, delay=60.0),
        ]
    )
    steps = Step(0, "Add."), Step(1, "Check.", Access(steps=(0,)))
    worker = TeamWorker(Profile(name="team"), Runner(StepsPlanner(*steps), inner), limits=Limits(retries=0))
    outer = Runner(StepsPlanner(Step(0, "Answer.")), Pool([worker]), budget=Budget(seconds=0.5))
    trace = await outer.answer(QUESTION)
    assert trace.status == "failed"
    assert trace.cost_usd == 1.0
