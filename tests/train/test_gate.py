"""The gate before reinforcement, on batches made by hand and in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.errors import UsageError
from podium.rollout import Reward
from podium.rollout.collapse import collapse_warnings
from podium.rollout.reward import PENALTY_CAP
from podium.rollout.run_folder import RunFolder
from podium.scoring import Score
from podium.train.metrics import batch_figures, check_gate
from podium.train.rollouts import RolloutSample
from podium.train.schedule import ScheduledGroup
from podium.train.settings import GateSettings, TrainSettings
from tiny_run import SETTINGS, run, write_start

WHOLE = GateSettings(readable=0.9, first_worker_entropy=0.6, all_workers=True, all_steps=True, topologies=3)
GOOD = [("ada",), ("bram", "ada"), ("ada", "bram", "ada"), ("bram",)]


def samples(
    plans: Sequence[tuple[str, ...]], unreadable: int = 0, *, failed: bool = False
) -> list[RolloutSample]:
    """A batch of plans by the workers of their steps, all right or all failed, and of some that cannot be read."""
    scores = [
        *(
            Score(
                reward=None if failed else 1.0,
                valid=True,
                correct=not failed,
                workers=plan,
                steps=len(plan),
                topology=";".join("-" if at == 0 else f"{at - 1}" for at in range(len(plan))),
            )
            for plan in plans
        ),
        *[Score(reward=0.0)] * unreadable,
    ]
    return [
        RolloutSample(ScheduledGroup(0, 0, 0, "t", "train/0/0/0"), rollout, tokens=(1,), score=score)
        for rollout, score in enumerate(scores)
    ]


def refusal(batch: Sequence[RolloutSample], gate: GateSettings) -> str:
    settings = TrainSettings(start="-", max_steps=3)
    settings = settings.model_copy(update={"grpo": settings.grpo.model_copy(update={"gate": gate})})
    try:
        check_gate(settings, ["ada", "bram"], batch)
    except UsageError as error:
        return str(error)
    return ""


def test_gate_accepts_a_start_with_varied_readable_plans() -> None:
    assert refusal(samples(GOOD), WHOLE) == ""


def test_plans_whose_workers_failed_are_read_like_others() -> None:
    batch = samples(GOOD, failed=True)
    figures = batch_figures(batch)
    assert (figures["valid"], figures["unreadable"], figures["failed"]) == (1.0, 0.0, 1.0)
    assert figures["dropped"] == len(GOOD)
    assert any("workers" in alarm for alarm in collapse_warnings(figures, figures))
    assert refusal([*batch, *samples(GOOD)], WHOLE) == ""


def test_gate_names_failed_workers_and_no_fault_of_the_plans() -> None:
    sentence = refusal(samples(GOOD, failed=True), WHOLE)
    assert "failed" in sentence
    assert "sft" not in sentence


def test_the_penalty_of_a_batch_is_capped_as_that_of_each_reward() -> None:
    (sample,) = samples([("ada",)])
    assert sample.score is not None
    dear = Reward(format=0.5, correct=0.5, cost=50.0)
    score = sample.score.model_copy(update={"parts": dear, "reward": dear.total})
    assert batch_figures([replace(sample, score=score)])["penalty"] == PENALTY_CAP


def test_by_default_every_start_passes() -> None:
    assert refusal(samples([], unreadable=4), GateSettings()) == ""


@pytest.mark.parametrize(
    ("batch", "named"),
    [
        pytest.param(samples(GOOD, unreadable=4), "readable", id="unreadable"),
        pytest.param(samples([*GOOD, *[("ada",)] * 20]), "first_worker_entropy", id="one worker begins"),
        pytest.param(samples([("ada",), ("ada",) * 2, ("ada",) * 3]), "bram", id="a worker is missing"),
        pytest.param(samples(GOOD[:2]), "3 steps", id="a number of steps is missing"),
        pytest.param(samples(GOOD[:2]), "2 topologies", id="a topology is missing"),
    ],
)
def test_gate_refusal_names_the_missing_property(batch: list[RolloutSample], named: str) -> None:
    assert named in refusal(batch, WHOLE)


async def test_a_start_that_is_refused_learns_nothing(tmp_path: Path) -> None:
    gate: dict[str, Any] = {"gate": GateSettings(readable=1.0, first_worker_entropy=5.0)}
    start = write_start(tmp_path / "start")
    with pytest.raises(UsageError, match=r"grpo\.gate"):
        await run(tmp_path / "run", start, SETTINGS.model_copy(update=gate))
    assert RunFolder(tmp_path / "run").rows().read() == []
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    assert not (tmp_path / "run" / "trained").exists()
    passed = await run(tmp_path / "run2", start, SETTINGS.model_copy(update={"iterations": 2}))
    assert Checkpoint.read(passed)


def test_accuracy_of_readable_plans_leaves_the_others_out() -> None:
    figures = batch_figures(samples(GOOD, unreadable=4))
    assert (figures["accuracy"], figures["accuracy_readable"]) == (0.5, 1.0)
    assert figures["steps_std"] == pytest.approx(0.829, abs=1e-3)
