"""What `podium eval` compares: which Conductors, at which cost sensitivity, on which tasks, over which pool."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from podium.cli.options import SHIPPED_CONDUCTOR, PlannerOptions
from podium.conductor import Checkpoint
from podium.errors import UsageError
from podium.evals.compare import SECOND_CONDUCTOR
from podium.rollout.run_folder import RunFolder
from podium.rows import is_table
from podium.tasks.open import EMBEDDED
from podium.workers.pool import pool_file


def is_named(planner: PlannerOptions) -> bool:
    """Whether the options name a Conductor, and not only a level of cost sensitivity."""
    return dataclasses.replace(planner, cost_sensitivity=None) != SHIPPED_CONDUCTOR


def conductor_of_run(planner: PlannerOptions, run: Path | None) -> PlannerOptions:
    """The options with the run's own policy, where it has one and the options name no other Conductor."""
    if run is None or is_named(planner) or not (run / "policy").is_dir():
        return planner
    return dataclasses.replace(planner, conductor=str(run / "policy"))


def refuse_without_conductor(planner: PlannerOptions, versus: str | None) -> None:
    """Refuse options of a Conductor if none is compared: on a recording the shipped one is left out.

    Raises:
        UsageError: --versus or --cost-sensitivity is given.
    """
    if versus is not None:
        raise UsageError("--versus names a second Conductor; give the first with --conductor.")
    if planner.cost_sensitivity is not None:
        raise UsageError("--cost-sensitivity is for a Conductor; on a recording name one with --conductor.")


def conductors_to_compare(
    planner: PlannerOptions, versus: str | None
) -> Iterator[tuple[str, PlannerOptions]]:
    """The Conductors of a comparison on a recording, by label, without the shipped one."""
    if is_named(planner):
        yield from _at_levels("Conductor", planner)
    if versus is not None:
        yield from _at_levels(SECOND_CONDUCTOR, second_conductor(versus, planner))


def second_conductor(versus: str, first: PlannerOptions) -> PlannerOptions:
    """The Conductor of --versus, at the first one's level of cost sensitivity if it knows levels."""
    knows = Checkpoint.read(versus).prompt.levels > 0
    return PlannerOptions(conductor=versus, cost_sensitivity=first.cost_sensitivity if knows else None)


def _at_levels(label: str, planner: PlannerOptions) -> Iterator[tuple[str, PlannerOptions]]:
    """The Conductor at the level that the options name, else at each level that it knows, the lowest first."""
    levels: Iterable[float | None] = [planner.cost_sensitivity]
    if planner.cost_sensitivity is None and planner.conductor is not None:
        levels = range(Checkpoint.read(planner.conductor).prompt.levels) or levels
    for level in levels:
        yield conductor_label(label, level), dataclasses.replace(planner, cost_sensitivity=level)


def conductor_label(label: str, cost_sensitivity: float | None) -> str:
    """The label of a row, with the level where there is one."""
    return label if cost_sensitivity is None else f"{label}, cost sensitivity {cost_sensitivity:g}"


def tasks_and_pool(run: Path | None, *, tasks: str | None, pool: str | None) -> tuple[str, str]:
    """The task set and the pool: those that the options name, else those of the run's training, else the embedded ones.

    Raises:
        UsageError: the run was trained on a file that cannot be found from this folder.
        RunMismatchError: the folder's config.json is not that of a run.
    """
    if run is None or not (run / "config.json").is_file():
        return tasks or EMBEDDED, pool or EMBEDDED
    had = RunFolder(run).configuration
    if tasks is None:
        tasks = str(had.get("tasks", EMBEDDED))
        _check(run, tasks, there=not _is_file_name(tasks) or Path(tasks).is_file())
    if pool is None:
        pool = str(had.get("pool", EMBEDDED))
        _check(run, pool, there=pool_file(pool).is_file())
    return tasks, pool


def _is_file_name(tasks: str) -> bool:
    """Whether a task set is a file: a recording, a task file or a table."""
    return tasks.endswith(".toml") or is_table(Path(tasks))


def _check(run: Path, name: str, *, there: bool) -> None:
    if not there:
        raise UsageError(
            f"{run} was trained on {name}, which cannot be found from this folder; run the command in the folder of "
            "the training, or name --tasks and --pool."
        )
