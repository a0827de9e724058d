"""Runs in which a policy sees what came of its plan, and is kept near where it began."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
import torch
from pydantic import ValidationError

from podium.conductor.checkpoint import Checkpoint
from podium.errors import ServiceError
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, Score
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.checkpoints import read_model
from tiny_run import SETTINGS, Unreliable, run, write_start

HELD = SETTINGS.model_copy(
    update={"iterations": 5, "save_every": 2, "beta": 0.05, "skip_suffix_min_prob": 0.99}
)


def rows(folder: Path) -> list[dict]:
    """Metrics without what the clock says."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).rows().read()]


@pytest.mark.nightly
async def test_training_in_two_rounds_raises_the_reward(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    await run(
        tmp_path / "run",
        start,
        SETTINGS.model_copy(update={"discount": 0.25}),
        rounds=2,
    )
    rewards = [row["reward"] for row in rows(tmp_path / "run")]
    assert fmean(rewards[:2]) < 0.7
    assert fmean(rewards[-6:]) > 0.8


class Breaking(Unreliable):
    """Breaks off in the second round of the fourth iteration."""

    async def score(self, request: RolloutRequest) -> Score:
        if request.group.startswith("train/7/3/") and len(request.plans) == 2:
            raise ServiceError("The scoring broke off.")
        return await super().score(request)


async def test_run_interrupted_in_a_second_round_resumes_identically(
    tmp_path: Path,
) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    whole = await run(tmp_path / "whole", start, HELD, rounds=2)
    broken = tmp_path / "broken"
    with pytest.raises(ServiceError):
        await run(broken, start, HELD, rounds=2, scoring=Breaking)
    assert rows(broken) == rows(tmp_path / "whole")[:3]
    resumed = await run(broken, start, HELD, rounds=2)

    assert rows(broken) == rows(tmp_path / "whole")
    assert len(rows(broken)) == HELD.iterations
    for name, weight in read_model(Checkpoint.read(whole)).state_dict().items():
        assert torch.equal(weight, read_model(Checkpoint.read(resumed)).state_dict()[name]), name


class TimingOut(Unreliable):
    """Raises in the second iteration what a grader's own time limit would."""

    async def score(self, request: RolloutRequest) -> Score:
        if request.group.startswith("train/7/1/"):
            raise TimeoutError("The grader's database did not answer.")
        return await super().score(request)


async def test_a_score_that_raises_a_timeout_ends_the_run_with_it(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="The grader's database"):
        await run(tmp_path / "run", write_start(tmp_path / "start"), HELD, scoring=TimingOut)
    assert len(rows(tmp_path / "run")) == 1


async def log_ratios(folder: Path, start: Checkpoint, *, rounds: int = 1, **grpo: object) -> list[float]:
    """The metric "kl" of a run's iterations."""
    await run(folder, start, SETTINGS.model_copy(update=grpo), rounds=rounds)
    return [row["kl"] for row in rows(folder)]


async def test_larger_kl_weight_keeps_the_policy_closer_to_its_start(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    free, held = [
        await log_ratios(tmp_path / f"{beta}", start, rounds=2, iterations=5, beta=beta)
        for beta in (1e-9, 0.5)
    ]
    assert free[0] == held[0] == pytest.approx(0.0, abs=1e-4), "no step was taken before the first batch"
    assert fmean(free[-2:]) > 2 * fmean(held[-2:]) > 0


async def test_without_a_kl_weight_no_kl_is_measured(tmp_path: Path) -> None:
    assert await log_ratios(tmp_path / "run", write_start(tmp_path / "start"), iterations=2) == [0.0] * 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("beta", -0.1),
        ("skip_suffix_min_prob", 0.0),
        ("skip_suffix_min_prob", 1.01),
    ],
)
def test_settings_without_a_meaning_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=f"^1 validation error for GRPOSettings\n{field}\n"):
        GRPOSettings(**{field: value})
