"""`podium train`: trains a policy with GRPO or on examples, and `podium train push`, which publishes one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from podium.cli.options import Flag
from podium.cli.team_options import DEFAULT_CALLS, Calls
from podium.errors import UsageError
from podium.plugins import PluginGroup

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
    calls: Calls = DEFAULT_CALLS,
) -> int:
    """Train a policy in a run's folder. The same command resumes a run that was killed.

    Args:
        overrides: Settings as key=value, such as grpo.iterations=100; they override the file.
        run: The folder to which the run writes its configuration, metrics.jsonl, checkpoints and, at the end, the
            policy. A dry run needs none.
        stage: grpo is reinforcement learning, sft supervised training on examples. Installed packages add further
            stages; podium-lab adds warmstart, which makes the small policy that make demo trains, and orchestra, which
            makes small language models as workers.
        config: A TOML file of settings; `engine` in it says what trains.
        dry_run: Train nothing. Estimate the run's calls, dollars, GPU memory and time, and list all reasons to refuse
            the run. If there is none, print a price, then send each worker one question and grade the answers.
        json: With --dry-run: print one JSON object.
    """
    if json and not dry_run:
        raise UsageError("--json is for --dry-run; a run's figures are in its metrics.jsonl.")
    if dry_run and stage != "grpo":
        raise UsageError("--dry-run is for --stage grpo; the others call no worker.")
    if run is None and not dry_run:
        raise UsageError("Training needs --run FOLDER, the folder of the run.")
    if stage not in OWN_STAGES and stage not in STAGES.names:
        from podium.config import suggestion  # noqa: PLC0415 - loads pydantic, which help does not need

        raise UsageError(f"There is no stage {stage!r}; {suggestion(stage, (*OWN_STAGES, *STAGES.names))}")
    _need_torch()
    if (installed := STAGES.find(stage)) is not None:
        assert run is not None
        return 0 if installed(config, overrides, run) else 1
    from podium.cli import run_training  # noqa: PLC0415 - loads torch

    settings = run_training.read_train_settings(config, overrides, "sft" if stage == "sft" else "grpo")
    if dry_run:
        from podium.cli.dry_run import dry_run as print_dry_run  # noqa: PLC0415 - loads torch

        return asyncio.run(print_dry_run(settings, run, calls=calls, json=json))
    assert run is not None
    run_training.train_policy(settings, run, calls=calls)
    return 0


def push(run: Path, *, to: str, private: Flag = False) -> int:
    """Publish the policy of a run with a model card: its pool, tasks, curves, limits, and how to serve it.

    Args:
        run: The run's folder.
        to: A new folder, or hub:OWNER/NAME for the Hugging Face hub.
        private: On the hub: show it to its owner alone.
    """
    from podium.cli.printable import printable  # noqa: PLC0415
    from podium.train.publish import publish  # noqa: PLC0415 - not every command publishes

    print(printable(f"Published: {publish(run, to, private=private)}"))
    return 0


def _need_torch() -> None:
    if find_spec("torch") is None:
        raise UsageError("Training needs torch; install it with: pip install 'podium-conductor[train]'.")
