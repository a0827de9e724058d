"""A job of TRL's engine over any scoring, in the loop that runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from transformers import AutoTokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.rollout.run_folder import RunFolder
from podium.scoring import Scoring
from podium.train.engine import TrainingJob
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.recorder import Recorder
from podium.train.rollouts import Rollouts
from podium.train.schedule import schedule
from podium.train.settings import TrainSettings


def make_job(settings: TrainSettings, folder: Path, scoring: Scoring, tasks: Sequence[str]) -> TrainingJob:
    start = Checkpoint.read(settings.start)
    codec = Codec.of(start)
    rollouts = Rollouts(
        scoring,
        asyncio.get_running_loop(),
        codec,
        rounds=1,
        discount=0.25,
        room=start.context - settings.grpo.max_tokens,
        ranks=Ranks(),
        stop=threading.Event(),
    )
    recorder = Recorder(
        settings,
        run=RunFolder(folder),
        progress=Progress(print, noun="plans"),
        on_warning=lambda warning: None,
    )
    return TrainingJob(
        settings,
        folder,
        start=start,
        tokenizer=AutoTokenizer.from_pretrained(start.path),
        codec=codec,
        rows=schedule(settings, tasks),
        rollouts=rollouts,
        recorder=recorder,
        evaluation=None,
    )
