"""`podium.toml` fills the options that a command leaves out; `podium config show` says where each value is from."""

import json
from pathlib import Path

import pytest
from cyclopts import MissingArgumentError

from podium.cli.app import VERBS, build_app
from podium.cli.found_files import FoundFiles
from podium.cli.settings_file import OPTIONS, PodiumSettings, SettingsFile
from podium.cli.trusted import trust
from podium.errors import ConfigError
from podium.trace import Trace

FILE = """
pool = "pool.toml"
store = "own/traces.sqlite"

[conductor]
planner = "constant:plan.txt"

[budget]
calls = 1
"""


def write_trusted(text: str) -> Path:
    path = Path("podium.toml")
    path.write_text(text)
    trust(FoundFiles.read(path))
    return path


@pytest.fixture
def file() -> Path:
    return write_trusted(FILE)


def trace_of(outcome) -> Trace:
    return Trace.model_validate_json(outcome.out)


def shown(podium, *tokens: str) -> dict[str, dict]:
    return {row["key"]: row for row in json.loads(podium("config", "show", "--json", *tokens).out)}


@pytest.mark.usefixtures("file")
def test_the_file_fills_what_the_command_leaves_out(podium):
    trace = trace_of(podium("ask", "What is 2 + 3?", "--json"))
    assert (trace.planner, [profile.name for profile in trace.pool]) == (
        "constant:plan.txt",
        ["ada", "bob"],
    )
    assert (trace.calls, trace.budget.calls) == (1, 1)
    assert Path("own/traces.sqlite").is_file()


@pytest.mark.usefixtures("file")
def test_an_option_overrides_the_file_and_the_file_the_default(podium):
    trace = trace_of(podium("ask", "What is 2 + 3?", "--json", "--budget-calls", "9"))
    assert (trace.calls, trace.budget.calls, trace.budget.rounds) == (2, 9, 1)


@pytest.mark.usefixtures("file")
def test_an_option_that_names_a_planner_replaces_the_table_of_the_conductor(podium):
    asked = podium("ask", "Hm?", "--conductor", "warmstart", "--json")
    assert trace_of(asked).planner != "constant:plan.txt"
    assert shown(podium, "--conductor", "warmstart")["conductor.planner"]["origin"] == "default"


def test_another_file_is_named_and_its_paths_are_relative_to_its_folder(podium, file):
    folder = Path("elsewhere")
    folder.mkdir()
    for name in ("podium.toml", "pool.toml", "plan.txt"):
        Path(name).rename(folder / name)
    assert podium("ask", "Hm?", "--planner", "random", "--config", "elsewhere/podium.toml").status in (0, 1)
    assert (folder / "own/traces.sqlite").is_file()
    assert podium("ask", "Hm?", "--config=none.toml").err.startswith(
        "podium: none.toml: there is no such file"
    )
    assert "names no file" in podium("ask", "Hm?", "--config").err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "pool = 'pool.toml'\nmax_stepz = 3\n",
            "podium.toml, line 2: unknown key 'max_stepz'; did you mean 'max_steps'?",
        ),
        (
            "[serve]\nport = '80'\n",
            'podium.toml, line 2: serve.port is "80", but it should be a whole number.',
        ),
        ("[server]\nport = 80\n", "podium.toml, line 1: unknown key 'server'; did you mean 'serve'?"),
    ],
)
def test_what_the_file_cannot_hold_is_refused_with_its_line(podium, text, sentence):
    Path("podium.toml").write_text(text)
    for command in (("ask", "Hm?"), ("config", "show")):
        refused = podium(*command)
        assert (refused.status, refused.err) == (2, f"podium: {sentence}\n")
    assert podium("ask", "--help").status == 0


@pytest.mark.usefixtures("file")
def test_what_holds_is_shown_whole_with_where_it_is_from(podium, monkeypatch):
    rows = shown(podium, "--budget-calls", "5")
    assert rows["budget.calls"] | {"key": ""} == {
        "key": "", "option": "--budget-calls", "value": "5", "origin": "option", "place": "--budget-calls",
    }  # fmt: skip
    assert (rows["pool"]["value"], rows["pool"]["place"]) == ("pool.toml", "podium.toml, line 2")
    assert (rows["serve.port"]["value"], rows["serve.port"]["origin"]) == (8080, "default")
    assert list(rows) == list(OPTIONS)
    table = podium("config", "show").out
    assert "podium.toml, line 6" in table
    monkeypatch.setenv("COLUMNS", "60")
    assert "…" not in podium("config", "show").out
    refused = podium("config", "show", "--budget-cals", "5")
    assert "did you mean '--budget-calls'?" in refused.err


def test_lists_and_flags_reach_the_parser(podium):
    write_trusted(
        "[conductor]\nurl = 'http://127.0.0.1:9'\nmodel = 'm'\nprice = [1.0, -2.0]\n"
        "[serve]\ncors = ['http://a.example', 'nonsense']\nviewer = false\n"
    )
    assert "--conductor-price is below 0" in podium("ask", "Hm?", "--pool", "embedded").err
    write_trusted("[serve]\ncors = ['http://a.example', 'nonsense']\nviewer = false\n")
    assert "podium: --cors nonsense: give an origin" in podium("serve").err


def test_the_limits_of_a_question_are_no_limits_of_a_run_or_a_key():
    Path("podium.toml").write_text("[budget]\nusd = 0.1\ncalls = 3\nday_usd = 9\n")
    app = build_app(SettingsFile(None).fill)

    def parsed(command: str) -> dict:
        return app.parse_args(command.split(), exit_on_error=False, print_error=False)[1].arguments

    assert parsed("ask Hm?")["budget"].budget_usd == 0.1
    assert parsed("keys add web").get("budget_usd") is None
    recording = parsed("record x.parquet")
    assert recording.keys().isdisjoint({"budget_usd", "budget_calls"})
    assert recording["calls"].day_budget_usd == 9
    with pytest.raises(MissingArgumentError, match="--budget"):
        parsed("pool compose candidates.csv questions.csv")


def test_tables_of_one_verb_say_nothing_to_others(podium):
    write_trusted("[serve]\ntimeout = -1.0\n")
    assert podium("pool", "check", "--pool", "pool.toml", "--json").status in (0, 1)
    assert "--timeout" in podium("serve").err


def test_a_run_of_ones_own_comes_before_the_file(podium):
    write_trusted("pool = 'none.toml'\n[conductor]\ncheckpoint = 'none'\n")
    assert "none" in podium("eval", "--questions", "1").err
    Path("run").mkdir()
    compared = podium("eval", "--run", "run", "--questions", "1", "--tuning", "0", "--untrained", "none")
    assert compared.status == 0


def test_every_setting_is_an_option_with_the_same_default():
    app = build_app()
    parsed: dict[str, dict[str, object]] = {}
    for verb in VERBS:
        _, apps, _ = app.parse_commands(verb.words.split())
        arguments = apps[-1].assemble_argument_collection(parse_docstring=True)
        parsed[verb.words] = {name: a.field_info.default for a in arguments for name in a.names}
    defaults = PodiumSettings().model_dump()
    for key, option in OPTIONS.items():
        table, _, name = key.rpartition(".")
        expected = defaults[table][name] if table else defaults[name]
        verb = table if table in ("serve", "eval") else "serve"
        assert option in parsed[verb], key
        assert parsed[verb][option] == (False if key == "serve.viewer" else expected), key


def test_without_a_file_nothing_is_given():
    assert list(SettingsFile(None).given()) == []
    with pytest.raises(ConfigError, match="there is no such file"):
        SettingsFile(Path("podium.toml"))
