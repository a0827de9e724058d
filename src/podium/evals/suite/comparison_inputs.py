"""A task set and a pool of a suite, opened: its questions, its workers, and the teams that answer them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from podium.calls import CallState
from podium.conductor.settings import ConductorSettings
from podium.evals.suite.manifest import TableSettings
from podium.evals.suite.suite_settings import PlannerEntry, SuiteSettings, WorkerDegradation
from podium.planners import VOTE
from podium.planners.planner import Planner
from podium.rollout.pool_sampling import PoolSampler
from podium.tasks import Task, open_tasks
from podium.tasks.task import TaskSet
from podium.team.settings import TeamSettings
from podium.team.team import Team
from podium.team.team_file import TeamReference, open_pool
from podium.workers.pool import Pool
from podium.workers.replacements import FailingWorker, SubstituteWorker
from podium.workers.vote import VoteWorker

OpenTasks = dict[tuple[str, str, int, int], TaskSet]
"""Task sets by name, split, size and seed, so that a suite reads a benchmark once and not for each row."""


@dataclass(frozen=True)
class ComparisonInputs:
    """A table with its workers. A vote is always among them, unless each question has a pool that is drawn from
    them."""

    table: TableSettings
    pool: Pool
    team: TeamSettings
    """The settings of the pool's team. Its Conductor plans if an entry names none."""
    drawn: PoolSampler | None = None
    """Draws the pool of each question. If it is None, all workers answer every question."""
    task_sets: OpenTasks = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_pool(cls, table: TableSettings, pool: Pool, team: TeamSettings) -> ComparisonInputs:
        """The table over open workers.

        Raises:
            ConfigError: a named worker is missing.
        """
        if table.pool.draw is not None:
            return cls(table, pool, team, PoolSampler(pool, table.pool.draw))
        if table.pool.degradation is not None:
            _degraded(pool, table.pool.degradation)
        return cls(table, pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), team)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, table: TableSettings, open_inputs: ComparisonInputs | None = None, tasks: OpenTasks | None = None
    ) -> AsyncIterator[ComparisonInputs]:
        """The table, whose workers are closed at the end. Workers of `open_inputs` stay open.

        Args:
            tasks: the task sets that are open, to which those of the table are added.

        Raises:
            ConfigError: the pool cannot be read or built.
        """
        if open_inputs is not None:
            yield replace(open_inputs, table=table)
            return
        team = TeamReference(table.pool.name, table.pool.keys or ()).read()
        opened = cls.from_pool(table, open_pool(team), team)
        if tasks is not None:
            opened = replace(opened, task_sets=tasks)
        try:
            yield opened
        finally:
            await opened.pool.close()

    def pool_of(self, tasks: Sequence[Task]) -> Callable[[Task], Pool]:
        """Gives the pool that answers each of these tasks, which are all questions of a seed in their order."""
        degradation = self.table.pool.degradation
        if self.drawn is not None:
            drawn = self.drawn
            return lambda task: drawn.draw(task.id)
        if degradation is None:
            return lambda task: self.pool
        bad, after = _degraded(self.pool, degradation), {task.id for task in tasks[degradation.at :]}
        return lambda task: bad if task.id in after else self.pool

    def tasks(self, seed: int) -> TaskSet:
        """The questions of a seed.

        Raises:
            ConfigError: there are none.
        """
        table = self.table
        drawn_by = seed if table.tasks.seed is None else table.tasks.seed
        name, split, size = table.tasks.name, table.split, table.questions
        if name.endswith(".parquet"):  # Which questions a recording has depends on the pool.
            return open_tasks(name, split, size=size, seed=drawn_by, pool=self.pool)
        key = name, split, size, drawn_by
        if key not in self.task_sets:
            self.task_sets[key] = open_tasks(name, split, size=size, seed=drawn_by)
        return self.task_sets[key]

    def for_training(self, questions: int) -> ComparisonInputs:
        return replace(self, table=self.table.for_training(questions))

    def settings_for(self, entry: PlannerEntry, settings: SuiteSettings) -> TeamSettings:
        """The settings of the team in which the planner of an entry plans."""
        return self.team.with_planner(
            entry, entry.conductor, max_steps=settings.max_steps, early_stop=settings.early_stop
        )

    def open_team(
        self,
        entry: PlannerEntry,
        settings: SuiteSettings,
        *,
        seed: int,
        learned: Planner | None = None,
        call_state: CallState | None = None,
    ) -> Team:
        """The workers with the planner of an entry. The caller releases the team.

        Args:
            learned: the planner, if it made its choices on training questions.

        Raises:
            UsageError: the planner does not exist, or must not plan for this pool.
        """
        return Team.from_settings(
            self.settings_for(entry, settings),
            self.pool,
            planner=learned,
            call_state=call_state or CallState(),
            seed=str(seed),
            for_evaluation=True,
        )


def _degraded(pool: Pool, degradation: WorkerDegradation) -> Pool:
    """The pool once its worker has turned bad.

    Raises:
        ConfigError: the pool lacks a worker.
    """
    worker = pool.named(degradation.worker)
    bad = (
        SubstituteWorker(worker, pool.named(degradation.gives))
        if degradation.gives
        else FailingWorker(worker)
    )
    return pool.replaced({degradation.worker: bad})


def untrained_of(entry: PlannerEntry) -> PlannerEntry | None:
    """The planner before training. None if it is not known."""
    if entry.planner != "conductor" or entry.untrained is None:
        return None
    return PlannerEntry(conductor=ConductorSettings(checkpoint=entry.untrained))
