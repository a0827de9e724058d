"""What a team opens and closes: its pool, its traces, its cache, its spend limits."""

import threading
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.store import TraceStore
from podium.team.team import Team
from podium.types import Budget, Question
from podium_testing import Answer, FaultServer


def writers():
    """Stores of traces that are open in this process."""
    return sum(thread.name == "podium-trace-writer" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"team": "none.toml"}, "none.toml: there is no such file; check the path."),
        ({"planner": "single:bob"}, "'bob'"),
        ({"conductor": {"checkpoint": "nowhere"}}, "nowhere is not a folder"),
        ({"conductor": {"base_url": "http://x", "model": "m", "api_key_env": "NO_KEY"}}, "NO_KEY is not"),
        ({"planner": "single:ada", "store": "pool.toml/x.sqlite"}, "cannot be opened"),
    ],
)
def test_settings_naming_missing_files_or_workers_are_refused_when_opened(given, sentence):
    before = writers()
    with pytest.raises(UsageError) as refused:
        Team.open(**{"team": "pool.toml", **given})
    assert sentence in str(refused.value)
    assert writers() == before


def test_team_uses_the_budget_of_its_file_and_overriding_keys():
    Path("own.toml").write_text(
        'pool = "pool.toml"\n[budget]\ncalls = 3\ntokens = 4\nusd = 0.5\n[plan]\nearly_stop = true\n'
    )
    keys = {"budget": {"rounds": 2, "seconds": 6.0}, "plan.max_steps": 7}
    team = Team.open("own.toml", planner="random", **keys)
    assert team.runner.budget == Budget(rounds=2, calls=3, tokens=4, usd=0.5, seconds=6.0)
    assert (team.runner.max_steps, team.runner.settings.early_stop) == (7, True)
    assert (team.settings.plan.max_steps, team.settings.budget.rounds) == (7, 2)


@pytest.mark.parametrize(("layout", "roles"), [("packed", ["user"]), ("chat", ["user", "assistant", "user"])])
async def test_earlier_work_is_written_as_the_layout_of_the_team_says(layout: str, roles: list[str]) -> None:
    async with Team.open("pool.toml", planner="self-reflection:ada:2", **{"plan.layout": layout}) as team:
        trace = await team.ask(Question(text="The sum of 2 and 3?"), seed="s")
    assert trace.layout == layout
    assert [message.role for message in trace.spans[-1].messages] == roles


async def test_a_trace_is_on_disk_when_its_answer_is_given():
    before = writers()
    team = Team.open("pool.toml", planner="single:ada", store=Path("own.sqlite"))
    trace = await team.ask(Question(text="The sum of 2 and 3?"), seed="s")
    with TraceStore("own.sqlite", create=False) as elsewhere:
        assert elsewhere.get(trace.id) == trace
    assert writers() == before + 1
    await team.close()
    await team.close()
    assert writers() == before


async def test_paid_replies_are_cached_and_teams_share_the_day_budget(monkeypatch, tmp_path):
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "kept" / "traces.sqlite"))
    async with FaultServer(Answer("Answer: 5", input_tokens=0, output_tokens=1000)) as server:
        keys = {"plan.planner": "single:ada", "cache": Path("c.sqlite"), "budget.day_usd": 0.003}
        pool = paid_pool(server.url)
        question = Question(text="The sum of 2 and 3?")
        for expected in ("ok", "failed"):
            team = Team.open(pool, **keys)
            traces = [await team.ask(question, seed="s", sample=epoch) for epoch in (0, 1)]
            assert {trace.status for trace in traces} == {"ok"}
            other = await team.ask(Question(text=f"Not the sum of {expected}?"), seed="s")
            assert other.status == expected
            await team.close()
        replayed = Team.open(pool, **keys | {"replay": True, "budget.day_usd": 0.0})
        assert (await replayed.ask(question, seed="s")).answer == "Answer: 5"
        await replayed.close()
    assert len(server.requests) == 3


def paid_pool(url: str) -> str:
    worker = f'name = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\nprice = {{ output = 1.0 }}'
    Path("paid.toml").write_text(
        f'[conductor]\nplans = "text"\n[[worker]]\n{worker}\nlimits = {{ max_tokens = 1000 }}\n'
    )
    return "paid.toml"
