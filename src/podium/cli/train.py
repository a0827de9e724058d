"""`podium train`: trains a policy with GRPO or on examples, and `podium train push`, which publishes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from podium.cli.options import DEFAULT_CALLS, DispatchOptions, Flag, RunBudget
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
    engine: Literal["auto", "small", "trl"] = "auto",
    config: Path | None = None,
    eval_questions: int | None = None,
    dry_run: Flag = False,
    json: Flag = False,
    calls: DispatchOptions = DEFAULT_CALLS,
    run_budget_usd: RunBudget = None,
) -> int:
    """Train a policy in a run's folder. The same command resumes a run that was killed.

    Args:
        overrides: Settings as key=value, such as grpo.iterations=100; they override the file.
        run: The folder to which the run writes its configuration, metrics.jsonl, checkpoints and, at the end, the
            policy. A dry run needs none.
        stage: grpo is reinforcement learning, sft supervised training on examples. Installed packages add further
            stages; podium-lab adds warmstart, which makes the small policy that make demo trains, and orchestra, which
            makes small language models as workers.
        engine: trl trains any language model; small trains policies of a few million parameters on one CPU. auto takes
            small for a checkpoint that small can train, else trl.
        config: A TOML file of settings. Default: the settings of the shipped run.
        eval_questions: How many validation questions the policy is evaluated on, every grpo.eval_every iterations.
            Default: 200 with the small engine, grpo.eval_questions of the settings with TRL.
        dry_run: Train nothing. Estimate the run's calls, dollars, GPU memory and time, and list all reasons to refuse
            the run. If there is none, print a price, then send each worker one question and grade the answers.
        json: With --dry-run: print one JSON object.
    """
    if eval_questions is not None and eval_questions < 1:
        raise UsageError(f"--eval-questions {eval_questions}: give at least 1.")
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
    from podium.cli import training  # noqa: PLC0415 - loads torch

    if dry_run:
        if not training.is_lm_run(config, overrides, engine, stage):
            raise UsageError("--dry-run is for --engine trl; the small engine's own pools cost nothing.")
        from podium.cli import lm_training  # noqa: PLC0415 - loads TRL

        overrides = _with_eval_questions(overrides, eval_questions)
        return lm_training.dry_run_lm(
            config, overrides, run, calls=calls, run_budget_usd=run_budget_usd, json=json
        )
    assert run is not None
    if (installed := STAGES.find(stage)) is not None:
        return 0 if installed(config, overrides, run) else 1
    if training.is_lm_run(config, overrides, engine, stage):
        from podium.cli import lm_training  # noqa: PLC0415 - loads TRL

        overrides = _with_eval_questions(overrides, eval_questions)
        lm_training.train_lm(
            config,
            overrides,
            run,
            stage="sft" if stage == "sft" else "grpo",
            calls=calls,
            run_budget_usd=run_budget_usd,
        )
        return 0
    training.run_training(
        config,
        overrides,
        run,
        eval_questions=200 if eval_questions is None else eval_questions,
        calls=calls,
        run_budget_usd=run_budget_usd,
    )
    return 0


def push(run: Path, *, to: str, private: Flag = False) -> int:
    """Publish the policy of a run with a model card: its pool, tasks, curves, limits, and how to serve it.

    Args:
        run: The run's folder.
        to: A new folder, or hub:OWNER/NAME for the Hugging Face hub.
        private: On the hub: show it to its owner alone.
    """
    _need_torch()
    from podium.cli import lm_training  # noqa: PLC0415 - loads TRL

    lm_training.push_policy(run, to, private=private)
    return 0


def _with_eval_questions(overrides: tuple[str, ...], count: int | None) -> tuple[str, ...]:
    """The overrides of a run that TRL trains: there the number is a setting."""
    return overrides if count is None else (*overrides, f"grpo.eval_questions={count}")


def _need_torch() -> None:
    if find_spec("torch") is None:
        raise UsageError("Training needs torch; install it with: pip install 'podium-conductor[train]'.")
