"""Who conducts a pool: the options, its file, or the first model; and what happens where planning fails."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from podium.calls import CallState
from podium.conductor.checkpoint import PlanLimits
from podium.errors import UsageError
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.team import Runner
from podium.team.health_check import CheckResult, check_planner
from podium.team.opened_planner import OpenedPlanner, open_planner
from podium.team.team import Team
from podium.team.team_file import TeamReference, open_pool
from podium.trace import Trace
from podium.types import Budget, Question
from podium_testing import FaultServer, Rule, Status
from scripted_team import write_team
from tiny_policy import BRIEF, write_policy

PLAN = 'model_id = [1]\nsubtasks = ["Name the author."]\naccess_list = [[]]'
UNLIMITED = Budget()
QUESTION = Question(text="Who wrote Faust?")


def model(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """A plan for who is asked for one, else an answer that names the model."""
    asked = str(messages[-1]["content"])
    return PLAN if "Write your plan" in asked else f"Goethe, says {body['model']}."


def write_pool(path: Path, url: str, table: str = "", *, retries: int = 0) -> Path:
    """Two models, the second one cheap, behind a conductor's table. The fake models know no schema."""
    if "checkpoint" not in table and "podium_file" not in table:
        table += '\nplans = "text"' if "[conductor]" in table else '\n[conductor]\nplans = "text"'
    workers = [
        f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}-1"\nbase_url = "{url}"\n'
        f"price = {{ input = {price}, output = {price} }}\nlimits = {{ retries = {retries} }}\n"
        for name, price in (("large", 10.0), ("small", 1.0))
    ]
    path.write_text(table + "\n" + "".join(workers))
    return path


def opening(path: Path, *keys: str) -> OpenedPlanner:
    """The planner of a team."""
    team = TeamReference(str(path), keys).read()
    return open_planner(team, open_pool(team), seed="t")


async def answer(path: Path, *keys: str, budget: Budget = UNLIMITED) -> Trace:
    team = TeamReference(str(path), keys).read()
    pool = open_pool(team)
    opened = open_planner(team, pool, seed="t")
    try:
        runner = Runner(opened.planner, pool, budget=budget, plan_fallback=opened.fallback)
        return await runner.answer(QUESTION)
    finally:
        await opened.close()
        await pool.close()


