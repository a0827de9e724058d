import asyncio
import subprocess
import sys
import threading
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from podium.errors import ConfigError, UsageError
from podium.inspection.team import TeamSettings, open_team, read_settings
from podium.testing import Answer, FaultServer
from podium.trace.store import TraceStore
from podium.types import Budget, Question


def writers():
    """Stores of traces that are open in this process."""
    return sum(thread.name == "podium-traces" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("name", "given", "pool", "planner"),
    [
        ("embedded", {}, "embedded", "conductor"),
        ("pool.toml", {"planner": "single:ada"}, "pool.toml", "single:ada"),
        ("configs/pool.toml", {}, "configs/pool.toml", "conductor"),
        ("conductor", {"pool": "pool.toml"}, "pool.toml", "conductor"),
        ("random", {}, "embedded", "random"),
        ("single:ada", {"pool": "pool.toml"}, "pool.toml", "single:ada"),
        ("any-name", {"pool": "pool.toml", "planner": "random"}, "pool.toml", "random"),
    ],
)
def test_a_models_name_is_a_planner_or_a_pool_unless_the_settings_say_otherwise(name, given, pool, planner):
    settings = read_settings(name, given)
    assert (settings.pool, settings.planner) == (pool, planner)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"plannr": "random"}, "podium/embedded: unknown key 'plannr'; did you mean 'planner'?"),
        ({"max_steps": 0}, "podium/embedded: max_steps is 0, but it should be greater than or equal to 1."),
        ({"budget_usd": "much"}, 'podium/embedded: budget_usd is "much", but it should be a number.'),
        (
            {"planner": "random", "cost_sensitivity": 1},
            "podium/embedded: cost_sensitivity is for a Conductor; leave it out.",
        ),
        (
            {"planner": "random", "conductor": "x", "conductor_url": "http://x"},
            "planner random plans without a Conductor; leave conductor and conductor_url out.",
        ),
        (
            {"conductor": "x", "conductor_url": "http://x", "conductor_model": "m"},
            "conductor names a folder, conductor_url a server; give one of them.",
        ),
        (
            {"cost_sensitivity": 0, "conductor_url": "http://x", "conductor_model": "m"},
            "cost_sensitivity is for a Conductor of Podium's own; leave it out, or conductor_url.",
        ),
        (
            {"conductor_url": "http://x", "conductor_model": "m", "conductor_price": [-1.0, 2.0]},
            "conductor_price is below 0; give dollars per million tokens.",
        ),
        ({"conductor_url": "http://x"}, "needs both conductor_url and conductor_model."),
        ({"replay": True}, "replay answers from a response cache; name its file with cache."),
        ({"day_budget_usd": -1}, "day_budget_usd is -1, but it should be greater than or equal to 0."),
        ({"conductor_price": [1.0, 2.0]}, "needs both conductor_url and conductor_model."),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_one_sentence(given, sentence):
    with pytest.raises(ConfigError) as refused:
        read_settings("embedded", given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"pool": "none.toml"}, "none.toml: there is no such file; check the path."),
        ({"planner": "single:bob"}, "'bob'"),
        ({"conductor": "nowhere"}, "nowhere is not a folder"),
        ({"cost_sensitivity": 3}, "cost_sensitivity 3: "),
        (
            {"conductor_url": "http://x", "conductor_model": "m", "conductor_key_env": "NO_KEY"},
            "NO_KEY is not",
        ),
        ({"planner": "single:ada", "store": "pool.toml/x.sqlite"}, "cannot be opened"),
    ],
)
def test_what_the_settings_name_and_is_not_there_is_refused_before_any_question(given, sentence):
    before = writers()
    with pytest.raises(UsageError) as refused:
        open_team(TeamSettings(**{"pool": "pool.toml", **given}))
    assert sentence in str(refused.value)
    assert writers() == before


def test_the_budget_is_what_the_settings_say():
    settings = TeamSettings(
        rounds=2,
        budget_calls=3,
        budget_tokens=4,
        budget_usd=0.5,
        budget_seconds=6.0,
        max_steps=7,
        early_stop=True,
    )
    assert settings.budget == Budget(rounds=2, calls=3, tokens=4, usd=0.5, seconds=6.0)
    team = open_team(settings.model_copy(update={"planner": "random", "no_store": True}))
    assert (team.orchestrator.budget, team.orchestrator.max_steps) == (settings.budget, 7)
    assert team.orchestrator.settings.early_stop


async def test_a_trace_is_on_disk_when_its_answer_is_given_and_closing_gives_the_store_back():
    before = writers()
    team = open_team(TeamSettings(pool="pool.toml", planner="single:ada", store=Path("own.sqlite")))
    trace = await team.answer(Question(text="The sum of 2 and 3?"), seed="s")
    with TraceStore("own.sqlite", create=False) as elsewhere:
        assert elsewhere.get(trace.id) == trace
    assert writers() == before + 1
    await team.close()
    await team.close()
    assert writers() == before


async def test_a_question_that_is_given_up_leaves_a_trace_too():
    team = open_team(TeamSettings(pool="pool.toml", planner="single:tom"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await team.answer(Question(text="The sum of 2 and 3?"), seed="s")
    assert team.store is not None
    assert [kept.status for kept in team.store.list()] == ["cancelled"]
    await team.close()


def test_nothing_of_podium_loads_inspect_before_inspect_loads_podium():
    program = "import sys, podium.cli.app, podium.inspection.team; sys.exit('inspect_ai' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_installed_package_has_the_entry_point_of_the_provider():
    found = entry_points(group="inspect_ai")
    assert [entry.value for entry in found if entry.name == "podium"] == ["podium.inspection.registry"]


async def test_what_was_paid_for_is_kept_and_a_days_budget_is_shared(monkeypatch, tmp_path):
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "kept" / "traces.sqlite"))
    async with FaultServer(Answer("Answer: 5", input_tokens=0, output_tokens=1000)) as server:
        settings = TeamSettings(
            pool=paid_pool(server.url), planner="single:ada", cache=Path("c.sqlite"), day_budget_usd=0.003
        )
        question = Question(text="The sum of 2 and 3?")
        for expected in ("ok", "failed"):
            team = open_team(settings)
            traces = [await team.answer(question, seed="s", sample=epoch) for epoch in (0, 1)]
            assert {trace.status for trace in traces} == {"ok"}
            other = await team.answer(Question(text=f"Not the sum of {expected}?"), seed="s")
            assert other.status == expected
            await team.close()
        replayed = open_team(settings.model_copy(update={"replay": True, "day_budget_usd": 0.0}))
        assert (await replayed.answer(question, seed="s")).answer == "Answer: 5"
        await replayed.close()
    assert len(server.requests) == 3


def paid_pool(url: str) -> str:
    worker = f'name = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\nprice = {{ output = 1.0 }}'
    Path("paid.toml").write_text(f"[[worker]]\n{worker}\nlimits = {{ max_tokens = 1000 }}\n")
    return "paid.toml"
