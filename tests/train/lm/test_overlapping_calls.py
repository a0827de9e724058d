"""What a batch does while it is made: answers overlap with plans; what cannot be paid or asked for stops no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from transformers import AutoTokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.errors import BudgetError
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, Score
from podium.train.display import NoDisplay
from podium.train.lm.grpo import PodiumGRPO, trl_config
from podium.train.lm.progress import Progress
from podium.train.lm.schedule import schedule
from podium.train.lm.settings import LMExperiment
from podium.types import Message


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
            raise BudgetError("The budget is spent.")
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
    settings: dict[str, Any], tmp_path: Path
) -> None:
    events: list[str] = []
    training = _training(settings, tmp_path, SlowWorkers(events))
    generate = training.trainer._generate_single_turn

    def noting(*arguments: Any) -> Any:
        written = generate(*arguments)
        events.append("all are written")
        return written

    training.trainer._generate_single_turn = noting
    await asyncio.to_thread(training.train, tmp_path / "trained")

    lengths = [len(sample.tokens) for sample in training.rollouts.samples]
    assert max(lengths) - min(lengths) > 10
    assert events.count("begins") == 8
    assert events.index("all are written") > 0


async def test_the_calls_of_the_other_rollouts_end_before_a_spent_budget_ends_the_run(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    events: list[str] = []
    training = _training(settings, tmp_path, SpentBudget(events))

    with pytest.raises(BudgetError, match="The budget is spent"):
        await asyncio.to_thread(training.train, tmp_path / "trained")

    assert events == ["paid"] * 7


async def test_a_prompt_that_is_too_long_drops_its_group_alone(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    training = _training(settings, tmp_path, LongQuestion([]), tasks=("short", "long"))

    await asyncio.to_thread(training.train, tmp_path / "trained")

    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert row["dropped"] == 4
    assert row["unrewarded_groups"] == 0.5
    assert row["zero_variance_groups"] == 0.0


def _training(
    settings: dict[str, Any], folder: Path, scoring: SlowWorkers, tasks: tuple[str, ...] = ("one",)
) -> PodiumGRPO:
    """One iteration of eight rollouts."""
    questions = len(tasks)
    grpo = settings["grpo"] | {
        "iterations": 1, "questions": questions, "group": 8 // questions, "temperature": 1.5
    }  # fmt: skip
    experiment = LMExperiment.model_validate(settings | {"grpo": grpo})
    start = Checkpoint.read("warmstart")
    return PodiumGRPO(
        experiment,
        trl_config(experiment, folder / "checkpoints", ranks=1),
        rows=schedule(tasks, iterations=1, questions=questions, rounds=1, seed=0),
        start=start,
        tokenizer=AutoTokenizer.from_pretrained(start.path),
        codec=Codec.of(start),
        scoring=scoring,
        loop=asyncio.get_running_loop(),
        run=RunFolder(folder),
        display=NoDisplay(),
        progress=Progress(print, noun="plans"),
        on_warning=lambda warning: None,
    )
