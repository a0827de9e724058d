"""The stages that `podium train --stage` gets from this package: the start of a small policy, and the small workers.

Each reads its settings, trains, and prints how far it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from podium.cli.run_settings import read_run_settings
from podium.cli.terminal import open_console
from podium.train.runtime import compute_on_one_core
from podium_lab.small_workers.training import POOL, OrchestraSettings, train_orchestra
from podium_lab.warmstart.acceptance import (
    COPYING,
    NAME_TO_NUMBER,
    SKILL_TO_NUMBER,
    STEPS_SAVED,
    VALID_PLANS,
    AcceptanceReport,
)
from podium_lab.warmstart.supervised import WarmStartSettings, run_warmstart

_LINE_EVERY = 10
"""Without a terminal, one line is printed for this many rows of a warm start."""


def make_warmstart(config: Path | None, overrides: Sequence[str], run: Path) -> bool:
    """Make the policy that reinforcement starts from; returns whether it passed the acceptance tests."""
    settings = read_run_settings(config, WarmStartSettings, overrides)
    compute_on_one_core()
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

        reports = run_warmstart(settings, run, show=show)
    for what, report in reports.items():
        console.print(f"Acceptance, {what}:")
        _print_acceptance(report, console)
    console.print(f"The policy is in {run / 'policy'}", soft_wrap=True)
    return all(report.passed for report in reports.values())


def make_workers(config: Path | None, overrides: Sequence[str], run: Path) -> bool:
    """Train the small workers, and write their team file."""
    settings = read_run_settings(config, OrchestraSettings, overrides)
    compute_on_one_core()
    console = open_console()

    def show(name: str, row: Mapping[str, Any]) -> None:
        console.print(f"{name}  step {row['step']}  loss {row['loss']:.3f}", soft_wrap=True)

    train_orchestra(settings, run, show)
    console.print(f"The workers are in {run}; their team file is {run / POOL}", soft_wrap=True)
    return True


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
