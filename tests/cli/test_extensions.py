"""Another package adds a planner with one file and one entry point, and a verb takes one row of a table."""

import json
from pathlib import Path

import pytest

from installed_package import install_package
from podium.planners import baseline_syntaxes
from scripted_team import write_sums, write_team
from tiny_policy import write_policy

PLANNER = """
from podium.planners import PlannerSpec, Single
from podium.errors import ConfigError


def open_last(context):
    if context.argument == "nobody":
        raise ConfigError("The baseline 'last' needs a worker.")
    return Single(context.pool[-1].name)


LAST = PlannerSpec("last:ANYTHING", open_last, rows=lambda workers: [("The last worker", "last:")])
"""


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entries = "[podium.planners]\nlast = own_planners:LAST\n"
    install_package(monkeypatch, tmp_path / "site", "own_planners", entries, PLANNER)


@pytest.mark.usefixtures("outside")
def test_a_planner_of_another_package_answers_a_question(podium):
    workers = Path("pool.toml").read_text().replace("replies = { Check", "replies = { Answer")
    Path("pool.toml").write_text(workers)
    asked = podium("ask", "Hm?", "--pool", "pool.toml", "--planner", "last:x", "--json", "--no-store")
    trace = json.loads(asked.out)
    assert (asked.status, trace["answer"]) == (0, "Right.\nAnswer: 5")
    assert [step["worker"] for step in trace["rounds"][0]["spans"]] == ["bob"]


@pytest.mark.usefixtures("outside")
def test_installed_planner_is_listed_and_reports_its_own_errors(podium):
    assert "last:ANYTHING" in baseline_syntaxes()
    for planner, sentence in (("lost:x", "did you mean last:ANYTHING?"), ("last:nobody", "needs a worker")):
        refused = podium("ask", "Hm?", "--pool", "pool.toml", "--planner", planner)
        assert (refused.status, sentence in refused.err) == (2, True)


@pytest.mark.usefixtures("outside")
def test_installed_planner_has_a_row_in_every_comparison(podium):
    asked = ("--tasks", str(write_sums(Path("sums.jsonl"))), "--questions", "3", "eval.tuning=0")
    conductor = ("--conductor", str(write_policy(Path("policy"))))
    compared = podium("eval", *asked, *conductor, "--pool", str(write_team(Path("two.toml"))), "--json")
    rows = json.loads(compared.out)["rows"]
    assert [row["kind"] for row in rows if row["label"] == "The last worker"] == ["other"]


VERB = """
from podium.cli.app import Verb

GREET = Verb("greet", "own_verb:greet", "Greet a person.", "podium greet Ada")
TAKEN = Verb("ask", "own_verb:greet", "Greet a person.", "podium ask Ada")


def greet(name: str, /) -> int:
    print(f"Hello, {name}.")
    return 0
"""


def install_verb(monkeypatch: pytest.MonkeyPatch, site: Path, entry: str) -> None:
    install_package(monkeypatch, site, "own_verb", f"[podium.verbs]\ngreet = own_verb:{entry}\n", VERB)


def test_a_verb_of_another_package_runs_and_is_listed(podium, monkeypatch, tmp_path):
    install_verb(monkeypatch, tmp_path, "GREET")
    assert podium("greet", "Ada").out == "Hello, Ada.\n"
    assert "Greet a person." in podium("--help").out
    assert "podium greet Ada" in podium("greet", "--help").out


@pytest.mark.parametrize("entry", ["MISSING", "greet", "TAKEN"])
def test_broken_installed_verb_leaves_built_in_verbs_usable(podium, monkeypatch, tmp_path, entry):
    install_verb(monkeypatch, tmp_path, entry)
    refused = podium("greet", "Ada")
    assert (refused.status, f"own_verb:{entry}" in refused.err) == (2, True)
    assert podium("pool", "list", "--pool", "pool.toml").status == 0


def test_two_verbs_with_the_same_words_harm_only_who_names_them(podium, monkeypatch, tmp_path):
    install_verb(monkeypatch, tmp_path, "GREET\ngreet-too = own_verb:GREET")
    assert podium("--version").status == 0
    refused = podium("greet", "Ada")
    assert (refused.status, "'greet-too' is own_verb:GREET" in refused.err) == (2, True)
