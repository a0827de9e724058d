"""`import podium`: teams, plans and evaluations in Python programs, with real workers on this machine."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import podium
from podium.errors import UsageError
from podium.planners.planner import Planner
from podium.store import TraceStore
from podium.types import Spent
from podium.workers.vote import VoteWorker
from podium_testing import Answer, FaultServer

PLAN = 'model_id = [0, 1]\nsubtasks = ["Give the number.", "Double it."]\naccess_list = [[], ["all"]]'


@podium.worker("number", "Gives a number.")
async def number(messages):
    return "21"


@podium.worker("double", "Doubles a number.")
def double(messages):
    assert "Double it." in messages[-1]["content"]
    return "42" if "21" in messages[-1]["content"] else "?"


class Relay(Planner):
    """A planner of one's own: worker 0 gives the number, worker 1 doubles it."""

    name = "relay"

    async def plan(self, request):
        steps = (
            podium.Step(0, "Give the number."),
            podium.Step(1, "Double it.", podium.Access(all=True)),
        )
        return podium.Plan("relay", podium.Workflow(steps))


def live_pool(url):
    """A pool of one endpoint with a price."""
    path = Path("live.toml")
    path.write_text(
        f'[[worker]]\nname = "live"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
        "price = { input = 1.0, output = 1.0 }\nlimits = { max_tokens = 100 }\n"
    )
    return path


def functions():
    return podium.Pool([number, double])


async def test_own_functions_and_an_own_planner_are_a_team():
    async with podium.Team.open(functions(), planner=Relay()) as team:
        trace = await team.ask("What is twice the number?")
    assert (trace.answer, trace.status, trace.planner) == ("42", "ok", "relay")
    assert [span.response for span in trace.spans] == ["21", "42"]


def test_a_planner_of_no_planners_class_is_refused():
    class Duck:
        name = "duck"

    with pytest.raises(podium.UsageError, match=r"Duck is no podium\.Planner"):
        podium.Team.open(functions(), planner=Duck())


async def test_a_function_joins_the_workers_of_a_file():
    async with podium.Team.open("pool.toml", workers=[number], planner="single:number") as team:
        assert team.pool.names == ("ada", "eve", "tom", "number")
        assert (await team.ask("Which number?")).answer == "21"


async def test_a_plan_can_be_seen_edited_and_run():
    async with podium.Team.open(functions(), planner=Relay()) as team:
        plan = await team.plan("What is twice the number?")
        assert isinstance(plan.decision, podium.Workflow)
        only = podium.Workflow(plan.decision.steps[:1])
        assert (await team.run(only, "What is the number?")).answer == "21"
        assert (await team.run(PLAN, "What is twice the number?")).answer == "42"


async def test_a_plan_of_the_team_is_run_whatever_its_length_and_with_its_limits():
    votes = podium.Team.open("pool.toml", workers=[VoteWorker()], planner="self-consistency:ada:6")
    async with votes as team:
        plan = await team.plan("What is 2 + 3?")
        trace = await team.run(plan, "What is 2 + 3?")
    assert (trace.status, len(trace.spans)) == ("ok", 7)
    async with (
        FaultServer(Answer("The answer is five.")) as server,
        podium.Team.open(live_pool(server.url), planner="single:live") as team,
    ):
        plan = replace(await team.plan("What is 2 + 3?"), max_tokens=(1,), spent=Spent(cost_usd=0.5))
        trace = await team.run(plan, "What is 2 + 3?")
    assert server.requests[-1].body["max_tokens"] == 1
    assert trace.cost_usd == trace.spans[0].spent.cost_usd, "the plan was paid for when it was written"


async def test_a_plan_that_cannot_be_run_calls_no_worker_and_says_why():
    async with podium.Team.open(functions(), planner=Relay()) as team:
        trace = await team.run(PLAN.replace("[0, 1]", "[0, 7]"), "What is twice the number?")
    assert (trace.answer, trace.calls) == (None, 0)
    assert "7" in trace.error


async def test_a_stream_tells_of_each_step_and_of_each_piece_of_the_answer():
    async with (
        FaultServer(Answer("The answer is five.")) as server,
        podium.Team.open(live_pool(server.url), planner="single:live") as team,
    ):
        events = [event async for event in team.stream("What is 2 + 3?")]
    text = "".join(event.text for event in events if isinstance(event, podium.StepText))
    assert text == "The answer is five."
    assert isinstance(events[0], podium.PlanReady)
    assert isinstance(events[-1], podium.QuestionEnded)
    assert events[-1].trace.answer == text


async def test_closing_a_stream_cancels_its_question():
    async with podium.Team.open("pool.toml", planner="single:tom", store="own.sqlite") as team:
        stream = team.stream("What is 2 + 3?")
        async with asyncio.timeout(5):
            async for event in stream:
                if isinstance(event, podium.StepStarted):
                    break
            await stream.aclose()
    with TraceStore("own.sqlite", create=False) as store:
        assert [kept.status for kept in store.list()] == ["cancelled"]


