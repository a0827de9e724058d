import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from podium.spending.shared_spend_limit import SharedSpendLimit, default_state_path
from podium_testing import Answer, FaultServer, Hang, RateLimited, RefusedParameters, Rule, Status
from podium_testing.server import in_thread
from scripted_team import write_sums, write_team

PLAN = 'ready\nmodel_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]'
"""Answers the question of a check, and is a plan for whoever asks for one."""
SHIPPED = ("paper", "paper-constrained", "openrouter")


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """An endpoint with one key and two models, of which one is at its limit."""
    models = {"good": Answer(PLAN, input_tokens=1000, output_tokens=100), "busy": "ready"}
    with in_thread(
        FaultServer(models=models, keys={"right"}, rules=[Rule(fault=RateLimited(), model="busy")])
    ) as made:
        yield made


AS_TEXT = '[conductor]\nplans = "text"\n'
"""The server knows no schema, and its requests are counted."""


def _worker(name: str, url: str, model: str = "good", key: str = "RIGHT_KEY", more: str = "") -> str:
    return f"""
[[worker]]
name = "{name}"
kind = "openai"
model = "{model}"
base_url = "{url}"
api_key_env = "{key}"
price = {{ input = 3, output = 20 }}
{more}
"""


def test_the_list_shows_workers_as_planners_see_them(podium):
    listed = podium("pool", "list", "--pool", "pool.toml")
    assert listed.status == 0
    assert "0 ada" in listed.out
    assert "Knows sums." in listed.out
    assert "2 workers" in listed.out
    ada, bob = json.loads(podium("pool", "list", "--pool", "pool.toml", "--json").out)
    assert (ada["name"], ada["price"]["output"], bob["latency_s"]) == ("ada", 2.0, 2.0)
    assert ada["unready"] is None


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_pool_is_listed_without_keys_but_called_only_with_them(podium, monkeypatch, name):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    listed = podium("pool", "list", "--pool", name)
    assert listed.status == 0
    assert "not ready: the environment variable OPENROUTER_API_KEY is not set" in listed.out
    refused = podium("ask", "Q?", "--pool", name, "--planner", "random")
    assert refused.status == 2
    assert f"{name}.toml, line " in refused.err
    assert "_API_KEY is not set; put the key there" in refused.err


def test_a_check_fails_if_one_worker_does_not_answer(podium):
    Path("mixed.toml").write_text(
        """
        [[worker]]
        name = "well"
        kind = "scripted"
        replies = ["ready"]
        [[worker]]
        name = "ill"
        kind = "scripted"
        replies = [{ error = "status", message = "The server said 500." }]
        [[worker]]
        name = "slow"
        kind = "scripted"
        replies = ["ready"]
        delay = 60
        """
    )
    checked = podium("pool", "check", "--pool", "mixed.toml", "--timeout", "0.05")
    assert checked.status == 1
    _, well, ill, slow, planner, why_ill, why_slow, *_, total = checked.out.splitlines()
    assert well.split()[:2] == ["well", "ok"]
    assert ill.split()[:2] == ["ill", "failed"]
    assert slow.split()[:2] == ["slow", "failed"]
    assert planner.split()[0] == "conductor:well"
    assert why_ill == "ill: The server said 500."
    assert (
        why_slow
        == "slow: No answer within 0.05 s. See whether the server is up, or raise the timeout in its limits."
    )
    assert total == "1 of 3 workers answered; $0 spent; ~ estimated tokens"
    results = json.loads(podium("pool", "check", "--pool", "mixed.toml", "--timeout", "0.05", "--json").out)
    assert [result["role"] for result in results] == ["worker"] * 3 + ["planner"]
    assert [result["answered"] for result in results[:3]] == [True, False, False]
    assert [result["error"] for result in results[:3]] == [None, "status", "timeout"]


