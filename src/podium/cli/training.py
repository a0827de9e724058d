"""Runs a training with its settings, its display, and an evaluation of the policy at intervals.

Loads torch. `train` never imports `evals`, so this module hands the evaluation to the training loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from podium.cli.opening import open_dispatcher
from podium.cli.options import DispatchOptions
from podium.cli.printable import printable
from podium.cli.run_settings import read_run_settings
from podium.cli.terminal import open_console
from podium.conductor import Checkpoint, Conductor, open_policy
from podium.conductor.process_policy import PolicyProcesses, processes_for
from podium.conductor.prompt import numbered_pool
from podium.config import Source
from podium.errors import ConfigError, UsageError
from podium.evals import evaluate
from podium.executor import Dispatcher, ExecutionSettings
from podium.rollout.random_pools import PoolSource
from podium.tasks import open_tasks
from podium.team.opening import open_pool
from podium.train.display import training_display
from podium.train.experiment import Dispatch, can_train, run_experiment
from podium.train.loop import Evaluate
from podium.train.settings import Experiment
from podium.types import Budget
from podium.workers.pool import Pool


def run_training(
    config: Path | None,
    overrides: Sequence[str],
    run: Path,
    *,
    eval_questions: int,
    calls: DispatchOptions,
    run_budget_usd: float | None,
) -> Path:
    """Train, or resume a training; returns the folder of the trained policy."""
    experiment = read_run_settings(config, Experiment, overrides)

    def dispatch(pool: Pool) -> AbstractAsyncContextManager[Dispatcher]:
        return open_dispatcher(calls, pool, run=run, run_budget_usd=run_budget_usd)

    console = open_console()
    policy = asyncio.run(
        run_experiment(
            experiment,
            run,
            dispatch=dispatch,
            evaluate=_evaluator(experiment, eval_questions, dispatch) if experiment.grpo.eval_every else None,
            display=training_display(
                console,
                iterations=experiment.grpo.iterations,
                minutes=experiment.grpo.minutes,
                title=f"Training {run}",
            ),
            on_warning=lambda note: console.print(printable(note), soft_wrap=True),
        )
    )
    console.print(f"The trained policy is in {policy}", soft_wrap=True)
    return policy


def is_lm_run(config: Path | None, overrides: Sequence[str], engine: str, stage: str) -> bool:
    """Whether TRL trains the run; else the small engine does.

    Args:
        engine: of the option; "auto": the configuration decides, and else what the start is.

    Raises:
        ConfigError: the configuration cannot be read, or names an engine that there is not.
        UsageError: the engine is small, which has no supervised training.
    """
    source = Source.of({}, overrides, "command line") if config is None else Source.read(config, overrides)
    chosen = engine if engine != "auto" else str(source.tables.get("engine", "auto"))
    if chosen not in ("auto", "small", "trl"):
        raise source.refuse(ConfigError(f"engine = {chosen!r}: give auto, small or trl.", ("engine",)))
    if stage == "sft" and chosen == "small":
        raise UsageError("--stage sft needs the engine trl: leave out the engine small.")
    if chosen != "auto":
        return chosen == "trl"
    return stage == "sft" or not can_train(str(source.tables.get("start", Experiment().start)))


def _evaluator(experiment: Experiment, questions: int, dispatch: Dispatch) -> Evaluate:
    """The evaluation of a policy during its training: on held-out validation questions, over the run's pool.

    No rollout runs meanwhile, so a dispatcher of its own, over the same files, keeps all limits.
    """

    draw = experiment.pool_draw.model_copy(update={"failing": 0.0})

    async def evaluate_checkpoint(folder: Path) -> Mapping[str, Any]:
        checkpoint = Checkpoint.read(folder)
        workers = numbered_pool(open_pool(experiment.pool), checkpoint.prompt)
        tasks = list(open_tasks(experiment.tasks, "validation", size=questions, pool=workers))
        try:
            async with dispatch(workers) as dispatcher:
                with PolicyProcesses(processes_for(len(tasks))) as processes:
                    evaluation = await evaluate(
                        Conductor(open_policy(checkpoint, processes), checkpoint.prompt),
                        tasks,
                        PoolSource(workers, draw).draw("evaluation"),
                        max_steps=experiment.grpo.max_steps,
                        execution=ExecutionSettings(early_stop=experiment.grpo.early_stop),
                        budget=Budget(rounds=experiment.grpo.rounds),
                        dispatcher=dispatcher,
                    )
        finally:
            await workers.close()
        accuracy = evaluation.accuracy
        return {
            "questions": len(tasks),
            "accuracy": accuracy.mean,
            "accuracy_low": accuracy.low,
            "accuracy_high": accuracy.high,
            "cost_usd": evaluation.cost_usd,
            "steps": evaluation.steps,
            "valid": evaluation.validity,
        }

    return evaluate_checkpoint
