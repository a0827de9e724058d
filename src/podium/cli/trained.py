"""What a run was trained on, by its folder: what `podium eval --run` asks where nothing else is named."""

from __future__ import annotations

from pathlib import Path

from podium.errors import UsageError
from podium.rollout.run_folder import RunFolder
from podium.tasks.open import EMBEDDED
from podium.workers.pool import pool_file


def trained_on(run: Path | None, *, tasks: str | None, pool: str | None) -> tuple[str, str]:
    """The task set and the pool: each as it is named, else as the run had it, else the embedded one.

    Of a warm start with several recordings the first is meant.

    Raises:
        UsageError: the run's file is not there, as seen from here.
        RunMismatchError: the folder's config.json is something else.
    """
    if run is None or not (run / "config.json").is_file():
        return tasks or EMBEDDED, pool or EMBEDDED
    had = RunFolder(run).configuration
    if tasks is None:
        tasks = str(had.get("tasks", EMBEDDED))
        _check(run, tasks, there=not tasks.endswith((".parquet", ".toml")) or Path(tasks).is_file())
    if pool is None:
        pool = str(had.get("pool", EMBEDDED))
        _check(run, pool, there=pool_file(pool).is_file())
    return tasks, pool


def _check(run: Path, name: str, *, there: bool) -> None:
    if not there:
        raise UsageError(
            f"{run} was trained on {name}, which is not there as seen from this folder; evaluate where it was trained, "
            "or name --tasks and --pool."
        )
