"""The taskset: the questions of a scoring session by name, and where the session is.

A task holds no prompt: the session writes one for each round, over the pool that the task was given.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing

import verifiers.v1 as vf

from podium.calls import CallState
from podium.concurrency.event_loops import LoopThread
from podium.errors import ConfigError
from podium.scoring import ScoringBackend, ScoringClient, ScoringSettings, SessionInfo, open_session
from podium.scoring.session import open_training_tasks
from podium.team.team_file import open_pool
from podium.workers.base import has_costly_workers
from podium.workers.pool import Pool


class PodiumConfig(vf.TasksetConfig):
    """Under `--env.taskset.*`, or `[env.taskset]`."""

    scoring: ScoringSettings | None = None
    """Questions, pool, prompt, rounds and reward. None: those of the service, or Podium's defaults without one."""
    url: str | None = None
    """A running `podium score-server`. None: plans are run in this process, over workers that cost nothing."""
    key_env: str | None = None
    """The environment variable that holds the service's key."""

    @property
    def client_options(self) -> dict[str, object]:
        """How a client reaches the service, and the settings that it expects there."""
        key = None if self.key_env is None else os.environ.get(self.key_env)
        return {"key": key, "settings": self.scoring}

    def open_pool(self) -> Pool:
        """The pool that plans are run over in this process.

        Raises:
            ConfigError: its workers are paid for.
        """
        settings = self.scoring or ScoringSettings()
        pool = open_pool(settings.pool)
        if has_costly_workers(pool):
            # Environment workers are several processes, and each would have limits and a budget of its own.
            raise ConfigError(
                f"The workers of the pool {settings.pool!r} are paid for, and their limits, cache and budget must hold "
                "for the whole run: start `podium score-server` and set env.taskset.url to its address."
            )
        return pool

    @asynccontextmanager
    async def open_scoring(self) -> AsyncIterator[ScoringBackend]:
        """The service's client, or a session in this process."""
        if self.url is not None:
            async with ScoringClient(self.url, **self.client_options) as client:
                yield client
            return
        pool = self.open_pool()
        try:
            async with open_session(self.scoring or ScoringSettings(), CallState(), pool=pool) as session:
                yield session
        finally:
            await pool.close()


class PodiumTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    """A question, by its name in the scoring session. `PodiumEnv` rewards it."""

    @property
    def key(self) -> str:
        return self.data.id or super().key


class PodiumTaskset(vf.Taskset[PodiumTask, PodiumConfig]):
    """Any Podium task set's train split: a set's name, a task file, a table, a recording."""

    def load(self) -> Iterator[PodiumTask]:
        for name in self._names():
            yield PodiumTask(vf.TaskData(id=name, name=name), self.config.task)

    def _names(self) -> list[str]:
        if self.config.url is None:
            return list(
                open_training_tasks(self.config.scoring or ScoringSettings(), self.config.open_pool())
            )
        with closing(LoopThread("podium-tasks")) as loop:  # verifiers may call this inside its own loop.
            return list(loop.call(self._info()).tasks)

    async def _info(self) -> SessionInfo:
        async with ScoringClient(self.config.url, **self.config.client_options) as client:
            return await client.info()