def test_a_check_shows_the_time_and_cost_of_the_answers(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    Path("one.toml").write_text(
        AS_TEXT + _worker("one", server.url) + _worker("streams", server.url, more="stream = true")
    )
    one, streams, conductor = json.loads(podium("pool", "check", "--pool", "one.toml", "--json").out)
    assert (one["answered"], one["text"], one["model"]) == (True, PLAN, "good")
    assert (conductor["worker"], conductor["answered"], conductor["role"]) == (
        "conductor:one",
        True,
        "planner",
    )
    assert conductor["spent"]["cost_usd"] == pytest.approx(0.005)
    usage = one["spent"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (1000, 100, False)
    assert one["spent"]["cost_usd"] == pytest.approx(0.005)
    assert one["first_token_s"] is None
    assert 0 < streams["first_token_s"] <= streams["seconds"]
    checked = podium("pool", "check", "--pool", "one.toml")
    assert checked.status == 0
    assert "1,000 / 100" in checked.out
    assert checked.out.splitlines()[-1] == "2 of 2 workers answered; $0.015 spent"
    assert len(server.requests) == 6


def test_a_check_shows_how_the_conductor_is_asked_for_plans(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    Path("one.toml").write_text(_worker("one", server.url))
    _, conductor = json.loads(podium("pool", "check", "--pool", "one.toml", "--json").out)
    assert conductor["plan_format"] == "as text"
    probed = len(server.requests)
    assert "conductor:one: is asked for plans as text" in podium("pool", "check", "--pool", "one.toml").out
    assert len(server.requests) == probed + 2


def test_a_check_is_paid_from_the_budget_of_the_day(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    Path("one.toml").write_text(AS_TEXT + _worker("one", server.url))
    Path("team.toml").write_text("budget = { day_usd = 5 }\n")
    assert podium("pool", "check", "--pool", "one.toml").status == 0
    with closing(SharedSpendLimit(default_state_path(), "day", 5)) as day:
        assert (day.spent_usd, day.reserved_usd) == (pytest.approx(0.01), 0)
    checked = podium("pool", "check", "--pool", "one.toml", "budget.day_usd=0.01", "--json")
    assert checked.status == 1
    assert [result["error"] for result in json.loads(checked.out)] == ["budget_exceeded", "budget_exceeded"]
    assert len(server.requests) == 2


def test_a_check_calls_all_workers_at_once(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    server.rules = [Rule(fault=Hang())]
    Path("many.toml").write_text("".join(_worker(f"w{i}", server.url) for i in range(8)))
    assert podium("pool", "check", "--pool", "many.toml", "--timeout", "1").status == 1
    assert server.peak == 8


def test_a_check_names_a_remedy_for_every_failure(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    monkeypatch.setenv("WRONG_KEY", "sk-hush-hush")
    monkeypatch.delenv("NO_KEY", raising=False)
    server.rules = [*server.rules, Rule(fault=Status(code=503), model="good")]
    workers = [
        _worker("unset", server.url, key="NO_KEY"),
        _worker("locked", server.url, key="WRONG_KEY"),
        _worker("model", server.url, "gooood"),
        _worker("path", server.url.removesuffix("/v1")),
        _worker("dead", "http://127.0.0.1:1/v1"),
        _worker("plain", server.url.replace("http:", "https:")),
        _worker("busy", server.url, "busy"),
        _worker("down", server.url),
    ]
    told = {
        "unset": ("unready", "variable NO_KEY is not set; put the key there"),
        "locked": ("status", "is the key right?"),
        "model": ("status", "does not exist or you do not have access to it (is model right?)"),
        "path": ("status", "are base_url and model right?"),
        "dead": ("connection", "See whether the server runs, and whether base_url is right."),
        "plain": ("connection", "TLS failed"),
        "busy": ("rate_limited", "set limits.rpm and limits.tpm to what the provider allows"),
        "down": ("status", "The provider has a problem: try again later, or name a fallback."),
    }
    Path("sick.toml").write_text("".join(workers))
    checked = podium("pool", "check", "--pool", "sick.toml", "--timeout", "20")
    assert checked.status == 1
    assert checked.out.splitlines()[-1] == "0 of 8 workers answered; $0 spent"
    *results, conductor = json.loads(
        podium("pool", "check", "--pool", "sick.toml", "--timeout", "20", "--json").out
    )
    assert (conductor["worker"], conductor["error"]) == ("conductor:unset", "unready")
    assert {result["worker"]: result["error"] for result in results} == {
        name: kind for name, (kind, _) in told.items()
    }
    for name, (_, sentence) in told.items():
        (line,) = [line for line in checked.out.splitlines() if line.startswith(f"{name}: ")]
        assert sentence in line
    assert "hush" not in checked.out + json.dumps(results)


def test_pool_check_passes_replay_workers_without_the_check_question(podium):
    recorded = ("r.parquet", "--tasks", str(write_sums(Path("sums.jsonl"))), "--questions", "2")
    assert podium("record", *recorded, "--pool", str(write_team(Path("team.toml")))).status == 0
    Path("replays.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "replay"\nprofile = "strong at sums"\nrecording = "r.parquet"\n'
    )
    worker, _ = json.loads(podium("pool", "check", "--pool", "replays.toml", "--json").out)
    assert worker["answered"]
    assert "1 of 1 worker answered" in podium("pool", "check", "--pool", "replays.toml").out


@pytest.mark.usefixtures("sums")
def test_a_team_is_listed_and_called_like_any_worker(podium):
    Path("one.toml").write_text('[[worker]]\nname = "ada"\nkind = "calculates"\nprice = { output = 6.0 }\n')
    Path("teams.toml").write_text(
        '[[worker]]\nname = "team"\nkind = "podium"\npool = "one.toml"\nplan.planner = "single:ada"\n'
        '[[worker]]\nname = "gone"\nkind = "podium"\npool = "gone.toml"\nplan.planner = "random"\n'
    )
    listed = podium("pool", "list", "--pool", "teams.toml")
    assert listed.status == 0
    assert "gone: not ready: gone.toml: there is no such file" in listed.out
    checked = podium("pool", "check", "--pool", "teams.toml")
    assert checked.status == 1
    assert checked.out.splitlines()[1].split()[:2] == ["team", "ok"]
    assert checked.out.splitlines()[-1] == "1 of 2 workers answered; $0 spent"


def test_pool_without_workers_or_with_an_unknown_key_is_refused(podium):
    Path("none.toml").write_text("")
    refused = podium("pool", "check", "--pool", "none.toml")
    assert refused.status == 2
    assert "at least one [[worker]]" in refused.err
    Path("typo.toml").write_text('[[worker]]\nname = "a"\nkind = "scripted"\nreplise = ["x"]\n')
    refused = podium("pool", "list", "--pool", "typo.toml")
    assert refused.status == 2
    assert "typo.toml, line 4: unknown key 'worker.a.replise'; did you mean 'replies'?" in refused.err
    assert podium("pool", "check", "--pool", "pool.toml", "--timeout", "0").status == 2


def test_pool_check_warns_of_surprising_settings(podium, server, monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", "right")
    server.rules = [Rule(fault=RefusedParameters(names=("temperature",)))]
    price = "price = { input = 3, output = 20 }\n"
    Path("odd.toml").write_text(
        _worker("free", server.url, more='fallback = "also-free"').replace(price, "")
        + _worker("also-free", server.url, more='fallback = "paid"').replace(price, "")
        + _worker("paid", server.url, more='fallback = "last"\ntemperature = 0.5')
        + _worker("last", server.url)
    )
    checked = podium("pool", "check", "--pool", "odd.toml")
    assert checked.status == 0
    for line in (
        "free: it has no price, and its fallback 'paid' costs money.",
        "also-free: it has no price, and its fallback 'paid' costs money.",
        "paid: its endpoint refuses temperature, and was asked without.",
    ):
        assert line in checked.out.splitlines()
    notes = [one["note"] for one in json.loads(podium("pool", "check", "--pool", "odd.toml", "--json").out)]
    assert [note is None for note in notes] == [False, False, False, True, True]
