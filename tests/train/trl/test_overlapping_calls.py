"""What a batch does while it is made: answers overlap with plans; what cannot be paid or asked for stops no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from trl.trainer.grpo_trainer import GRPOTrainer

from podium.errors import BudgetExceededError
from podium.scoring import RolloutRequest, Score
from podium.train.engine import TrainingJob
from podium.train.settings import TrainSettings
from podium.train.trl.grpo import train
from podium.types import Message
from trl_job import make_trl_job


class SlowWorkers:
    """A scoring that takes log-normal times, and notes when it begins."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return (Message(role="user", content="Question: 1 + 1?\nModels:\n0: ada\nSteps: 5\nPlan:\n"),)

    async def score(self, request: RolloutRequest) -> Score:
        self._events.append("begins")
        seconds = Random(str(request.rollout)).lognormvariate(-3, 1)
        await asyncio.sleep(seconds)
        return Score(reward=round(seconds % 1, 3))


class SpentBudget(SlowWorkers):
    """A scoring whose dollars do not cover the first rollout, while the others are under way."""

    async def score(self, request: RolloutRequest) -> Score:
        if request.rollout == 0:
            raise BudgetExceededError("The budget is spent.")
        await asyncio.sleep(2.0)
        self._events.append("paid")
        return Score(reward=1.0)


class LongQuestion(SlowWorkers):
    """A scoring one of whose prompts leaves no room for a plan."""

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        messages = await super().prompt(request)
        assert messages is not None
        times = 1000 if request.task == "long" else 1
        return (Message(role="user", content=times * messages[0].content),)


async def test_a_plan_is_run_as_soon_as_its_last_token_is_drawn(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    generate = GRPOTrainer._generate_single_turn
    lengths: list[int] = []

    def noting(*arguments: Any) -> Any:
        written = generate(*arguments)
        lengths.extend(map(len, written[0]))
        events.append("all are written")
        return written

    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", noting)
    await asyncio.to_thread(train, _job(settings, tmp_path, SlowWorkers(events)))

    assert max(lengths) - min(lengths) > 10
    assert events.count("begins") == 8
    assert events.index("all are written") > 0


async def test_spent_budget_ends_the_run_after_calls_of_other_rollouts(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    events: list[str] = []
    job = _job(settings, tmp_path, SpentBudget(events))

    with pytest.raises(BudgetExceededError, match="The budget is spent"):
        await asyncio.to_thread(train, job)

    assert events == ["paid"] * 7


async def test_a_prompt_that_is_too_long_drops_its_group_alone(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    job = _job(settings, tmp_path, LongQuestion([]), tasks=("short", "long"))

    await asyncio.to_thread(train, job)

    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert row["dropped"] == 4
    assert row["unrewarded_groups"] == 0.5
    assert row["zero_variance_groups"] == 0.0


def _job(
    settings: dict[str, Any], folder: Path, scoring: SlowWorkers, tasks: tuple[str, ...] = ("one",)
) -> TrainingJob:
    """One iteration of eight rollouts."""
    questions = len(tasks)
    grpo = settings["grpo"] | {
        "iterations": 1, "questions": questions, "group": 8 // questions, "temperature": 8.0
    }  # fmt: skip
    return make_trl_job(TrainSettings.model_validate(settings | {"grpo": grpo}), folder, scoring, tasks)
