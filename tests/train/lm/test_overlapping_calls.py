"""Workers answer while other plans are still written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from transformers import AutoTokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, Score
from podium.train.display import NoDisplay
from podium.train.lm.grpo import PodiumGRPO, trl_config
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


async def test_a_plan_is_run_as_soon_as_its_last_token_is_drawn(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    events: list[str] = []
    grpo = settings["grpo"] | {"iterations": 1, "questions": 1, "group": 8, "temperature": 1.5}
    experiment = LMExperiment.model_validate(settings | {"grpo": grpo})
    start = Checkpoint.read("warmstart")
    training = PodiumGRPO(
        experiment,
        trl_config(experiment, tmp_path / "checkpoints", ranks=1),
        rows=schedule(["one"], iterations=1, questions=1, rounds=1, seed=0),
        start=start,
        tokenizer=AutoTokenizer.from_pretrained(start.path),
        codec=Codec.of(start),
        scoring=SlowWorkers(events),
        loop=asyncio.get_running_loop(),
        run=RunFolder(tmp_path),
        display=NoDisplay(),
        on_warning=lambda warning: None,
    )
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
