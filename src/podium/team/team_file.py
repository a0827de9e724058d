"""Reads team files, and opens the workers that they name. A worker may itself be a team.

The tables of a file are merged with overrides, and with the tables of the file that its key `pool` names, before they
are validated. So each file is read once, and each table validated once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from podium.calls import CallState
from podium.conductor.settings import SOURCES
from podium.config import SettingsSource
from podium.errors import ConfigError, UsageError
from podium.planners import find_baseline
from podium.plugins import shipped_checkpoint, shipped_pool
from podium.spending.shared_spend_limit import read_day_budget
from podium.team.opened_planner import open_planner
from podium.team.settings import TeamSettings, TeamWorkerSpec
from podium.team.team_worker import TeamWorker
from podium.workers.base import Worker
from podium.workers.build import BuildContext, WorkerKind
from podium.workers.pool import Pool, build_pool, pool_file
from podium.workers.spec import LocalSpec

_MAX_DEPTH = 3
"""How deep teams may be nested."""
_TIME_SHARE = 0.95
"""The share of a call's time that a team has for its question, so that it can return an answer before the timeout."""
_PATHS = ("store", "cache", "conductor.checkpoint", "serve.runs")
"""Keys whose values are paths."""
_PATHS_OR_NAMES = ("pool", "conductor.podium_file", "eval.tasks")
_IN_HOME = frozenset({"store", "cache"})
"""Paths in which "~" is the user's home."""
_WORKER_FILE_KEYS = ("worker", "ratings", "conductor", "plan")
"""The keys that another pool on the command line replaces all together."""


@dataclass(frozen=True, slots=True)
class TeamReference:
    """A team by its file or name, with overrides: what a command names, and another process can read again."""

    name: str | None = None
    """A file, or the name of a shipped or installed team. None if there are only overrides."""
    overrides: tuple[str, ...] = ()
    """Texts such as "budget.usd=0.1", or "worker.gpt-5.limits.timeout=10"."""
    files: Mapping[Path, bytes] | None = None
    """Contents of files by absolute path, in place of the files on the disk. If it is None, the disk is read."""

    def read(self) -> TeamSettings:
        """Read the settings.

        - An override of `pool` replaces the file's own workers, ratings, [conductor] and [plan].
        - An override that names a Conductor replaces the file's [conductor], but for its fallback.
        - The day's limit is the smaller one of the file's and `$PODIUM_DAY_BUDGET_USD`, unless an override sets it.

        Raises:
            ConfigError: something cannot be used. The message names the line or the override.
        """
        if self.name is None:
            source = SettingsSource("the command line", {}, files=self.files)
        else:
            source = SettingsSource.read(pool_file(self.name), files=self.files)
        settings = read_team(source, self.overrides)
        written = settings.budget.day_usd
        if written is None or self.sets("budget.day_usd"):
            return settings
        budget = settings.budget.model_copy(update={"day_usd": smaller_day_limit(written)})
        return settings.model_copy(update={"budget": budget})

    def sets(self, key: str) -> bool:
        """Whether an override sets this key."""
        return any(text.partition("=")[0].strip() == key for text in self.overrides)


def smaller_day_limit(written: float | None) -> float | None:
    """The smaller of the day's dollars in a file and in `$PODIUM_DAY_BUDGET_USD`. None if neither is set."""
    return _smaller(written, read_day_budget())


