"""Runs a training with its settings, its display and its dispatcher. Loads torch, and TRL where TRL trains."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from podium.cli.run_settings import read_run_settings
from podium.cli.team_options import DispatchOptions, open_calls
from podium.cli.terminal import open_console, print_sentence
from podium.errors import UsageError
from podium.train.run import run_grpo
from podium.train.settings import TrainSettings
from podium.train.supervised import run_sft


def train_policy(settings: TrainSettings, run: Path, *, calls: DispatchOptions) -> None:
    """Train, or go on training."""
    dispatch = partial(open_calls, calls, run=run)
    say = partial(print_sentence, open_console())
    if settings.stage == "sft":
        run_sft(settings, run, dispatch=dispatch, say=say)
    else:
        asyncio.run(run_grpo(settings, run, dispatch=dispatch, run_budget_usd=calls.run_budget_usd, say=say))


def read_train_settings(
    config: Path | None, overrides: Sequence[str], stage: Literal["grpo", "sft"]
) -> TrainSettings:
    """The settings of a run.

    Raises:
        UsageError: they name another stage.
    """
    settings = read_run_settings(config, TrainSettings, overrides)
    if "stage" in settings.model_fields_set and settings.stage != stage:
        raise UsageError(
            f"The settings say stage = {settings.stage!r}, and the command says --stage {stage}: give --stage "
            f"{settings.stage}, or remove stage from the settings."
        )
    return settings.model_copy(update={"stage": stage})
