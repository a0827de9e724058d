"""`podium train --dry-run`: what it tells, whom it asks, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.calls import CallState
from podium.cli import run
from podium.cli.score_server import scoring_settings
from podium.conductor.prompt import PromptSettings
from podium.train.worker_trial import pair_workers, try_workers
from podium_testing import Answer, FaultServer, Rule, Status
from scripted_team import Sums, open_team
from tiny_policy import BRIEF

WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
price = {{ input = 1.0, output = 2.0 }}
limits = {{ retries = 0 }}
"""
VOTE = '[[worker]]\nname = "vote"\nkind = "vote"\n'


@pytest.fixture
def config(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run over simulated workers, as a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "kept" / "traces.sqlite"))
    prompt = {key: value for key, value in settings["prompt"].items() if value is not None}
    grpo = settings["grpo"]
    lines = ['engine = "trl"', "task_limit = 20"]
    lines += [f"{key} = {json.dumps(settings[key])}" for key in ("start", "pool", "tasks")]
    for table, values in (("prompt", prompt), ("grpo", grpo), ("trl", settings["trl"])):
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path = tmp_path / "run.toml"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def hub_start(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The start in the cache of the Hugging Face hub, beside a podium.json."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "hub" / "models--someone--tiny"
    snapshot = repository / "snapshots" / ("0" * 40)
    shutil.copytree(settings["start"], snapshot)
    (snapshot / "podium.json").write_text(json.dumps(BRIEF))
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text("0" * 40)
    return "someone/tiny"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """Answers as one model, and fails as another."""
    rules = [Rule(fault=Status(code=401), model="bo")]
    with FaultServer(
        models={"ada": Answer("Answer: 42", input_tokens=100, output_tokens=10), "bo": "never"}, rules=rules
    ).in_thread() as made:
        yield made


def dry_run(config: Path, *more: str) -> int:
    return run(["train", "--dry-run", "--config", str(config), *more])


def test_a_run_over_simulated_workers_is_estimated_and_leaves_nothing(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    assert dry_run(config) == 0
    told = capsys.readouterr().out

    assert "2 iterations of 2 questions x 4 plans, from " in told
    assert "all of them are scripted or recorded, so nothing is paid." in told
    assert "This assumes 16 plans" in told
    assert "GPU, by formulas" in told
    assert "Nothing stops this run." in told
    assert "6 of 6 answered; $0 spent." in told
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_dry_run_as_json_prints_one_object(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dry_run(config, "--json", "grpo.eval_every=2", "grpo.eval_questions=3") == 0
    told = json.loads(capsys.readouterr().out)

    assert told["problems"] == []
    assert told["workers"]["plans"] == 16 + 3  # Of the batches, and of one evaluation.
    assert told["workers"]["cost_usd"]["low"] < told["workers"]["cost_usd"]["likely"]
    assert told["gpu"]["memory"]["weights"] > 0
    assert told["hours"] > 0
    assert {trial["worker"] for trial in told["trials"]} == set(open_team().names)
    assert all(trial["answered"] and trial["score"] in (0.0, 1.0) for trial in told["trials"])


def test_a_start_on_the_hub_is_prompted_as_its_podium_json_says(
    config: Path, hub_start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _, after = config.read_text().partition("[prompt]")
    config.write_text(before + after[after.index("[grpo]") :])
    overrides = (f"start={hub_start}", "revision=v1", "prompt.examples=0")
    assert dry_run(config, "--json", *overrides) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    read = scoring_settings(config, overrides).prompt
    assert read == PromptSettings(examples=0, **BRIEF["prompt"])


def test_dry_run_counts_no_more_evaluation_questions_than_there_are(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run(config, "--json", "grpo.eval_every=2", "grpo.eval_questions=1000") == 0
    assert json.loads(capsys.readouterr().out)["workers"]["plans"] == 16 + 20


def test_a_run_that_would_be_refused_lists_all_reasons_and_calls_no_worker(
    config: Path, server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pool.toml").write_text(WORKER.format(name="ada", url=server.url) + VOTE)
    status = dry_run(
        config, "pool=pool.toml", "trl.learn=1", "grpo.max_tokens=1000", "--run-budget-usd", "0.0001"
    )
    told = capsys.readouterr().out

    assert status == 1
    assert "This run would be refused, for 3 reasons:" in told
    assert "1. trl.learn: GRPOConfig has no such argument" in told
    assert "2. The prompt of " in told
    assert "3. The first batch of 8 plans is likely to cost $" in told
    assert not server.requests


def test_every_worker_is_called_once_and_one_that_fails_is_named(
    config: Path, server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    workers = [WORKER.format(name=name, url=server.url) for name in ("ada", "bo")]
    Path("pool.toml").write_text("".join(workers) + VOTE)

    status = dry_run(config, "pool=pool.toml", "--json")
    told = json.loads(capsys.readouterr().out)

    assert status == 1
    ada, bo, vote = told["trials"]
    assert (ada["answered"], ada["cost_usd"], ada["paid"]) == (True, 100 / 1e6 + 20 / 1e6, True)
    assert (bo["answered"], bo["score"]) == (False, None)
    assert "401" in bo["error"]
    assert vote["answered"]
    assert sorted(one.body["model"] for one in server.requests) == ["ada", "bo"]


def test_the_price_is_printed_before_any_worker_is_called(
    config: Path, server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pool.toml").write_text(WORKER.format(name="ada", url=server.url) + VOTE)
    assert dry_run(config, "pool=pool.toml") == 0
    told = capsys.readouterr().out

    assert "a grader grades the answer. This costs about $0.0010 (" in told
    assert told.index("This costs about") < told.index("2 of 2 answered; $0.00012 spent.")


def test_a_budget_that_will_not_last_is_reported(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(config, "--json")
    likely = json.loads(capsys.readouterr().out)["workers"]["cost_usd"]["likely"]

    assert dry_run(config, "--run-budget-usd", str(0.75 * likely)) == 0
    assert "is likely to stop the run after 1 of 2 iterations" in capsys.readouterr().out


def test_each_part_of_a_task_set_is_graded_once_at_least() -> None:
    tasks = {
        f"{part}/{task.id}": replace(task, id=f"{part}/{task.id}", facts={"set": part})
        for part in "abcdefghi"
        for task in Sums("train", size=2)
    }
    pool = open_team()
    trials = asyncio.run(try_workers(pool, pair_workers(pool, tasks.values()), CallState()))

    assert {one.task[0] for one in trials} == set("abcdefghi")
    assert {one.worker for one in trials} == set(open_team().names)
    assert all(one.score is not None for one in trials)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--json", "--run", "r"], "--json is for --dry-run"),
        (["train", "--dry-run", "--stage", "sft"], "--dry-run is for --stage grpo"),
        (["train"], "Training needs --run FOLDER"),
    ],
)
def test_conflicting_train_options_are_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert sentence in capsys.readouterr().err
