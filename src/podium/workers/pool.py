"""The pool: named workers in an order. It is frozen. A plan's worker k is `pool[k]`.

This module also builds a pool from the tables of a file, which `podium.team.team_file` reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Self, TypeVar

from pydantic import model_validator

from podium.config import Settings, SettingsSource, suggestion
from podium.config.toml import Where
from podium.errors import ConfigError
from podium.plugins import shipped_pool
from podium.types import Profile
from podium.workers.base import Worker
from podium.workers.build import AnySpec, BuildContext, UnavailableWorker, WorkerKind, build_worker
from podium.workers.ratings import Ratings
from podium.workers.redaction import Secrets
from podium.workers.spec import WorkerSpec

S = TypeVar("S", bound=Settings)


class PoolSpec(Settings):
    """The workers of a team file."""

    ratings: Path | None = None
    """The ratings file (`podium rate`), relative to the folder of the file."""
    worker: tuple[AnySpec, ...] = ()

    @model_validator(mode="after")
    def _check_loaded_at_once(self) -> Self:
        """Check that all workers of a machine have the same `loaded_at_once`."""
        holds: dict[str, int] = {}
        for spec in self.worker:
            machine, models = spec.limits.host, spec.limits.loaded_at_once
            if machine is not None and holds.setdefault(machine, models) != models:
                raise ValueError(
                    f"{spec.name} says that {machine} holds {models} models at once, and another worker "
                    f"{holds[machine]}; write the same loaded_at_once for both."
                )
        return self


class Pool:
    """Workers in an order.

    Raises:
        ConfigError: there is no worker, one is no `Worker`, two have one name, a fallback is not in the pool, or
            fallbacks form a circle.
    """

    __slots__ = ("_aliases", "_by_name", "_workers", "profiles", "ratings", "secrets", "source")

    def __init__(
        self,
        workers: Sequence[Worker],
        ratings: Ratings | None = None,
        *,
        source: SettingsSource | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self.ratings = ratings
        """The ratings of the workers. None if no worker was measured."""
        self.source = source
        """The file that the pool was read from. None if it was made in a program."""
        self.secrets = Secrets.of_proxies() if secrets is None else secrets
        """The secrets that the pool's workers, and an endpoint that plans for the pool, remove from messages and
        replies."""
        self._aliases: Mapping[str, str] = {}
        for worker in workers:
            if not isinstance(worker, Worker):
                raise ConfigError(
                    f"{type(worker).__name__} is no podium.workers.Worker; derive its class from it."
                )
        self._fill(workers)
        for worker in self._workers:
            self._check_fallbacks(worker)

    def _fill(self, workers: Sequence[Worker]) -> None:
        self._workers = tuple(workers)
        self.profiles = tuple(worker.profile for worker in workers)
        """The profiles of the workers, in order, without ratings for a question."""
        if not workers:
            raise ConfigError("A pool of none: it needs at least one [[worker]].", ("worker",))
        self._by_name: dict[str, Worker] = {}
        for i, worker in enumerate(workers):
            name = worker.profile.name
            if name in self._by_name:
                raise ConfigError(
                    f"Two workers are named {name!r}; give each its own name.", ("worker", i, "name")
                )
            self._by_name[name] = worker

    def profiles_for(self, question: str) -> tuple[Profile, ...]:
        """The profiles that planners see, in order, with the workers' ratings on questions like this one."""
        profiles = self.profiles
        if self.ratings is not None:
            profiles = tuple(self.ratings.rated(profile, question) for profile in profiles)
        if not self._aliases:
            return profiles
        return tuple(p.model_copy(update={"name": self._aliases.get(p.name, p.name)}) for p in profiles)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the workers, in order."""
        return tuple(self._by_name)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(worker.profile.name for worker in self if worker.is_tool)

    @property
    def answering(self) -> tuple[str, ...]:
        """The names of all workers except tools, in order. These can answer a question."""
        return tuple(worker.profile.name for worker in self if not worker.is_tool)

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers)

    def __getitem__(self, index: int) -> Worker:
        return self._workers[index]

    def __repr__(self) -> str:
        return f"Pool({', '.join(self.names)})"

    def named(self, name: str) -> Worker:
        """The worker of that name.

        Raises:
            ConfigError: no worker has that name.
        """
        if name not in self._by_name:
            raise ConfigError(f"The pool has no worker named {name!r}; {suggestion(name, self.names)}")
        return self._by_name[name]

    def fallback(self, worker: Worker) -> Worker | None:
        """The fallback of `worker`. None if it has no fallback, or if a subset of the pool left the fallback out."""
        return None if worker.fallback is None else self._by_name.get(worker.fallback)

    def subset(self, indices: Sequence[int]) -> Pool:
        """A pool of the workers at `indices`, in that order. A fallback that is left out is not called."""
        return self._with([self._workers[i] for i in indices])

    def replaced(self, workers: Mapping[str, Worker]) -> Pool:
        """A pool in which other workers replace the workers of these names."""
        return self._with([workers.get(worker.profile.name, worker) for worker in self._workers])

    def joined(self, workers: Sequence[Worker]) -> Pool:
        """A pool with further workers after the present workers.

        Raises:
            ConfigError: two workers have one name.
        """
        return self._with((*self._workers, *workers))

    def aliased(self, aliases: Mapping[str, str]) -> Pool:
        """A pool of the same workers, which planners see under other names.

        Args:
            aliases: the other names, by the workers' own names.
        """
        pool = self._with(self._workers)
        pool._aliases = aliases
        return pool

    def _with(self, workers: Sequence[Worker]) -> Pool:
        """A copy of this pool with other workers. Fallbacks are not checked."""
        pool = copy(self)
        pool._fill(workers)
        return pool

    async def close(self) -> None:
        """Close every worker's connections. Calling this twice is fine. A later call of a worker opens new
        connections."""
        async with asyncio.TaskGroup() as tasks:
            for worker in self._workers:
                tasks.create_task(worker.close())

    def _check_fallbacks(self, worker: Worker) -> None:
        chain = [worker.profile.name]
        while (name := worker.fallback) is not None:
            where = ("worker", self.names.index(chain[-1]), "fallback")
            if name not in self._by_name:
                raise ConfigError(
                    f"Worker {chain[-1]!r} falls back to {name!r}, which is not in the pool; "
                    f"{suggestion(name, self.names)}",
                    where,
                )
            chain.append(name)
            if name in chain[:-1]:
                circle = " -> ".join(chain[chain.index(name) :])
                raise ConfigError(f"The fallbacks go in a circle: {circle}; leave one of them out.", where)
            worker = self._by_name[name]


def build_pool(
    spec: PoolSpec,
    source: SettingsSource,
    kinds: Mapping[str, WorkerKind] | None = None,
    *,
    rated: bool = True,
    ready: bool = True,
) -> Pool:
    """Build the workers of a file that has been read.

    Args:
        kinds: further kinds of workers, by name.
        rated: whether the ratings that the file names are read.
        ready: whether every worker must be ready to be called. If not, an `UnavailableWorker` stands for one that is
            not, for example because its key is not in the environment.

    Raises:
        ConfigError: the file has something that cannot be used.
    """
    context = BuildContext(folder=source.folder)
    try:
        rated_by = _with_override_paths(spec, source, ()).ratings
        ratings = Ratings.open(source.folder / rated_by) if rated and rated_by else None
    except ConfigError as error:
        raise source.error_at(error, "ratings") from None
    workers: list[Worker] = []
    for i, worker in enumerate(spec.worker):
        try:
            resolved = _with_override_paths(worker, source, ("worker", i))
            workers.append(build_worker(resolved, context, kinds))
        except ConfigError as error:
            if ready:
                raise source.error_at(error, "worker", i, *error.where) from None
            workers.append(UnavailableWorker(worker, error))
    try:
        return Pool(workers, ratings, source=source, secrets=context.secrets)
    except ConfigError as error:
        raise source.error_at(error, *error.where) from None


def _with_override_paths(spec: S, source: SettingsSource, where: Where) -> S:
    """The settings at `where`, in which paths that overrides give are absolute."""
    override_keys = {override.where for override in source.overrides}
    is_given = any(where[:length] in override_keys for length in range(1, len(where) + 1))
    texts = spec.path_keys if isinstance(spec, WorkerSpec) else frozenset[str]()
    paths: dict[str, Path | str] = {}
    for key, value in spec:
        if is_given or (*where, key) in override_keys:
            if isinstance(value, Path):
                paths[key] = value.absolute()
            elif key in texts:
                paths[key] = str(Path(value).absolute())
    return spec.model_copy(update=paths) if paths else spec


def pool_file(name: str, folder: Path = Path()) -> Path:
    """The file of the pool that is shipped or installed under this name (`podium.plugins`). If there is none, the file
    of this name in `folder`."""
    return shipped_pool(name) or folder / name