def test_a_planner_that_votes_is_refused_early_for_a_pool_without_a_vote(
    tmp_path: Path,
) -> None:
    path = write_pool(tmp_path / "pool.toml", "http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=r'this pool has none: add a .*kind = "vote" to the team file'):
        opening(path, "plan.planner=cascade:2xlarge>small")
    for alone in ("committee:large", "self-consistency:large:1"):
        opening(path, f"plan.planner={alone}")


async def test_evaluation_disables_overlap_and_plan_fallback(tmp_path: Path) -> None:
    team = TeamReference(str(write_pool(tmp_path / "pool.toml", "http://127.0.0.1:9/v1"))).read()
    for compared in (False, True):
        async with Team.from_settings(team, for_evaluation=compared) as opened:
            runner = opened.runner
            assert runner.overlap is runner.shows_unloaded_models is (not compared)
            assert runner.plan_fallback == (None if compared else "large")


async def test_the_first_model_of_a_real_pool_conducts_if_no_model_is_named(tmp_path: Path) -> None:
    async with FaultServer(model) as server:
        trace = await answer(write_pool(tmp_path / "pool.toml", server.url))
    assert [request.body["model"] for request in server.requests] == ["large-1", "small-1"]
    assert (trace.status, trace.planner, trace.answer) == ("ok", "conductor:large", "Goethe, says small-1.")
    (round_,) = trace.rounds
    assert round_.plan.spent.cost_usd == pytest.approx(round_.plan.spent.usage.tokens * 10 / 1e6)
    assert round_.plan.spent.cost_usd > 0


async def test_a_worker_without_a_price_that_conducts_is_unpriced(tmp_path: Path) -> None:
    async with FaultServer(model) as server:
        path = write_pool(tmp_path / "pool.toml", server.url)
        path.write_text(re.sub(r"(?m)^price = .*\n", "", path.read_text()))
        (round_,) = (await answer(path)).rounds
    assert (round_.plan.spent.unpriced, round_.plan.spent.cost_usd) == (True, 0.0)


RATED = {
    "clusters": {"letters": {"faust": 1.0}, "sums": {"plus": 1.0}},
    "workers": {
        "large": {
            "letters": {"right": 60, "questions": 100, "cost_usd": 1.0},
            "sums": {"right": 90, "questions": 100, "cost_usd": 1.0},
        },
        "small": {
            "letters": {"right": 80, "questions": 100, "cost_usd": 0.1},
            "sums": {"right": 70, "questions": 100, "cost_usd": 0.1},
        },
    },
}


async def test_rated_pool_without_a_configured_planner_is_routed_by_ratings(tmp_path: Path) -> None:
    (tmp_path / "ratings.json").write_text(json.dumps(RATED))
    rated = 'ratings = "ratings.json"'
    async with FaultServer(model) as server:
        path = write_pool(tmp_path / "pool.toml", server.url, rated)
        trace = await answer(path)
        conducted = await answer(
            write_pool(tmp_path / "led.toml", server.url, rated + '\n[conductor]\nworker = "large"')
        )
    assert [request.body["model"] for request in server.requests] == ["small-1", "large-1", "small-1"]
    assert (trace.planner, trace.answer) == ("by-ratings:0", "Goethe, says small-1.")
    assert conducted.planner == "conductor:large"
    assert not opening(path).pays
    with pytest.raises(UsageError, match="the ratings choose a worker; leave it out"):
        opening(path, "plan.cost_sensitivity=2")


@pytest.mark.parametrize(
    ("price", "usd", "unpriced"),
    [
        ("price = { input = 3, output = 3 }", True, False),
        ("price = { input = 0 }", False, False),
        ("", False, True),
    ],
)
async def test_the_pool_file_names_an_endpoint_that_conducts(
    tmp_path: Path, price: str, usd: bool, unpriced: bool
) -> None:
    async with FaultServer(model, keys={"sk-lead"}) as lead, FaultServer(model) as server:
        table = f'[conductor]\nbase_url = "{lead.url}"\nmodel = "lead-1"\napi_key_env = "LEAD_KEY"\n{price}'
        path = write_pool(tmp_path / "pool.toml", server.url, table)
        with pytest.raises(
            UsageError, match=r"pool.toml, line 4: The Conductor: the environment variable LEAD_KEY"
        ):
            await answer(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LEAD_KEY", "sk-lead")
            trace = await answer(path)
    assert [request.body["model"] for request in lead.requests] == ["lead-1"]
    (round_,) = trace.rounds
    assert (round_.plan.spent.unpriced, round_.plan.spent.cost_usd > 0) == (unpriced, usd)


async def test_the_model_gets_the_prompt_of_the_table(tmp_path: Path) -> None:
    table = '[conductor]\nworker = "small"\nprompt = { pool = "anonymous", examples = 0 }'
    async with FaultServer(model) as server:
        await answer(write_pool(tmp_path / "pool.toml", server.url, table))
    system, user = (message["content"] for message in server.requests[0].body["messages"])
    assert "Model 0\nModel 1" in user
    assert "Example 1" not in system


async def test_a_checkpoint_of_simulated_workers_never_leads_real_ones(tmp_path: Path) -> None:
    trained = {"questions": "Mine", "simulated": True}
    checkpoint = write_policy(tmp_path / "trained", podium={**BRIEF, "conducts": trained})
    async with FaultServer(model) as server:
        path = write_pool(tmp_path / "pool.toml", server.url)
        with pytest.raises(UsageError, match="cannot lead this pool: it was trained on Mine"):
            await answer(path, f"conductor.checkpoint={checkpoint}")
        write_pool(path, server.url, f'[conductor]\ncheckpoint = "{checkpoint}"')
        with pytest.raises(UsageError, match="Let a model conduct untrained"):
            await answer(path)
    assert not server.requests


@pytest.mark.parametrize(
    ("table", "worker"), [("", "large"), ('[conductor]\nworker = "large"\nfallback = "small"', "small")]
)
async def test_fallback_worker_answers_alone_if_planning_fails(
    tmp_path: Path, table: str, worker: str
) -> None:
    def unreadable(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        asked = str(messages[-1]["content"])
        return "I would rather not." if "plan" in asked else f"Goethe, says {body['model']}."

    async with FaultServer(unreadable) as server:
        trace = await answer(write_pool(tmp_path / "pool.toml", server.url, table))
    assert [request.body["model"] for request in server.requests] == ["large-1", "large-1", f"{worker}-1"]
    assert (trace.status, trace.answer) == ("degraded", f"Goethe, says {worker}-1.")
    assert trace.error is not None
    assert trace.error.startswith("There is no plan to run. ")
    assert trace.error.endswith(f"The question went to '{worker}' alone.")
    (round_,) = trace.rounds
    assert round_.error_kind == "missing_list"
    assert [span.worker for span in round_.spans] == [worker]


async def test_fallback_worker_answers_if_the_conductor_endpoint_fails(tmp_path: Path) -> None:
    async with FaultServer(model, rules=[Rule(fault=Status(code=500), model="lead-1")]) as server:
        table = f'[conductor]\nbase_url = "{server.url}"\nmodel = "lead-1"\nlimits = {{ retries = 0 }}'
        trace = await answer(write_pool(tmp_path / "pool.toml", server.url, table))
    assert (trace.status, trace.answer) == ("degraded", "Goethe, says large-1.")
    assert trace.rounds[0].error_kind == "planner_failed"


async def test_a_plan_that_could_break_the_budget_is_not_paid_for(tmp_path: Path) -> None:
    table = '[conductor]\nworker = "large"\nfallback = "small"'
    async with FaultServer(model) as server:
        path = write_pool(tmp_path / "pool.toml", server.url, table)
        # 4,096 tokens of `large` may cost $0.041, of `small` $0.0041.
        trace = await answer(path, budget=Budget(usd=0.02))
        assert [request.body["model"] for request in server.requests] == ["small-1"]
        assert (trace.status, trace.answer) == ("degraded", "Goethe, says small-1.")
        assert trace.rounds[0].error_kind == "budget_exceeded"
        nothing = await answer(path, budget=Budget(usd=0.001))
        assert (nothing.status, nothing.cost_usd) == ("failed", 0.0)
        assert len(server.requests) == 1
        both = await answer(path, budget=Budget(usd=0.2))
    assert (both.status, both.answer) == ("ok", "Goethe, says small-1.")
    assert both.cost_usd < 0.02


async def test_a_planner_is_checked_by_asking_it_for_a_plan(tmp_path: Path) -> None:
    async with FaultServer(model) as server:
        team = TeamReference(str(write_pool(tmp_path / "pool.toml", server.url))).read()
        pool = open_pool(team)
        spend_limit = SharedSpendLimit(None, "run", 1.0)

        async def checked(*spend_limits: SharedSpendLimit) -> CheckResult:
            opened = Team.from_settings(team, pool, call_state=CallState(spend_limits=spend_limits))
            try:
                return await check_planner(opened)
            finally:
                await opened.release()

        well = await checked(spend_limit)
        server.rules = [Rule(fault=Status(code=401))]
        ill = await checked()
        calls = len(server.requests)
        refused = await checked(SharedSpendLimit(None, "run", 0.0))
        await pool.close()
    assert (refused.error, len(server.requests)) == ("budget_exceeded", calls)
    assert spend_limit.spent_usd == pytest.approx(well.spent.cost_usd)
    assert (well.worker, well.role, well.answered, well.text) == ("conductor:large", "planner", True, PLAN)
    assert well.spent.cost_usd > 0
    assert (ill.answered, ill.error) == (False, "status")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            'worker = "larg"',
            "line 2: conductor.worker names 'larg', which is not in the pool; did you mean 'large'?",
        ),
        ('fallback = "tiny"', "conductor.fallback names 'tiny', which is not in the pool"),
        (
            'worker = "large"\ncheckpoint = "x"',
            "checkpoint and worker each name a Conductor; keep one of them.",
        ),
        ('model = "m"', "an endpoint needs both base_url and model."),
        (
            "price = { input = 1, output = 1 }",
            "price is for an endpoint; add base_url and model, or leave it out.",
        ),
        (
            'checkpoint = "x"\nprompt = { examples = 0 }',
            "a checkpoint brings its own prompt; leave prompt out.",
        ),
        ('wroker = "large"', "unknown key 'conductor.wroker'; did you mean 'worker'?"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path, table: str, said: str) -> None:
    path = write_pool(tmp_path / "pool.toml", "http://127.0.0.1:1/v1", f"[conductor]\n{table}")
    with pytest.raises(UsageError) as refused:
        opening(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


TRAINED: dict[str, Any] = {
    "prompt": {"pool": "anonymous", "examples": 1, "access": "all_or_none"},
    "conducts": {"questions": "Mine", "workers": ["large", "small"]},
    "plan": {
        "max_plan_tokens": 321,
        "temperature": 0.25,
        "rounds": 2,
        "max_steps": 3,
        "chat_template_kwargs": {"enable_thinking": False},
    },
}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """The folder of a trained Conductor, of which podium.json alone is here."""
    folder = tmp_path / "trained"
    folder.mkdir()
    (folder / "podium.json").write_text(json.dumps(TRAINED))
    return folder


def led_by(url: str, settings: Path) -> tuple[str, ...]:
    """The keys of a trained Conductor that a server runs."""
    return (f"conductor.base_url={url}", "conductor.model=lead-1", f"conductor.podium_file={settings}")


@pytest.mark.parametrize("form", ["the options, a folder", "the options, a file", "the team file"])
async def test_a_served_conductor_gets_the_prompt_of_its_training(
    tmp_path: Path, trained: Path, form: str
) -> None:
    async with FaultServer(model) as lead, FaultServer(model) as server:
        if form == "the team file":
            table = f'[conductor]\nbase_url = "{lead.url}"\nmodel = "lead-1"\npodium_file = "trained"'
            path, keys = write_pool(tmp_path / "pool.toml", server.url, table), ()
        else:
            path = write_pool(tmp_path / "pool.toml", server.url)
            named = trained if form.endswith("folder") else trained / "podium.json"
            keys = led_by(lead.url, named)
        trace = await answer(path, *keys)
        assert opening(path, *keys).plan_limits == PlanLimits(**TRAINED["plan"])
    assert trace.status == "ok"
    (asked,) = lead.requests
    sent = {key: asked.body[key] for key in ("max_tokens", "temperature", "chat_template_kwargs")}
    assert sent == {
        "max_tokens": 321,
        "temperature": 0.25,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    instructions, request = (str(message["content"]) for message in asked.body["messages"])
    assert instructions.count("Example") == 1
    assert "[] for none, or" in instructions
    assert "Model 0\nModel 1\n" in request


async def test_conductor_table_overrides_the_settings_of_training(tmp_path: Path, trained: Path) -> None:
    async with FaultServer(model) as lead, FaultServer(model) as server:
        table = (
            f'[conductor]\nbase_url = "{lead.url}"\nmodel = "lead-1"\npodium_file = "{trained}"\ntemperature = 1.0\n'
            "limits = { max_tokens = 99 }\nextra = { chat_template_kwargs = { enable_thinking = true } }"
        )
        await answer(write_pool(tmp_path / "pool.toml", server.url, table))
    (asked,) = lead.requests
    assert (asked.body["max_tokens"], asked.body["temperature"]) == (99, 1.0)
    assert asked.body["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.parametrize(
    ("conducts", "why"),
    [
        ({"workers": ["small", "large"]}, "it knows workers only by number, in this order: small, large."),
        (
            {"questions": "Mine", "simulated": True},
            "it was trained on Mine over scripted or recorded workers, and 'large' of this pool is a real one.",
        ),
    ],
)
async def test_a_served_conductor_leads_no_pool_that_it_was_not_trained_for(
    tmp_path: Path, trained: Path, conducts: dict[str, Any], why: str
) -> None:
    (trained / "podium.json").write_text(json.dumps(TRAINED | {"conducts": conducts}))
    async with FaultServer(model) as lead, FaultServer(model) as server:
        path = write_pool(tmp_path / "pool.toml", server.url)
        with pytest.raises(UsageError) as refused:
            await answer(path, *led_by(lead.url, trained))
    assert str(refused.value).startswith(f"{trained} cannot lead this pool: {why}")
    assert not lead.requests


@pytest.mark.parametrize(
    "keys",
    [
        ("conductor.podium_file=trained",),
        ("plan.planner=single:large", "plan.cost_sensitivity=1"),
        ("plan.planner=single:large", "plan.quarantine_failing=true"),
        ("plan.planner=conductor:large", "plan.cost_sensitivity=1"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(tmp_path: Path, keys: tuple[str, ...]) -> None:
    path = write_pool(tmp_path / "pool.toml", "http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=r"leave|keep one"):
        opening(path, *keys)


def test_untrained_planner_plans_one_round_of_at_most_five_steps(tmp_path: Path) -> None:
    path = write_pool(tmp_path / "pool.toml", "http://127.0.0.1:9/v1")
    for keys in ((), ("plan.planner=random",)):
        assert opening(path, *keys).plan_limits == PlanLimits(rounds=1, max_steps=5)


async def test_a_planners_name_may_say_which_worker_conducts_untrained(tmp_path: Path) -> None:
    async with FaultServer(model) as server:
        table = '[conductor]\nworker = "large"\n'
        path = write_pool(tmp_path / "pool.toml", server.url, table)
        trace = await answer(path, "plan.planner=conductor:small")
    assert [request.body["model"] for request in server.requests] == [
        "small-1",
        "small-1",
    ]  # Plan and answer.
    assert (trace.planner, trace.answer) == ("conductor:small", "Goethe, says small-1.")
    assert "Write your plan" in trace.rounds[0].plan.messages[-1].content
    assert opening(path, "plan.planner=conductor:small").pays
    with pytest.raises(UsageError, match="no worker named 'smal'; did you mean 'small'"):
        opening(path, "plan.planner=conductor:smal")


@pytest.mark.parametrize(
    ("name", "leads"),
    [
        ("openrouter", "gpt-mini"),
        ("paper", "gpt-5"),
        ("paper-constrained", "gpt-5"),
        ("ollama", "qwen3"),
        ("vllm", "large"),
    ],
)
def test_shipped_pool_of_real_workers_is_conducted_by_its_worker(name: str, leads: str) -> None:
    team = TeamReference(name).read()
    pool = open_pool(team, ready=False)
    opened = open_planner(team, pool, seed="t")
    assert (opened.planner.name, opened.fallback) == (f"conductor:{leads}", leads)
    assert opened.description == f"{leads}, a worker of the pool, untrained"
    assert opened.pays


def test_the_plans_of_scripted_workers_and_of_a_checkpoint_cost_nothing(tmp_path: Path) -> None:
    path = write_team(tmp_path / "team.toml")
    untrained = opening(path)
    assert (untrained.planner.name, untrained.fallback) == ("conductor:ada", "ada")
    assert not untrained.pays
    checkpoint = write_policy(tmp_path / "trained")
    trained = opening(path, f"conductor.checkpoint={checkpoint}")
    assert trained.planner.name == "conductor:trained"
    assert not trained.pays