def read_team(file: SettingsSource, overrides: Sequence[str] = ()) -> TeamSettings:
    """The settings of a file's tables with overrides."""
    tables, source = _resolve_paths(file), file
    override_of = {text.partition("=")[0].strip(): text for text in overrides}
    if "pool" in override_of:
        tables = {key: value for key, value in tables.items() if key not in _WORKER_FILE_KEYS}
        tables["pool"] = file.with_tables({}, [override_of["pool"]]).tables["pool"]
        source = replace(file, files=None)
    if isinstance(pool := tables.get("pool"), str):
        if "worker" in tables:
            raise file.error_at("the workers stand here, and pool names others; keep one of them.", "pool")
        base = SettingsSource.read(pool_file(pool), files=source.files)
        if "pool" in base.tables:
            raise base.error_at("pool names further workers; name the file that has them.", "pool")
        tables = _merge_worker_file(tables, _resolve_paths(base))
        source = replace(source, base=base, folder=base.folder)
    conductor = tables.get("conductor")
    if isinstance(conductor, Mapping) and any(f"conductor.{key}" in override_of for key in SOURCES):
        tables["conductor"] = _fallback_alone(conductor)
    source = source.with_tables(tables, overrides)
    return source.into(TeamSettings, source)


def _merge_worker_file(team: Mapping[str, Any], workers: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a team's file, merged with the tables of the file that has the team's workers."""
    tables = {**team, **{key: workers[key] for key in ("worker", "ratings") if key in workers}}
    for key in ("conductor", "plan"):
        mine, shared = team.get(key, {}), workers.get(key, {})
        if isinstance(mine, Mapping) and isinstance(shared, Mapping) and shared:
            if key == "conductor" and not mine.keys().isdisjoint(SOURCES):
                shared = _fallback_alone(shared)
            tables[key] = {**shared, **mine}
    return tables


def _fallback_alone(conductor: Mapping[str, Any]) -> dict[str, Any]:
    """The table [conductor] where another Conductor takes the place of the one that it names."""
    return {key: value for key, value in conductor.items() if key == "fallback"}


def _resolve_paths(source: SettingsSource) -> dict[str, Any]:
    """The tables with their paths made relative to the working folder. Names, addresses and paths of workers stay, and
    so does a value of a wrong type, which validation refuses."""
    resolved = {k: dict(value) if isinstance(value, Mapping) else value for k, value in source.tables.items()}
    for dotted in (*_PATHS, *_PATHS_OR_NAMES):
        table, _, key = dotted.rpartition(".")
        section = resolved.get(table) if table else resolved
        value = section.get(key) if isinstance(section, dict) else None
        if not isinstance(section, dict) or not isinstance(value, str) or "://" in value:
            continue
        if key == "checkpoint" and shipped_checkpoint(value):
            continue
        if dotted in _IN_HOME:
            value = os.path.expanduser(value)
        path = source.folder / value
        is_name = shipped_pool(value) is not None if key == "pool" else not os.path.exists(path)
        if dotted not in _PATHS_OR_NAMES or not is_name:
            section[key] = str(path)
    plan = resolved.get("plan")
    planner = plan.get("planner") if isinstance(plan, dict) else None
    if isinstance(plan, dict) and isinstance(planner, str) and planner.partition(":")[0] != "conductor":
        baseline = find_baseline(planner)
        if baseline is not None and baseline[0].reads_files and baseline[1]:
            plan["planner"] = f"{baseline[0].name}:{source.folder / baseline[1]}"
    return resolved


def check_tables(source: SettingsSource) -> None:
    """Check a file alone, without the file that its key `pool` names."""
    source.into(TeamSettings)


def named_store(source: SettingsSource) -> str | None:
    """The store that a file names. None if the file names none."""
    store = _resolve_paths(source).get("store")
    return store if isinstance(store, str) else None


def open_pool(
    team: str | Path | TeamSettings,
    overrides: Sequence[str] = (),
    *,
    rated: bool = True,
    ready: bool = True,
) -> Pool:
    """Open the workers of settings, a file, or the name of a shipped or installed team. The caller closes the pool.
    `overrides` of a file are texts such as "worker.gpt-5.limits.timeout=10"; `rated` and `ready` are those of
    `build_pool`. What cannot be used is a `ConfigError`; settings without a worker are a `UsageError`."""
    if team == "":
        raise ConfigError(
            "No pool is named, so there is nobody to ask: give a team file as pool; `podium init` writes one.",
            ("pool",),
        )
    settings = team if isinstance(team, TeamSettings) else TeamReference(str(team), tuple(overrides)).read()
    workers_file = settings.workers_file if settings.pool is None else pool_file(settings.pool)
    # A loop of links stays as it is, since reading it has raised an error before.
    files = None if settings.source is None else settings.source.files
    kinds = _nested_kinds((Path(os.path.realpath(workers_file)),), files)
    return _open_pool(settings, kinds, rated=rated, ready=ready)


def _open_pool(
    settings: TeamSettings, kinds: Mapping[str, WorkerKind], *, rated: bool = True, ready: bool = True
) -> Pool:
    source = settings.source or SettingsSource("the settings", {})
    if not settings.worker and settings.pool is None and not source.text:
        raise UsageError(
            "No team is named, so there is nobody to ask. `podium init` finds the models on this machine and writes "
            "team.toml; else name a team file with --team."
        )
    return build_pool(settings, source, kinds, rated=rated, ready=ready)


def _nested_kinds(chain: tuple[Path, ...], files: Mapping[Path, bytes] | None) -> dict[str, WorkerKind]:
    """The worker kinds "podium" and "local". The chain has the files of this pool and of the pools that contain it, the
    outermost first."""
    return {
        "podium": WorkerKind(TeamWorkerSpec, partial(_open_nested, chain, files)),
        "local": WorkerKind(LocalSpec, _build_local),
    }


def _open_nested(
    chain: tuple[Path, ...], files: Mapping[Path, bytes] | None, spec: TeamWorkerSpec, context: BuildContext
) -> Worker:
    path = Path(os.path.realpath(pool_file(spec.pool, context.folder)))
    nested = " -> ".join(map(str, (*chain, path)))
    if path in chain:
        raise ConfigError(f"the pool contains itself: {nested}; name another pool.", ("pool",))
    if len(chain) >= _MAX_DEPTH:
        raise ConfigError(
            f"{nested} are more than {_MAX_DEPTH} pools within one another; leave one out.", ("pool",)
        )
    keys = spec.model_dump(mode="json", include={"conductor", "plan", "budget"}, exclude_unset=True)
    try:
        tables = {"pool": spec.pool, **keys}
        settings = read_team(
            SettingsSource(f"Worker {spec.name!r}", tables, folder=context.folder, files=files)
        )
        pool = _open_pool(settings, _nested_kinds((*chain, path), files))
    except ConfigError as error:
        raise ConfigError(str(error), ("pool",)) from None
    try:
        return _build_team(spec, settings, pool)
    except UsageError as error:
        raise ConfigError(str(error), ("plan",)) from None


def _build_local(spec: LocalSpec, context: BuildContext) -> Worker:
    from podium.conductor.local_worker import build_local  # noqa: PLC0415 - loads NumPy

    return build_local(spec, context)


def _build_team(spec: TeamWorkerSpec, settings: TeamSettings, pool: Pool) -> TeamWorker:
    opened_planner = open_planner(settings, pool, seed=f"team/{spec.name}")
    runner = opened_planner.make_runner(settings, pool, CallState(), shows_unloaded_models=False)
    limits = spec.limits
    budget = runner.budget.model_copy(
        update={
            "usd": _smaller(runner.budget.usd, limits.max_usd),
            "seconds": _smaller(runner.budget.seconds, limits.timeout * _TIME_SHARE),
        }
    )
    identity: dict[str, Any] = {
        "kind": "podium",
        "plan": settings.plan.model_dump(mode="json"),
        "conductor": settings.conductor.model_dump(mode="json", exclude_unset=True),
        "pool": [[worker.profile.model_dump(mode="json"), worker.identity] for worker in pool],
        "budget": budget.model_dump(mode="json"),
        "max_steps": runner.max_steps,
    }
    return TeamWorker(
        spec.to_profile(),
        replace(runner, budget=budget),
        opened_planner=opened_planner,
        limits=limits,
        fallback=spec.fallback,
        identity=identity if spec.cache else None,
    )


def _smaller(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
