"""Runs a training with its settings, its display, and an evaluation of the policy at intervals.

Loads torch. `train` never imports `evals`, so this module hands the evaluation to the training loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
from podium.orchestra.laboratory import open_examples
from podium.orchestra.training import POOL, OrchestraSettings, train_orchestra
from podium.orchestrator.team import open_pool
from podium.rollout.random_pools import PoolSource
from podium.tasks import open_tasks
from podium.train.display import training_display
from podium.train.experiment import Dispatch, can_train, run_experiment
from podium.train.loop import Evaluate
from podium.train.settings import Experiment
from podium.types import Budget
from podium.warmstart.acceptance import (
    COPYING,
    NAME_TO_NUMBER,
    SKILL_TO_NUMBER,
    STEPS_SAVED,
    VALID_PLANS,
    AcceptanceReport,
)
from podium.warmstart.supervised import WarmStartSettings, run_warmstart
from podium.workers.pool import Pool

_LINE_EVERY = 10
"""Without a terminal, one line is printed for this many rows of a warm start."""


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


def make_warmstart(config: Path | None, overrides: Sequence[str], run: Path) -> bool:
    """Make the policy that reinforcement starts from; returns whether it passed the acceptance tests."""
    settings = read_run_settings(config, WarmStartSettings, overrides)
    console = open_console()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        console=console,
    )
    with bar if console.is_terminal else nullcontext():
        task = bar.add_task("warm start", total=settings.steps)

        def show(row: Mapping[str, Any]) -> None:
            bar.update(task, completed=row["step"], description=f"loss {row['loss']:.3f}")
            if not console.is_terminal and row["step"] // 20 % _LINE_EVERY == 0:
                console.print(
                    f"step {row['step']}/{settings.steps}  loss {row['loss']:.3f}  {row['seconds']:.0f} s"
                )

        reports = run_warmstart(
            settings,
            run,
            data=open_examples(settings.pool) if settings.tasks == "world" else None,
            show=show,
        )
    for what, report in reports.items():
        console.print(f"Acceptance, {what}:")
        _print_acceptance(report, console)
    console.print(f"The policy is in {run / 'policy'}", soft_wrap=True)
    return all(report.passed for report in reports.values())


def make_orchestra(config: Path | None, overrides: Sequence[str], run: Path) -> None:
    """Train the workers of the orchestra, and write their pool file."""
    settings = read_run_settings(config, OrchestraSettings, overrides)
    console = open_console()

    def show(name: str, row: Mapping[str, Any]) -> None:
        console.print(f"{name}  step {row['step']}  loss {row['loss']:.3f}", soft_wrap=True)

    train_orchestra(settings, run, show)
    console.print(f"The workers are in {run}; their pool file is {run / POOL}", soft_wrap=True)


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


def _print_acceptance(report: AcceptanceReport, console: Console) -> None:
    shares = [
        ("name to number", report.name_to_number, NAME_TO_NUMBER),
        ("skill to number", report.skill_to_number, SKILL_TO_NUMBER),
        ("copying of spans", report.copying, COPYING),
        *((f"valid plans of {n}", share, VALID_PLANS) for n, share in report.valid_plans.items()),
    ]
    for what, share, least in shares:
        console.print(f"{what:<18} {share:7.2%}  {_verdict(share, least)} (at least {least:.0%})")
    for level, saved in enumerate(report.steps_saved, start=1):
        verdict = _verdict(saved, STEPS_SAVED)
        console.print(
            f"{f'saved at level {level}':<18} {saved:7.2f}  {verdict} (at least {STEPS_SAVED} steps)"
        )


def _verdict(figure: float, least: float) -> str:
    return "passed" if figure >= least else "FAILED"
