"""TRL's loss on our batch, against the loss and gradient computed by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.scoring import RolloutRequest, Score
from podium.train.rollouts import RolloutSample
from podium.train.settings import TrainSettings
from podium.train.trl.grpo import TRLTraining
from podium.types import Message
from trl_job import make_trl_job

REWARDS = (1.0, None, 0.5)
"""Of three rollouts; the second one's workers failed."""


class Table:
    """A scoring whose rewards stand in a table."""

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return (Message(role="user", content="Question: 1 + 1?\nModels:\n0: ada\nSteps: 5\nPlan:\n"),)

    async def score(self, request: RolloutRequest) -> Score:
        return Score(reward=REWARDS[request.rollout])


@pytest.mark.parametrize("loss_type", ["bnpo", "grpo"])
async def test_a_batch_with_a_dropped_rollout_has_the_formulas_loss_and_gradient(
    settings: dict[str, Any], tmp_path: Path, loss_type: str
) -> None:
    grpo = settings["grpo"] | {
        "iterations": 1, "questions": 1, "group": 3, "micro_batch": 3, "max_tokens": 12,
        "max_norm": 1e9, "temperature": 1.0, "loss_type": loss_type,
    }  # fmt: skip
    experiment = TrainSettings.model_validate(settings | {"grpo": grpo})
    start = Checkpoint.read(settings["start"])
    job = make_trl_job(experiment, tmp_path, Table(), ["one"])
    training = TRLTraining(job)
    job.recorder.resume(0)
    await asyncio.to_thread(training.trainer.train)

    (row,) = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    loss, norm = _by_hand(start, training.samples, loss_type)
    assert row["loss"] == pytest.approx(loss, abs=1e-5)
    assert row["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert row["dropped"] == 1


def _by_hand(start: Checkpoint, samples: list[RolloutSample], loss_type: str) -> tuple[float, float]:
    """The loss at ratio 1, and the norm of its gradient: advantages (r - mean) / (std + 1e-4) of what was scored."""
    scored = torch.tensor([reward for reward in REWARDS if reward is not None])
    mean, std = scored.mean(), scored.std(unbiased=True)
    model = AutoModelForCausalLM.from_pretrained(start.path, dtype=torch.float32)
    tokens = sum(len(sample.tokens) for sample in samples)
    total = torch.zeros(())
    for sample, reward in zip(samples, REWARDS, strict=True):
        advantage = torch.zeros(()) if reward is None else (reward - mean) / (std + 1e-4)
        ids = torch.tensor([[*sample.prompt, *sample.tokens]])
        logits = model(ids).logits[0, len(sample.prompt) - 1 : -1]
        logprobs = logits.log_softmax(-1).gather(1, torch.tensor(sample.tokens)[:, None])[:, 0]
        ratio = (logprobs - logprobs.detach()).exp()
        weight = 1 / tokens if loss_type == "bnpo" else 1 / (len(samples) * len(sample.tokens))
        total = total - weight * (ratio * advantage).sum()
    total.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    return total.item(), norm.item()
