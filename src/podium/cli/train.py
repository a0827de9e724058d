"""`podium train`: trains a policy with GRPO or on examples, and `podium train push`, which publishes one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from podium.cli.options import Flag
from podium.cli.printable import say
from podium.cli.team_options import CallOptions, Calls, open_limited_call_state
from podium.errors import UsageError
from podium.plugins import PluginGroup

if TYPE_CHECKING:
    from podium.train.settings import TrainSettings

OWN_STAGES = ("grpo", "sft")
"""The stages of Podium itself."""
Stage: TypeAlias = Callable[[Path | None, Sequence[str], Path], bool]
"""(file of settings or None, settings that override it as key=value, folder of the run) -> whether what it made passed
the tests of the stage. The stage prints how far it is."""
STAGES = PluginGroup[Stage]("podium.stages", "training stage", Callable)
"""The stages of installed packages."""


def train(
    *overrides: str,
    run: Path | None = None,
    stage: str = "grpo",
    config: Path | None = None,
    dry_run: Flag = False,
    json: Flag = False,
    calls: Calls = CallOptions(),
) -> int:
    """Train a policy in a run's folder. The same command resumes a run that was killed.

    Args:
        overrides: Settings as key=value, such as grpo.iterations=100; they override the file.
        run: The folder to which the run writes its configuration, metrics.jsonl, checkpoints and, at the end, the
            policy. A dry run needs none.
        stage: grpo is reinforcement learning, sft supervised training on examples. Installed packages add further
            stages.
        config: A TOML file of settings; `engine` in it says what trains.
        dry_run: Train nothing. Estimate the run's calls, dollars, GPU memory and time, and list all reasons to refuse
            the run. If there is none, print a price, then send each worker one question and grade the answers.
        json: With --dry-run: print one JSON object.
    """
    _check_options(run, stage, dry_run=dry_run, json=json)
    if (installed := STAGES.find(stage)) is not None:
        assert run is not None
        if calls != CallOptions():
            raise UsageError(
                f"The stage {stage} reads no options of workers' calls; leave budgets and cache out."
            )
        return 0 if installed(config, overrides, run) else 1
    from podium.cli.run_settings import read_run_settings  # noqa: PLC0415 - loads pydantic
    from podium.train.settings import TrainSettings  # noqa: PLC0415

    settings = read_run_settings(config, TrainSettings, overrides)
    if "stage" in settings.model_fields_set and settings.stage != stage:
        raise UsageError(
            f"The settings say stage = {settings.stage!r}, and the command says --stage {stage}: give --stage "
            f"{settings.stage}, or remove stage from the settings."
        )
    settings = settings.model_copy(update={"stage": stage})
    if dry_run:
        from podium.cli.dry_run import dry_run as print_dry_run  # noqa: PLC0415 - loads torch

        return asyncio.run(print_dry_run(settings, run, calls=calls, json=json))
    assert run is not None
    _train(settings, run, calls)
    return 0


def _check_options(run: Path | None, stage: str, *, dry_run: bool, json: bool) -> None:
    if json and not dry_run:
        raise UsageError("--json is for --dry-run; a run's figures are in its metrics.jsonl.")
    if dry_run and stage != "grpo":
        raise UsageError("--dry-run is for --stage grpo; the others call no worker.")
    if run is None and not dry_run:
        raise UsageError("Training needs --run FOLDER, the folder of the run.")
    if stage not in OWN_STAGES and stage not in STAGES.names:
        from podium.config import suggestion  # noqa: PLC0415 - loads pydantic, which help does not need

        raise UsageError(f"There is no stage {stage!r}; {suggestion(stage, (*OWN_STAGES, *STAGES.names))}")
    if find_spec("torch") is None:
        raise UsageError("Training needs torch; install it with: pip install 'podium-conductor[train]'.")


def _train(settings: TrainSettings, run: Path, calls: CallOptions) -> None:
    from podium.train.grpo_run import run_grpo  # noqa: PLC0415
    from podium.train.sft_run import run_sft  # noqa: PLC0415

    make_call_state = partial(open_limited_call_state, calls, run=run)
    if settings.stage == "sft":
        run_sft(settings, run, make_call_state=make_call_state, say=say)
    else:
        budget_usd = calls.run_budget_usd
        training = run_grpo(
            settings, run, make_call_state=make_call_state, run_budget_usd=budget_usd, say=say
        )
        asyncio.run(training)


def push(run: Path, *, to: str, private: Flag = False) -> int:
    """Publish the policy of a run with a model card: its pool, tasks, curves, limits, and how to serve it.

    Args:
        run: The run's folder.
        to: A new folder, or hub:OWNER/NAME for the Hugging Face hub.
        private: On the hub: show it to its owner alone.
    """
    from podium.train.publish import publish  # noqa: PLC0415 - not every command publishes

    say(f"Published: {publish(run, to, private=private)}")
    return 0
