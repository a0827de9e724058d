"""`podium eval FILE.toml`: declared on test, counted, killed and continued without paying twice, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podium.evals import Comparison
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium_testing import Answer, FaultServer
from refused_commands import one_sentence
from scripted_team import write_sums
from small_recording import record_small

Podium = Callable[..., Any]
SUITE = """
title = "Sums"
questions = 20
split = "test"
[[planner]]
planner = "single:ada"
controls = ["no-access"]
[[planner]]
planner = "self-consistency:bob:2"
[[tasks]]
name = "mine.parquet"
[[pool]]
name = "mine.toml"
"""


@pytest.fixture(autouse=True)
def _recording() -> None:
    """12 questions, of which ada knows the even ones and bob all."""
    record_small(
        Path("mine.parquet"), {"ada": lambda n: n % 2 == 0, "bob": lambda n: True}, questions=12, train=4
    )
    Path("mine.toml").write_text(
        "".join(
            f'[[worker]]\nname = "{name}"\nkind = "replay"\nrecording = "mine.parquet"\n'
            for name in ("ada", "bob")
        )
    )
    Path("s.toml").write_text(SUITE)


TEST = ("eval", "s.toml", "processes=1", "--run", "runs/r")


def test_a_run_on_test_is_declared_first_and_tables_count_the_looks(
    podium: Podium,
) -> None:
    refused = one_sentence(podium(*TEST))
    assert "a run on the test split is declared before it begins: say with --declare NOTE" in refused
    assert not Path("runs").exists()
    assert not Path("mine.looks.jsonl").exists()
    done = podium(*TEST, "--declare", "Once.", "--json")
    assert done.status == 0, done.err
    comparison = Comparison.model_validate_json(done.out)
    assert [row.accuracy.mean for row in comparison.rows] == [0.5, 0.5, 1.0]
    assert "Look 1 at the test split of mine.parquet, declared: Once." in comparison.notes
    assert podium(*TEST, "--json").out == done.out, "a declared run is continued, and is the same look"
    another = podium(*TEST, "repeats=2", "--declare", "Twice.", "--json")
    assert "resume" in another.err or "another configuration" in another.err
    other = podium(
        *("eval", "s.toml", "split=test", "processes=1", "repeats=2"),
        *("--run", "runs/q", "--declare", "Again.", "--json"),
    )
    assert "Look 2 at the test split" in str(Comparison.model_validate_json(other.out).notes)
    lines = [json.loads(line) for line in Path("mine.looks.jsonl").read_text().splitlines()]
    assert [line["note"] for line in lines] == ["Once.", "Again."]
    both = podium("report", "runs/r", "runs/q")
    assert both.out == "runs/r/report.html\n"
    assert Path("runs/r/report.html").read_text().count("<section>") == 2
    assert "runs has neither metrics nor suite.json" in one_sentence(podium("report", "runs/r", "runs"))


def test_a_run_on_validation_can_be_declared_too(podium: Podium) -> None:
    knows = {"ada": lambda n: n % 2 == 0, "bob": lambda n: True}
    record_small(Path("mine.parquet"), knows, questions=12, train=4, held_out="validation")
    run = ("eval", "s.toml", "split=validation", "processes=1", "--run", "r", "--declare", "Once.", "--json")
    done = podium(*run)
    assert done.status == 0, done.err
    assert "Look 1 at the validation split of mine.parquet, declared: Once." in done.out
    lines = [json.loads(line) for line in Path("mine.looks.jsonl").read_text().splitlines()]
    assert [(line["split"], line["note"]) for line in lines] == [("validation", "Once.")]


def test_an_evaluation_by_options_counts_its_look_and_says_if_undeclared(podium: Podium) -> None:
    mine = ("eval", "--tasks", "mine.parquet", "--pool", "mine.toml", "--json")
    first = podium(*mine)
    assert first.status == 0, first.err
    assert "Look 1 at the test split of mine.parquet, not declared." in first.out
    assert "Look 2 at the test split of mine.parquet, declared: A second seed." in (
        podium(*mine, "--seed", "1", "--declare", "A second seed.").out
    )
    assert podium(*mine).out == first.out
    assert podium(*mine, "--split", "tests").status == 2
    assert len(Path("mine.looks.jsonl").read_text().splitlines()) == 2, "what is refused is no look"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (("--questions", "5"), "The file of a suite takes the place of --questions; set it in s.toml."),
        (("--conductor", "x"), "The file of a suite takes the place of --conductor; set it in s.toml."),
        (("planer.name=x",), "unknown key 'planer'; did you mean 'planner'?"),
        (("split=train", "--declare", "x"), "this one has neither, so leave it out."),
        (("pool.0.name=gone.toml",), "gone.toml: there is no such file"),
        (('planner.0.controls=["all-access"]',), "a recording has only answers to the bare question"),
        (("planner.0.planner=random",), "a recording has only answers to the bare question"),
    ],
)
def test_unusable_suite_options_are_refused_in_one_sentence(
    podium: Podium, tokens: tuple[str, ...], said: str
) -> None:
    assert said in one_sentence(podium("eval", "s.toml", "--run", "r", *tokens))
    assert not Path("r").exists()


def test_a_suite_without_a_folder_is_refused(podium: Podium) -> None:
    assert "A suite needs --run FOLDER" in one_sentence(podium("eval", "s.toml"))


# --- a paid Conductor -------------------------------------------------------------------------------------

CONDUCTED = """
questions = 3
training = 4
concurrency = 1
split = "validation"
[[planner]]
conductor = {{ base_url = "{url}", model = "m", price = {{ output = 1.0 }} }}
controls = ["most-frequent-plan"]
[[pool]]
name = "free.toml"
[[tasks]]
name = "sums.jsonl"
"""


def test_plans_of_a_paid_conductor_and_a_control_count_in_the_runs_limit(podium: Podium) -> None:
    plan = Answer(
        'model_id = [0]\nsubtasks = ["Do it."]\naccess_list = [[]]', input_tokens=500, output_tokens=1000
    )
    with FaultServer(lambda messages, body: plan).in_thread() as endpoint:
        write_sums(Path("sums.jsonl"), 100, splits=("train", "validation"))
        Path("conducted.toml").write_text(CONDUCTED.format(url=endpoint.url))
        Path("free.toml").write_text('[[worker]]\nname = "one"\nkind = "scripted"\nreplies = { "" = "1" }\n')
        measured = podium("eval", "conducted.toml", "--run", "r", "--day-budget-usd", "1")
        assert measured.status == 0, measured.err
        calls = len(endpoint.requests)
        with closing(SharedSpendLimit(Path("r/spending.sqlite"), "run", 1.0)) as spend_limit:
            assert spend_limit.spent_usd == pytest.approx(0.001 * calls)
        assert calls == 6 + 103  # Six probes of a server that obeys no format, and the plans.
        refused = podium("eval", "conducted.toml", "seeds=2", "--run", "s", "--day-budget-usd", "0.1095")
        assert (refused.status, refused.out) == (1, "")
        assert "of the day's $0.1095 are left" in refused.err
        assert len(endpoint.requests) == calls
