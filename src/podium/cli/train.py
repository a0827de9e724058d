"""`podium train`: trains a policy by reinforcement, or makes the policy that reinforcement starts from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from podium.cli.options import DEFAULT_CALLS, DispatchOptions, RunBudget
from podium.errors import UsageError


def train(
    *overrides: str,
    run: Path,
    stage: Literal["grpo", "warmstart"] = "grpo",
    config: Path | None = None,
    eval_questions: int = 200,
    calls: DispatchOptions = DEFAULT_CALLS,
    run_budget_usd: RunBudget = None,
) -> int:
    """Train a policy in a run's folder. The same command resumes a run that was killed.

    Args:
        overrides: Settings as key=value, such as grpo.iterations=100; they override the file.
        run: The run's folder, for its configuration, metrics.jsonl, checkpoints and, at the end, the policy.
        stage: grpo trains by reinforcement; warmstart makes the policy that grpo starts from, by supervised training.
        config: A TOML file of settings. Default: the settings of the shipped run.
        eval_questions: How many validation questions each evaluation has; grpo.eval_every says how often it happens.
    """
    if eval_questions < 1:
        raise UsageError(f"--eval-questions {eval_questions}: give at least 1.")
    if find_spec("torch") is None:
        raise UsageError("Training needs torch; install it with: pip install 'podium-conductor[train]'.")
    from podium.cli import training  # noqa: PLC0415 - loads torch

    if stage == "warmstart":
        return 0 if training.make_warmstart(config, overrides, run) else 1
    training.run_grpo(
        config, overrides, run, eval_questions=eval_questions, calls=calls, run_budget_usd=run_budget_usd
    )
    return 0
