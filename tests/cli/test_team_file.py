"""team.toml and key=value say all of a team; `podium config show` says where each value is from."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from podium.cli import team_options
from podium.cli.found_files import FoundFiles
from podium.cli.team_options import OPTION_KEYS, TeamOptions
from podium.cli.trust import trust
from podium.team.settings import TeamSettings
from podium.team.team_file import TeamReference, open_pool
from podium.trace import Trace
from scripted_team import write_sums, write_team
from tiny_policy import write_policy

FILE = """
pool = "pool.toml"
store = "own/traces.sqlite"

[plan]
planner = "constant:plan.txt"

[budget]
calls = 1
"""


def write_trusted(text: str) -> Path:
    path = Path("team.toml")
    path.write_text(text)
    trust(FoundFiles(path))
    return path


@pytest.fixture
def file() -> Path:
    return write_trusted(FILE)


def trace_of(outcome) -> Trace:
    return Trace.model_validate_json(outcome.out)


def shown(podium, *tokens: str) -> dict[str, dict]:
    return {row["key"]: row for row in json.loads(podium("config", "show", "--json", *tokens).out)}


@pytest.mark.usefixtures("file")
def test_team_file_supplies_options_missing_on_the_command_line(podium):
    trace = trace_of(podium("ask", "What is 2 + 3?", "--json"))
    assert (trace.planner, [profile.name for profile in trace.pool]) == ("constant:plan.txt", ["ada", "bob"])
    assert (trace.calls, trace.budget.calls) == (1, 1)
    assert Path("own/traces.sqlite").is_file()


@pytest.mark.usefixtures("file")
def test_command_line_key_overrides_the_team_file_and_its_default(podium):
    trace = trace_of(podium("ask", "What is 2 + 3?", "budget.calls=9", "--json"))
    assert (trace.calls, trace.budget.calls, trace.budget.rounds) == (2, 9, 1)
    slow = trace_of(podium("ask", "What is 2 + 3?", "worker.ada.price.input=9", "--json"))
    assert slow.pool[0].price.input == 9


def test_a_conductor_on_the_command_line_replaces_that_of_the_file(podium):
    Path("own.toml").write_text(
        '[conductor]\nworker = "ada"\nfallback = "bob"\n' + Path("pool.toml").read_text()
    )
    team = TeamReference("own.toml", ("conductor.checkpoint=mine",)).read()
    assert (team.conductor.worker, team.conductor.checkpoint, team.conductor.fallback) == (
        None,
        "mine",
        "bob",
    )
    refused = podium("ask", "Hm?", "--team", "own.toml", "--planner", "single:ada", "--conductor", "mine")
    assert (refused.status, "--conductor" in refused.err) == (2, True)


def test_another_pool_replaces_workers_planner_and_conductor_of_the_file():
    Path("own.toml").write_text(
        '[conductor]\nworker = "bob"\n[plan]\nplanner = "single:bob"\n[budget]\nusd = 1.0\n'
        + Path("pool.toml").read_text()
    )
    Path("other.toml").write_text('[[worker]]\nname = "tom"\nkind = "scripted"\nreplies = ["4"]\n')
    team = TeamReference("own.toml", ("pool=other.toml",)).read()
    assert [worker.name for worker in team.worker] == ["tom"]
    assert (team.plan.planner, team.conductor.worker, team.budget.usd) == ("conductor", None, 1.0)


def test_team_file_without_workers_takes_workers_and_conductor_of_its_pool():
    folder = Path("large")
    folder.mkdir()
    (folder / "team.toml").write_text(
        '[conductor]\nworker = "bob"\nplans = "text"\n[plan]\nmax_steps = 3\nearly_stop = true\n'
        + Path("pool.toml").read_text()
    )
    Path("own.toml").write_text(
        'pool = "large/team.toml"\n[plan]\nmax_steps = 2\n[conductor]\nfallback = "ada"\n'
    )
    team = TeamReference("own.toml").read()
    assert [worker.name for worker in team.worker] == ["ada", "bob"]
    assert (team.plan.max_steps, team.plan.early_stop) == (2, True)
    assert (team.conductor.worker, team.conductor.plans, team.conductor.fallback) == ("bob", "text", "ada")
    assert team.source is not None
    assert team.source.folder == folder


def test_another_file_is_named_and_its_paths_are_relative_to_its_folder(podium, file):
    folder = Path("elsewhere")
    folder.mkdir()
    for name in ("team.toml", "pool.toml", "plan.txt"):
        Path(name).rename(folder / name)
    asked = podium("ask", "What is 2 + 3?", "--team", "elsewhere/team.toml", "--json")
    assert trace_of(asked).planner == "constant:elsewhere/plan.txt"
    assert (folder / "own/traces.sqlite").is_file()
    assert podium("ask", "Hm?", "--team=none.toml").err.startswith("podium: none.toml: there is no such file")
    assert podium("ask", "Hm?", "--team", "elsewhere/team.toml", "--no-team").status == 2


def test_paths_of_overrides_are_relative_to_the_working_folder(podium) -> None:
    worker = '[[worker]]\nname = "w"\nkind = "command"\ncommand = ["cat"]\nfolder = "own"\n'
    for folder in ("there/own", "here"):
        Path(folder).mkdir(parents=True)
    Path("there/g.toml").write_text(worker)
    for keys, is_ready in (((), True), (("worker.w.folder=here",), True), (("worker.w.folder=own",), False)):
        listed = podium("pool", "list", "--team", "there/g.toml", *keys)
        assert ("not ready" not in listed.out) == is_ready
    refused = podium("ask", "Hm?", "--team", "there/g.toml", "ratings=r.json")
    assert f"{Path.cwd() / 'r.json'}: cannot be read" in refused.err


def test_texts_of_overrides_that_are_paths_lead_to_the_working_folder(podium) -> None:
    Path("there").mkdir()
    scripted = '[[worker]]\nname = "w"\nkind = "scripted"\nreplies = {{ "" = "{}" }}\n'
    for file, reply in (("there/inner.toml", "there"), ("inner.toml", "here")):
        Path(file).write_text(scripted.format(reply))
    Path("there/outer.toml").write_text('[[worker]]\nname = "t"\nkind = "podium"\npool = "inner.toml"\n')
    asked = ("ask", "Hm?", "--team", "there/outer.toml", "--planner", "single:t")
    assert podium(*asked).out.splitlines()[-1] == "there"
    assert podium(*asked, "worker.t.pool=inner.toml").out.splitlines()[-1] == "here"
    Path("there/g.toml").write_text('[[worker]]\nname = "g"\nkind = "gguf"\nfile = "hub:a/b/c.gguf"\n')
    refused = podium("ask", "Hm?", "--team", "there/g.toml", "worker.g.file=own.gguf")
    assert f"there is no file {Path.cwd() / 'own.gguf'};" in refused.err


def test_a_pool_of_a_file_is_no_file_of_the_working_folder(podium) -> None:
    Path("teams/teams").mkdir(parents=True)
    for path, name in (("rp", "a"), ("teams/inner", "b"), ("teams/teams/inner", "c")):
        Path(f"{path}.toml").write_text(f'[[worker]]\nname = "{name}"\nkind = "scripted"\nreplies = ["5"]\n')
    Path("teams/p.toml").write_text('pool = "rp.toml"\n')
    assert (
        "podium: teams/rp.toml: there is no such file" in podium("pool", "list", "--team", "teams/p.toml").err
    )
    Path("teams/outer.toml").write_text('[[worker]]\nname = "t"\nkind = "podium"\npool = "inner.toml"\n')
    (worker,) = open_pool("teams/outer.toml")
    assert worker.runner.pool.names == ("b",)


@pytest.mark.parametrize("key", ["pool", "ratings"])
def test_a_name_that_no_file_can_have_is_refused(key: str, podium) -> None:
    rest = "" if key == "pool" else '[[worker]]\nname = "t"\nkind = "vote"\n'
    Path("odd.toml").write_text(f'{key} = "\\u0000"\n{rest}')
    refused = podium("ask", "Hm?", "--team", "odd.toml")
    assert (refused.status, refused.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "pool = 'pool.toml'\n[plan]\nmax_stepz = 3\n",
            "team.toml, line 3: unknown key 'plan.max_stepz'; did you mean 'max_steps'?",
        ),
        ("[serve]\nport = '80'\n", 'team.toml, line 2: serve.port is "80", but it should be a whole number.'),
        ("[server]\nport = 80\n", "team.toml, line 1: unknown key 'server'; did you mean 'serve'?"),
        (FILE + '[[worker]]\nname = "x"\nkind = "vote"\n', "keep one of them"),
    ],
    ids=["a key", "a value", "a table", "two kinds of workers"],
)
def test_invalid_team_file_setting_is_refused_with_its_line(podium, text, sentence):
    write_trusted(text)
    for command in (("ask", "Hm?"), ("config", "show")):
        refused = podium(*command)
        assert (refused.status, sentence in refused.err) == (2, True), refused.err
    assert podium("ask", "--help").status == 0


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("budget.cals=5", "did you mean 'calls'?"),
        ("budget.usd=-1", "Override 'budget.usd'"),
        ("worker.adam.latency=1", "did you mean 'ada'?"),
        ("nonsense", "KEY=VALUE"),
    ],
)
def test_a_key_that_cannot_be_set_is_refused(podium, key, said):
    refused = podium("ask", "Hm?", key, "--pool", "pool.toml")
    assert (refused.status, said in refused.err) == (2, True), refused.err


@pytest.mark.usefixtures("file")
def test_config_show_lists_every_setting_with_its_origin(podium, monkeypatch):
    rows = shown(podium, "budget.calls=5", "--planner", "single:ada")
    assert rows["budget.calls"] == {
        "key": "budget.calls", "value": 5, "origin": "override", "place": "budget.calls",
    }  # fmt: skip
    assert (rows["plan.planner"]["value"], rows["plan.planner"]["origin"]) == ("single:ada", "override")
    assert (rows["pool"]["value"], rows["pool"]["place"]) == ("pool.toml", "team.toml, line 2")
    assert rows["worker"]["value"] == "ada, bob"
    assert (rows["serve.port"]["value"], rows["serve.port"]["origin"]) == (8080, "default")
    assert "team.toml, line 6" in podium("config", "show").out
    monkeypatch.setenv("COLUMNS", "60")
    assert "…" not in podium("config", "show").out


def test_every_short_option_maps_to_an_existing_setting():
    options = [
        made
        for made in vars(team_options).values()
        if isinstance(made, type) and issubclass(made, TeamOptions)
    ]
    names = {field.name for made in options for field in fields(made)}
    assert names - {"team", "no_team"} == set(OPTION_KEYS)
    for key in OPTION_KEYS.values():
        table, _, name = key.rpartition(".")
        known = TeamSettings.model_fields if not table else type(getattr(TeamSettings(), table)).model_fields
        assert name in known, key


def test_the_limits_of_a_question_are_no_limits_of_a_recording(podium):
    Path("team.toml").write_text("[budget]\nusd = 0.1\ncalls = 3\nday_usd = 9\n")
    recorded = ("x.parquet", "--tasks", str(write_sums(Path("sums.jsonl"))), "--questions", "10")
    told = podium("record", *recorded, "--pool", str(write_team(Path("two.toml"))), "--json")
    assert "limits alone" in told.err
    assert json.loads(told.out)["responses"] > 3


def test_named_run_overrides_the_team_file(podium):
    write_trusted("pool = 'none.toml'\n[conductor]\ncheckpoint = 'none'\n")
    tasks, pool = write_sums(Path("sums.jsonl")), write_team(Path("two.toml"))
    assert "none" in podium("eval", "--tasks", str(tasks), "--questions", "1").err
    write_policy(Path("run/policy"))
    Path("run/config.json").write_text(json.dumps({"tasks": str(tasks), "pool": str(pool)}))
    compared = podium("eval", "--run", "run", "--questions", "1", "eval.tuning=0")
    assert compared.status == 0, compared.err


def test_without_a_team_a_command_names_the_way_out(podium):
    for verb in (("ask", "Hm?"), ("plan", "Hm?"), ("serve",), ("pool", "list"), ("pool", "check")):
        refused = podium(*verb)
        assert (refused.status, "podium init" in refused.err) == (2, True), verb
