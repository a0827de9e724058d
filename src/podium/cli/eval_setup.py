"""What `podium eval` compares: which Conductors, at which cost sensitivity, on which tasks, over which pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from podium.cli.team_file import find_team
from podium.cli.team_options import EvalOptions
from podium.conductor import Checkpoint
from podium.conductor.settings import SOURCES
from podium.errors import UsageError
from podium.evals.compare import SECOND_CONDUCTOR
from podium.rollout.run_folder import RunFolder
from podium.rows import is_table
from podium.team.settings import TeamSettings
from podium.workers.pool import pool_file


def team_to_compare(options: EvalOptions, keys: Sequence[str], run: Path | None) -> TeamSettings:
    """The team whose planner is compared. What the command does not name, the run's training says: the pool, the tasks,
    and the policy.

    Raises:
        UsageError: the run was trained on a file that cannot be found from this folder.
        RunMismatchError: the folder's config.json is not that of a run.
    """
    given = {text.partition("=")[0].strip() for text in (*options.overrides(), *keys)}
    if run is not None and (run / "config.json").is_file():
        had = RunFolder(run).configuration
        if "eval.tasks" not in given and "tasks" in had:
            tasks = str(had["tasks"])
            _check(run, tasks, there=not _is_file_name(tasks) or Path(tasks).is_file())
            options = replace(options, tasks=tasks)
        if "pool" not in given and options.team is None and "pool" in had:
            pool = str(had["pool"])
            _check(run, pool, there=pool_file(pool).is_file())
            options = replace(options, pool=pool)
    settings = find_team(options, keys).read()
    named = given & {"plan.planner", *(f"conductor.{key}" for key in SOURCES)}
    if run is None or named or not (run / "policy").is_dir():
        return settings
    return settings.with_checkpoint(str(run / "policy"), settings.plan.cost_sensitivity)


def is_named(team: TeamSettings) -> bool:
    """Whether the settings name a Conductor."""
    return team.conductor.names_conductor or team.plan.conducting_worker is not None


def refuse_without_conductor(team: TeamSettings, versus: str | None) -> None:
    """Refuse settings of a Conductor if none is compared: on a recording the shipped one is left out.

    Raises:
        UsageError: --versus or plan.cost_sensitivity is given.
    """
    if versus is not None:
        raise UsageError("--versus names a second Conductor; give the first with --conductor.")
    if team.plan.cost_sensitivity is not None:
        raise UsageError(
            "plan.cost_sensitivity is for a Conductor; on a recording name one with --conductor."
        )


def conductors_to_compare(team: TeamSettings, versus: str | None) -> Iterator[tuple[str, TeamSettings]]:
    """The Conductors of a comparison on a recording, by label, without the shipped one."""
    if is_named(team):
        yield from _at_levels("Conductor", team)
    if versus is not None:
        yield from _at_levels(SECOND_CONDUCTOR, second_conductor(versus, team))


def second_conductor(versus: str, first: TeamSettings) -> TeamSettings:
    """The Conductor of --versus, at the first one's level of cost sensitivity if it knows levels."""
    knows = Checkpoint.read(versus).prompt.levels > 0
    return first.with_checkpoint(versus, first.plan.cost_sensitivity if knows else None)


def _at_levels(label: str, team: TeamSettings) -> Iterator[tuple[str, TeamSettings]]:
    """The Conductor at the level that the settings name, else at each level that it knows, the lowest first."""
    levels: Iterable[float | None] = [team.plan.cost_sensitivity]
    if team.plan.cost_sensitivity is None and team.conductor.checkpoint is not None:
        levels = range(Checkpoint.read(team.conductor.checkpoint).prompt.levels) or levels
    for level in levels:
        choice = team.plan.model_copy(update={"cost_sensitivity": level})
        yield conductor_label(label, level), team.with_planner(choice)


def conductor_label(label: str, cost_sensitivity: float | None) -> str:
    """The label of a row, with the level where there is one."""
    return label if cost_sensitivity is None else f"{label}, cost sensitivity {cost_sensitivity:g}"


def _is_file_name(tasks: str) -> bool:
    """Whether a task set is a file: a recording, a task file or a table."""
    return tasks.endswith(".toml") or is_table(Path(tasks))


def _check(run: Path, name: str, *, there: bool) -> None:
    if not there:
        raise UsageError(
            f"{run} was trained on {name}, which cannot be found from this folder; run the command in the folder of "
            "the training, or name --pool and --tasks."
        )
