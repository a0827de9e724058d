"""A job of TRL's engine over any scoring, in the loop that runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import AutoTokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec
from podium.rollout.run_folder import RunFolder
from podium.scoring import ScoringBackend
from podium.train.engine import TrainingJob, TrainingRun
from podium.train.grpo_run import make_job
from podium.train.metrics_recorder import IterationRecorder
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.schedule import schedule
from podium.train.settings import TrainSettings
from scripted_team import open_team


def make_trl_job(
    settings: TrainSettings, folder: Path, scoring: ScoringBackend, tasks: Sequence[str]
) -> TrainingJob:
    start = Checkpoint.read(settings.start)
    tokenizer = AutoTokenizer.from_pretrained(start.path)
    recorder = IterationRecorder(settings, run=RunFolder(folder), progress=Progress(print, noun="plans"))
    codec = PlainTextCodec.of(start)
    run = TrainingRun(settings, Ranks(), folder, open_team(), start, tokenizer, codec)
    return make_job(run, scoring, schedule(settings, tasks), (), recorder)
