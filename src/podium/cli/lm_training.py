"""Wires a run that trains a language model: its settings, its display, its dispatcher. Loads TRL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

from accelerate import PartialState

from podium.cli.dry_run import dry_run
from podium.cli.opening import open_dispatcher
from podium.cli.options import DispatchOptions
from podium.cli.printable import printable
from podium.cli.run_settings import read_run_settings
from podium.cli.terminal import open_console
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.train.display import training_display
from podium.train.lm.publish import publish
from podium.train.lm.run import quiet_libraries, run_grpo
from podium.train.lm.settings import LMExperiment
from podium.train.lm.sft import run_sft
from podium.workers.pool import Pool


def train_lm(
    config: Path | None,
    overrides: Sequence[str],
    run: Path,
    *,
    stage: Literal["grpo", "sft"],
    calls: DispatchOptions,
    run_budget_usd: float | None,
) -> None:
    """Train, or go on training."""
    experiment = _open_experiment(config, overrides, stage)
    console = open_console()

    def dispatch(pool: Pool) -> AbstractAsyncContextManager[Dispatcher]:
        return open_dispatcher(calls, pool, run=run, run_budget_usd=run_budget_usd)

    def warn(sentence: str) -> None:
        console.print(printable(sentence), soft_wrap=True)

    if stage == "sft":
        policy = run_sft(experiment, run, dispatch=dispatch, on_warning=warn, say=warn)
    else:
        policy = asyncio.run(
            run_grpo(
                experiment,
                run,
                dispatch=dispatch,
                run_budget_usd=run_budget_usd,
                display=training_display(
                    console, iterations=experiment.grpo.iterations, title=f"Training {run}"
                ),
                on_warning=warn,
                say=warn,
            )
        )
    if PartialState().is_main_process:
        console.print(f"The trained policy is in {policy}", soft_wrap=True)


def dry_run_lm(
    config: Path | None,
    overrides: Sequence[str],
    run: Path | None,
    *,
    calls: DispatchOptions,
    run_budget_usd: float | None,
    json: bool,
) -> int:
    """Print what the run would call, cost and need; returns the exit status."""
    experiment = _open_experiment(config, overrides, "grpo")
    return asyncio.run(dry_run(experiment, run, calls=calls, run_budget_usd=run_budget_usd, json=json))


def _open_experiment(
    config: Path | None, overrides: Sequence[str], stage: Literal["grpo", "sft"]
) -> LMExperiment:
    quiet_libraries()
    experiment = read_run_settings(config, LMExperiment, overrides)
    if "stage" in experiment.model_fields_set and experiment.stage != stage:
        raise UsageError(
            f"The settings say stage = {experiment.stage!r}, and the command says --stage {stage}: give --stage "
            f"{experiment.stage}, or remove stage from the settings."
        )
    return experiment.model_copy(update={"stage": stage})


def push_policy(run: Path, to: str, *, private: bool) -> None:
    """Publish the policy of a run."""
    open_console().print(f"Published: {publish(run, to, private=private)}", soft_wrap=True)
