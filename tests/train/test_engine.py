"""The training loop, on a real run that takes a second."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import ChatCodec
from podium.errors import RunMismatchError
from podium.rollout.collapse import collapse_warnings, first_and_last_means
from podium.rollout.run_folder import RunFolder
from podium.train.objective import ADVANTAGES, LOSSES, Advantages, Rewards, mean_over_completions
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.checkpoints import read_model
from podium.train.shared_prefix.grpo import find_problems
from tiny_run import SETTINGS, SHAPE, SHORT, make_settings, run, write_start

KILLED_AT = 4
"""The iteration of a run that is killed."""


def rows(folder: Path) -> list[dict]:
    """Metrics without what the clock says."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).rows().read()]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Random weights, from which runs only read."""
    return write_start(tmp_path_factory.mktemp("shared_prefix") / "start")


@pytest.fixture(scope="module")
def whole(start: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, which tests only read."""
    folder = tmp_path_factory.mktemp("shared_prefix") / "whole"
    asyncio.run(run(folder, start, SHORT))
    return folder


@pytest.fixture(scope="module")
def long(start: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 36 iterations, which tests only read."""
    folder = tmp_path_factory.mktemp("shared_prefix") / "long"
    asyncio.run(run(folder, start, SETTINGS.model_copy(update={"iterations": 36})))
    return folder


def _die(row: Mapping[str, Any]) -> None:
    """End this process as a kill from outside does, after a row whose checkpoint is not written."""
    if row["iteration"] == KILLED_AT:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_killed_and_resumed_has_the_metrics_of_an_unbroken_one(
    tmp_path: Path, start: Checkpoint, whole: Path
) -> None:
    killed = tmp_path / "killed"
    child = get_context("fork").Process(
        target=lambda: asyncio.run(run(killed, start, SHORT, on_metrics=_die))
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(rows(killed)) == KILLED_AT + 1
    resumed = asyncio.run(run(killed, start, SHORT))

    assert rows(killed) == rows(whole)
    assert len(rows(killed)) == SHORT.iterations
    for name, weight in read_model(Checkpoint.read(whole / "trained")).state_dict().items():
        assert torch.equal(weight, read_model(Checkpoint.read(resumed)).state_dict()[name]), name


def test_training_raises_the_reward(long: Path) -> None:
    rewards = [row["reward"] for row in rows(long)]
    assert fmean(rewards[:2]) < 0.5
    assert fmean(rewards[-10:]) > 0.85
    assert rows(long)[-1]["workers"]["good"] > 0.6


def test_the_trained_policy_is_a_checkpoint_that_transformers_loads(whole: Path) -> None:
    policy = whole / "trained"
    checkpoint = Checkpoint.read(policy)
    assert checkpoint.prompt.style == "brief"
    theirs = AutoModelForCausalLM.from_pretrained(policy)
    tokens = torch.tensor([[1, 5, 9, 7]])
    torch.testing.assert_close(read_model(checkpoint)(tokens), theirs(tokens).logits, atol=1e-5, rtol=1e-5)


async def test_running_a_finished_training_again_changes_nothing(
    tmp_path: Path, start: Checkpoint, whole: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    await run(tmp_path / "run", start, SHORT)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


async def test_the_time_limit_ends_a_run_that_a_longer_one_continues(
    tmp_path: Path, start: Checkpoint, whole: Path
) -> None:
    hurried = SHORT.model_copy(update={"minutes": 1e-6})
    await run(tmp_path / "run", start, hurried)
    assert len(rows(tmp_path / "run")) == 1
    await run(tmp_path / "run", start, SHORT)
    assert rows(tmp_path / "run") == rows(whole)


async def test_a_run_stopped_while_going_on_gives_its_newest_checkpoints_policy(
    tmp_path: Path, start: Checkpoint
) -> None:
    hurried = SHORT.model_copy(update={"minutes": 1e-6})
    policy = await run(tmp_path / "run", start, hurried)

    class InterruptionError(Exception):
        pass

    def stop(row: Mapping[str, Any]) -> None:
        if row["iteration"] == SHORT.save_every:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        await run(tmp_path / "run", start, SHORT, on_metrics=stop)
    (newest,) = (tmp_path / "run" / "checkpoints").glob("[0-9]*")
    assert newest.name == f"{SHORT.save_every:06d}"
    await run(tmp_path / "run", start, hurried)
    assert (policy / "model.safetensors").read_bytes() == (newest / "model.safetensors").read_bytes()


@pytest.mark.nightly
async def test_evaluations_stand_in_the_rows_and_change_nothing_that_is_learned(
    tmp_path: Path, start: Checkpoint
) -> None:
    settings = SETTINGS.model_copy(update={"iterations": 4})
    evaluated = settings.model_copy(update={"eval_every": 2})
    policies = [await run(tmp_path / f"{of.eval_every}", start, of) for of in (settings, evaluated)]
    found = rows(tmp_path / "2")
    assert [row["iteration"] for row in found if "evaluation" in row] == [1, 3]
    assert found[1]["evaluation"]["questions"] == 3
    assert all(0 <= row["evaluation"]["accuracy"] <= 1 for row in found if "evaluation" in row)
    assert [{k: v for k, v in row.items() if k != "evaluation"} for row in found] == rows(tmp_path / "0")
    plain, measured = ((policy / "model.safetensors").read_bytes() for policy in policies)
    assert plain == measured


def test_metrics_show_when_plans_collapse(long: Path) -> None:
    first, last = rows(long)[0], rows(long)[-1]
    assert first["commonest_plan"] < last["commonest_plan"]
    assert first["worker_entropy"] > last["worker_entropy"]
    assert first["topology_entropy"] > 0
    for row in rows(long):
        assert row["unreadable"] == pytest.approx(1 - row["valid"])
        start, now = first_and_last_means(rows(long)[: row["iteration"] + 1])
        assert row["alarms"] == collapse_warnings(now, start)


def test_dropped_rollouts_are_counted_and_not_rewarded(whole: Path) -> None:
    assert sum(row["dropped"] for row in rows(whole)) > 5


async def test_resuming_a_training_with_another_configuration_is_refused(
    tmp_path: Path, start: Checkpoint
) -> None:
    await run(tmp_path / "run", start, SETTINGS.model_copy(update={"iterations": 2}))
    with pytest.raises(RunMismatchError, match=r"lr was 0\.03 and is now 0\.001"):
        await run(tmp_path / "run", start, SETTINGS.model_copy(update={"iterations": 2, "lr": 1e-3}))


async def test_a_prompt_too_long_for_the_policy_leaves_its_group_out(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"max_tokens": 120, "iterations": 1})
    await run(tmp_path / "run", write_start(tmp_path / "start"), settings)
    assert rows(tmp_path / "run")[0]["dropped"] == settings.questions * settings.group


@pytest.mark.nightly
async def test_a_chat_model_trains_through_its_own_template(tmp_path: Path) -> None:
    made = write_start(tmp_path / "start", replace(SHAPE, positions=2048))
    (made.path / "podium.json").write_text('{"prompt": {"style": "short"}}')
    (made.path / "chat_template.jinja").write_text("{{ messages[-1].content }} Plan:")
    start = Checkpoint.read(made.path)
    assert start.uses_chat_template
    assert find_problems(make_settings(start), start, 1) == []
    codec = ChatCodec(AutoTokenizer.from_pretrained(start.path))
    policy = await run(tmp_path / "run", start, codec=codec)
    rewards = [row["reward"] for row in rows(tmp_path / "run")]
    assert fmean(rewards[-6:]) > fmean(rewards[:2]) + 0.1
    assert (policy / "chat_template.jinja").is_file()


def test_engine_refuses_unsupported_settings_and_policies(start: Checkpoint) -> None:
    settings = make_settings(start)
    assert find_problems(settings, start, 1) == []
    changed = settings.model_copy(update={"grpo": SETTINGS.model_copy(update={"loss_type": "dapo"})})
    endless = Checkpoint(start.path, {**start.config, "eos_token_id": None}, start.prompt)
    said = " ".join(map(str, find_problems(changed, endless, 1)))
    assert all(key in said for key in ("loss_type", "no token that ends"))


@pytest.mark.nightly
async def test_several_steps_on_each_batch_learn_from_fewer_rollouts(
    tmp_path: Path, start: Checkpoint
) -> None:
    few = SETTINGS.model_copy(update={"iterations": 10, "lr": 5e-3})
    await run(tmp_path / "one", start, few)
    await run(tmp_path / "three", start, few.model_copy(update={"num_iterations": 3}))
    one, three = (fmean(row["reward"] for row in rows(tmp_path / run_)) for run_ in ("one", "three"))
    assert three > one + 0.05


def leave_one_out(groups: Sequence[Rewards], *, scale_rewards: str, std_eps: float) -> list[Advantages]:
    """Each reward less the mean of the others in its group."""
    return [
        tuple(
            None
            if reward is None
            else reward - fmean([0.0, *(r for other, r in enumerate(group) if other != k and r is not None)])
            for k, reward in enumerate(group)
        )
        for group in groups
    ]


async def test_an_advantage_or_weighting_of_ones_own_takes_a_line(
    tmp_path: Path, start: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ADVANTAGES, "leave_one_out", leave_one_out)
    monkeypatch.setitem(LOSSES, "own", mean_over_completions)
    changed = {"iterations": 16, "advantage": "leave_one_out", "loss_type": "own"}
    settings = GRPOSettings.model_validate(SETTINGS.model_dump() | changed)
    await run(tmp_path / "run", start, settings)
    assert fmean(row["reward"] for row in rows(tmp_path / "run")[-10:]) > 0.8


def test_an_advantage_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"advantage\n.*'grpos' is not known; did you mean 'grpo'"):
        GRPOSettings(advantage="grpos")