async def test_a_budget_holds_a_question_and_failed_planning_goes_to_one_worker():
    async with FaultServer(Answer("No plan.", input_tokens=10, output_tokens=10)) as server:
        paid = live_pool(server.url)
        async with podium.Team.open(paid) as team:
            trace = await team.ask("What is 2 + 3?")
            assert (trace.answer, trace.status) == ("No plan.", "degraded")
        calls = len(server.requests)
        async with podium.Team.open(paid, budget=podium.Budget(usd=0.0)) as team:
            assert (await team.ask("What is 2 + 3?")).answer is None
        assert len(server.requests) == calls


def test_programs_that_are_not_async_have_the_same_team():
    with podium.SyncTeam.open(functions(), planner=Relay()) as team:
        assert team.ask("What is twice the number?").answer == "42"
        assert team.run(team.plan("Twice?"), "What is twice the number?").answer == "42"
        first = next(team.stream("What is twice the number?"))
        assert isinstance(first, podium.PlanReady)
    team.close()


@podium.worker("interrupted", "Its user presses Ctrl-C while it answers.")
async def interrupted(messages):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.1)  # What it holds takes a while to be released.


@pytest.mark.parametrize("ask", [podium.SyncTeam.ask, lambda team, question: list(team.stream(question))])
def test_an_interrupted_question_is_kept_before_its_team_closes(ask):
    workers = podium.Pool([interrupted])
    with (
        pytest.raises(KeyboardInterrupt),
        podium.SyncTeam.open(workers, planner="single:interrupted", store="own.sqlite") as team,
    ):
        ask(team, "What is 2 + 3?")
    with TraceStore("own.sqlite", create=False) as store:
        assert [kept.status for kept in store.list()] == ["cancelled"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_planner_that_ends_the_program_ends_only_its_question(error):
    class Ends(podium.Planner):
        name = "ends"

        async def plan(self, request):
            raise error

    with podium.SyncTeam.open(functions(), planner=Ends()) as team:
        for _ in range(2):
            with pytest.raises(error):
                team.ask("What is twice the number?")


def test_an_async_function_that_interrupts_is_a_failed_call():
    @podium.worker("interrupting")
    async def interrupting(messages):
        raise KeyboardInterrupt

    with podium.SyncTeam.open(podium.Pool([interrupting]), planner="single:interrupting") as team:
        assert team.ask("What is 2 + 3?").status == "failed"


@pytest.mark.parametrize("seed", [0, 3])
async def test_a_number_seeds_as_its_text_does(seed):
    async with podium.Team.open("pool.toml", planner="single:ada") as team:
        for given in (seed, str(seed)):
            trace = await team.ask("What is 2 + 3?", seed=given)
            assert trace.seed == str(seed)
            events = [event async for event in team.stream("What is 2 + 3?", seed=given)]
            assert events[-1].trace.seed == str(seed)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ask", [podium.SyncTeam.ask, lambda team, question: list(team.stream(question))])
def test_a_closed_team_says_that_it_was_closed(ask):
    with podium.SyncTeam.open(functions(), planner=Relay()) as team:
        pass
    with pytest.raises(UsageError, match="closed"):
        ask(team, "What is twice the number?")


@pytest.mark.filterwarnings("error")
def test_events_that_are_dropped_after_the_end_of_their_team_raise_nothing():
    with podium.SyncTeam.open(functions(), planner=Relay()) as team:
        events = team.stream("What is twice the number?")
        next(events)
    events.close()


def test_an_evaluation_grades_the_team_on_a_table_of_ones_own():
    rows = [
        {"question": f"Is {number} the number?", "answer": str(number), "split": "test"}
        for number in (21, 22)
    ]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with podium.SyncTeam.open(functions(), planner="single:number") as team:
        evaluation = team.evaluate("mine.jsonl", split="test", questions=2)
        assert team.evaluate(Path("mine.jsonl"), split="test", questions=2).accuracy == evaluation.accuracy
    assert evaluation.accuracy.mean == 0.5
    assert evaluation.calls == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"team": "none.toml"}, "none.toml: there is no such file; check the path."),
        ({"planner": "singel:ada"}, "singel"),
        ({"plan": {"max_steps": 0}}, "plan.max_steps is 0, but it should be greater than or equal to 1."),
        ({"workers": [number, number]}, "Two workers are named 'number'; give each its own name."),
    ],
)
def test_invalid_team_arguments_are_refused_before_any_call(arguments, sentence):
    with pytest.raises(UsageError) as refused:
        podium.Team.open(**{"team": "pool.toml", **arguments})
    assert sentence in str(refused.value)


def test_a_retry_prints_nothing_in_a_program_that_configures_no_logging() -> None:
    Path("busy.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "scripted"\nlimits.retries = 1\n'
        'replies = [{ error = "status", retryable = true }, "Answer: 4"]\n'
    )
    program = """import podium
with podium.SyncTeam.open("busy.toml", planner="single:ada") as team:
    print(team.ask("2 + 2?").answer)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Answer: 4\n", "")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Teem"):
        _ = podium.Teem
