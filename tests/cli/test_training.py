import json
from pathlib import Path

import pytest

from podium.evals import Comparison
from scripted_team import write_sums, write_team
from tiny_policy import FIRST, write_policy

EVAL = ("eval", "--tasks", "sums.jsonl", "--pool", "pool.toml")
DATA = ("tasks=sums.jsonl", "pool=two.toml")
SHORT = ("grpo.iterations=2", "grpo.questions=2", "grpo.group=2", "grpo.max_tokens=16", *DATA)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A policy that has learned nothing: half of what it writes is no plan."""
    return write_policy(tmp_path_factory.mktemp("start") / "policy", "no plan", FIRST)


@pytest.fixture(autouse=True)
def _data():
    """30 questions of each split, and two workers that each give one answer to all."""
    write_sums(Path("sums.jsonl"), 30, ("train", "validation", "test"))
    write_team(Path("two.toml"))


def rows(run):
    return [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]


def test_a_run_is_trained_evaluated_and_reported(podium, start):
    trained = podium(
        "train", "--run", "r", f"start={start}", *SHORT, "grpo.eval_every=2", "grpo.eval_questions=2"
    )
    assert (trained.status, trained.err) == (0, "")
    assert "Training r: 2 iterations" in trained.out.splitlines()  # After "loading", where that takes long.
    assert trained.out.endswith("The trained policy is in r/policy\n")
    first, second = rows("r")
    assert "evaluation" not in first
    assert second["evaluation"]["questions"] == 2

    evaluated = podium(
        *(
            "eval",
            "--run",
            "r",
            "--untrained",
            str(start),
            "--questions",
            "3",
            "eval.tuning=0",
            "--max-steps",
            "2",
            "--json",
        )
    )
    assert evaluated.status == 0
    comparison = Comparison.model_validate_json(evaluated.out)
    assert comparison == Comparison.load(Path("r/comparison.json"))
    assert {"conductor", "control", "single", "random", "oracle"} <= {row.kind for row in comparison.rows}
    assert comparison.rows[1].label == "Conductor: untrained"

    Path("r/report.html").unlink()
    assert podium("report", "r").out == "r/report.html\n"
    page = Path("r/report.html").read_text()
    for part in ("Training: 2 iterations", "Plans before and after training", "Conductor: untrained"):
        assert part in page


def test_the_same_command_goes_on_and_another_configuration_is_refused(podium, start):
    command = ("train", "--run", "r", f"start={start}", *SHORT)
    assert podium(*command).status == 0
    before = rows("r")
    assert podium(*command).status == 0
    assert rows("r") == before
    refused = podium(*command, "grpo.lr=1e-5")
    assert refused.status == 2
    assert "r is a run of another configuration: grpo.lr was 1e-06 and is now 1e-05" in refused.err
    assert rows("r") == before


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["train"], "--run"),
        (["train", "--run", "r", "grpo.itterations=3"], "did you mean 'iterations'?"),
        (["train", "--run", "r", "--config", "none.toml"], "none.toml: there is no such file"),
        (["train", "--run", "r", "start=kept"], "kept is not a folder"),
        (["train", "--run", "r", "--stage", "warmstart", "stagez=1"], "did you mean 'stages'?"),
        (
            ["train", "--run", "r", "--stage", "orchestra", "workers=['jori']"],
            "'jori' is no worker of the orchestra; did you mean 'jory'?",
        ),
        (["train", "--run", "r", "--stage", "warm"], "no stage 'warm'"),
        (
            ["train", "--run", "r", "--stage", "warmstart", "--run-budget-usd", "1"],
            "The stage warmstart reads no options of workers' calls; leave budgets and cache out.",
        ),
        (
            ["train", "--run", "r", "engine=trl", "start=warmstart", "stage=sft"],
            "stage = 'sft', and the command says --stage grpo: give --stage sft",
        ),
        (
            [
                "train",
                "--run",
                "r",
                "--stage",
                "sft",
                "start=warmstart",
                "engine=shared_prefix",
                "trl.bf16=true",
            ],
            "trl is a setting of the engine trl, and this run's is shared_prefix",
        ),
        (
            ["eval", "--questions", "0"],
            "eval.questions is 0",
        ),
        (["eval", "--planner", "random"], "No team is named"),
        ([*EVAL, "--split", "train", "eval.tuning=4"], "evaluate on another --split"),
        ([*EVAL, "--conductor", "kept"], "kept is not a folder"),
        (["report", "kept"], "kept: there is no such run folder"),
    ],
)
def test_asking_wrongly_is_one_sentence_and_status_2_and_writes_nothing(podium, tokens, message):
    write_sums(Path("sums.jsonl"))
    before = sorted(Path.cwd().rglob("*"))
    asked = podium(*tokens)
    assert (asked.status, asked.out) == (2, "")
    assert message in asked.err
    assert asked.err.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.nightly
def test_the_training_of_a_worker_prints_each_of_its_rows(podium):
    trained = podium(
        *("train", "--stage", "orchestra", "--run", "r", "workers=['jory']", "steps=1", "plan_steps=0"),
        *("parts=1", "batch=2", "vocabulary=600", "vocabulary_lessons=20", "layers=1"),
    )
    assert (trained.status, trained.err) == (0, "")
    first, last = trained.out.splitlines()
    assert first.startswith("jory  step 3  loss ")
    assert last == "The workers are in r; their team file is r/pool.toml"
