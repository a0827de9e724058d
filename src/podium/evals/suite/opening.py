"""Opens what a suite names, and refuses what cannot run before anything runs.

It opens task sets, pools and planners, expands `single:*`, and finds which controls a planner can have. It runs none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from podium.conductor.checkpoint import PlanSettings
from podium.conductor.planner import Conductor
from podium.conductor.settings import ConductorSettings
from podium.errors import UsageError
from podium.evals.compare import replays_conditioned
from podium.evals.fingerprints import fingerprints
from podium.evals.plan_selection import VoterPrices
from podium.evals.suite.cells import TRAINING, Cell, Job, Table, Training, cells_of, tables_of
from podium.evals.suite.settings import EACH_WORKER, PlannerEntry, SuiteSettings, WorkerDegradation
from podium.executor import Dispatcher
from podium.planner import Planner
from podium.planners import VOTE, find_baseline, open_baseline
from podium.planners.plan_controls import PLAN_CONTROLS, PlanControl
from podium.planners.scored import ScoredAnswers
from podium.ratings.answers import measurable, read_answers, scored_answers
from podium.rollout.random_pools import PoolSource
from podium.tasks import Task, open_tasks, warnings_of
from podium.tasks.task import TaskSet
from podium.team import planning
from podium.team.opening import open_pool, read_team
from podium.team.settings import TeamSettings
from podium.workers.failing import FailingWorker, ReplacedWorker
from podium.workers.pool import Pool, has_paid_workers, is_tool
from podium.workers.replay import ReplayWorker
from podium.workers.vote import VoteWorker

_RECORDED: dict[tuple[Table, bool], ScoredAnswers | None] = {}
"""What planners learned from, for tables of training questions that this process has read, and whether votes stop
early; None: workers are not recorded."""


@dataclass(frozen=True)
class OpenTable:
    """A table with its workers. They have a vote in any case, unless the pool of each question is drawn from them."""

    table: Table
    pool: Pool
    team: TeamSettings
    """The settings of the pool's team, whose Conductor plans where an entry names none."""
    drawn: PoolSource | None = None
    """Draws the pool of each question; None: all workers answer every question."""

    @classmethod
    def open(cls, table: Table) -> OpenTable:
        """Open the pool; the caller closes it.

        Raises:
            ConfigError: it cannot be read or built.
        """
        team = read_team(table.pool.name)
        pool = open_pool(team)
        if table.pool.draw is not None:
            return cls(table, pool, team, PoolSource(pool, table.pool.draw))
        if table.pool.decline is not None:
            _declined(pool, table.pool.decline)
        return cls(table, pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), team)

    def pool_of(self, task: Task, place: int) -> Pool:
        """The pool that answers a question.

        Args:
            place: the question's place among those of its seed, from 0.
        """
        if self.drawn is not None:
            return self.drawn.draw(task.id)
        decline = self.table.pool.decline
        return self.pool if decline is None or place < decline.at else _declined(self.pool, decline)

    def tasks(self, seed: int) -> TaskSet:
        """The questions of a seed; `ConfigError` if there are none."""
        table = self.table
        return open_tasks(table.tasks.name, table.split, size=table.questions, seed=seed, pool=self.pool)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the workers that are no tools."""
        return tuple(worker.profile.name for worker in self.pool if not is_tool(worker))

    @property
    def recorded(self) -> bool:
        """Whether any worker gives recorded answers to the bare question, whatever it is shown."""
        return any(isinstance(w, ReplayWorker) and not w.recording.conditioned for w in self.pool)

    def entries(self, settings: SuiteSettings) -> Iterator[PlannerEntry]:
        """The planners, with a row for each worker in the place of `single:*`."""
        for entry in settings.planner:
            if entry.planner != EACH_WORKER:
                yield entry
                continue
            for name in self.models:
                yield entry.model_copy(update={"planner": f"single:{name}", "label": f"{name} alone"})

    def trained(self, entry: PlannerEntry) -> PlanSettings:
        """How the planner of an entry was trained to plan; the defaults for one that was not trained."""
        return planning.plan_settings(self._led(entry)) if entry.conducts else PlanSettings()

    def _led(self, entry: PlannerEntry) -> TeamSettings:
        """The team with the planner of an entry."""
        return self.team.with_planner(entry, entry.conductor)

    @asynccontextmanager
    async def open_planner(
        self,
        entry: PlannerEntry,
        *,
        seed: int,
        training: Training | None = None,
        early_stop: bool = False,
        dispatcher: Dispatcher | None = None,
    ) -> AsyncIterator[Planner]:
        """The planner of an entry.

        Args:
            early_stop: whether votes stop once they are certain, for planners that learn what a vote costs.

        Raises:
            UsageError: it does not exist, or must not plan for this pool.
        """
        if not entry.conducts:
            yield open_baseline(
                entry.planner,
                self.pool.profiles,
                seed=str(seed),
                scored=None if training is None else await self._scored(training, early_stop=early_stop),
            )
            return
        opened = planning.open_planner(self._led(entry), self.pool, seed=str(seed), dispatcher=dispatcher)
        try:
            if entry.best_of == 1:
                yield opened.planner
            elif isinstance(opened.planner, Conductor):
                yield opened.planner.at_temperature(1.0)
            else:
                raise UsageError(
                    f"best_of samples the plans of a Conductor, and {opened.planner.name} plans for "
                    f"{self.table.pool.name}; name a Conductor, or leave best_of out."
                )
        finally:
            await opened.close()

    async def _scored(self, training: Training, *, early_stop: bool) -> ScoredAnswers:
        """What planners learn from; of recorded workers also which of their answers are equal, as votes need it."""
        table = self.table.training.model_copy(update={"questions": len(training.texts)})
        if (table, early_stop) not in _RECORDED:
            workers = [worker for worker in self.pool if worker.profile.name in training.workers]
            tasks = list(OpenTable(table, self.pool, self.team).tasks(0))
            replayed = measurable(workers, tasks)
            _RECORDED[table, early_stop] = None
            if replayed == workers:
                answers = await read_answers(tasks, replayed)
                prices = VoterPrices.of_pool(self.pool, answers.workers, answers.texts)
                _RECORDED[table, early_stop] = scored_answers(
                    answers, early_stop=early_stop, price_of=prices.among
                )
        scored = _RECORDED[table, early_stop]
        if scored is not None:
            return scored
        score, cost = np.array(training.score_QW), np.array(training.cost_QW)
        return ScoredAnswers(training.workers, training.texts, score, cost)

    def cells(
        self, settings: SuiteSettings, entry: PlannerEntry, controls: Sequence[str], seed: int
    ) -> tuple[Cell, ...]:
        """The cells of a planner and of its controls, told apart also by the files that they read."""
        before = untrained_of(entry, self.pool)
        planners = [self._led(each) for each in (entry, before) if each is not None]
        files = fingerprints(self.table.tasks.name, self.table.pool.name, self.pool, planners)
        return cells_of(settings, self.table, entry, controls, seed, files=files)

    def pays(self, entry: PlannerEntry) -> bool:
        """Whether answers or plans of this planner cost money."""
        return has_paid_workers(self.pool) or planning.pays_for_plans(self._led(entry), self.pool)

    def control_problem(self, control: PlanControl, entry: PlannerEntry) -> str | None:
        """Why a planner cannot have a control here, in a sentence; None: it can."""
        named = f"The control {control.name} of {entry.row}"
        if self.drawn is not None and control.needs & {"best worker", "plans"}:
            return (
                f"{named} needs the same workers for every question, and here they are drawn; leave it out."
            )
        if self.recorded and not control.on_recordings:
            return (
                f"{named} cannot run over {self.table.pool.name}: it shows workers others' responses, or gives them "
                "other subtasks, and a recording has only answers to the bare question; leave it out."
            )
        if "ability" in control.needs and not self._described:
            return (
                f"{named} needs workers of which something is said, and {self.table.pool.name} has neither "
                "descriptions nor ratings; leave it out."
            )
        if "untrained" in control.needs and untrained_of(entry, self.pool) is None:
            return f"{named} needs a checkpoint from before training; name it with untrained = ..., or leave it out."
        return None

    @property
    def _described(self) -> bool:
        said = (profile.description or profile.skills for profile in self.pool.profiles)
        return self.pool.ratings is not None or any(said)

    def controls(self, entry: PlannerEntry) -> list[str]:
        """The controls of a planner by name; with "all", those that can run here."""
        if entry.controls != "all":
            return list(entry.controls)
        return [c.name for c in PLAN_CONTROLS.values() if self.control_problem(c, entry) is None]


def _declined(pool: Pool, decline: WorkerDegradation) -> Pool:
    """The pool once its worker has turned bad; `ConfigError` if the pool lacks a worker."""
    worker = pool.named(decline.worker)
    bad = ReplacedWorker(worker, pool.named(decline.gives)) if decline.gives else FailingWorker(worker)
    return pool.replaced({decline.worker: bad})


def untrained_of(entry: PlannerEntry, pool: Pool) -> PlannerEntry | None:
    """The planner before training; None: it is not known."""
    if entry.planner != "conductor":
        return None
    source = entry.untrained
    return None if source is None else PlannerEntry(conductor=ConductorSettings(checkpoint=source))


@dataclass(frozen=True, slots=True)
class Checked:
    """A suite that can run."""

    settings: SuiteSettings
    jobs: tuple[Job, ...]
    """Without what is kept and learned."""
    training: dict[str, tuple[Job, ...]]
    """By table, the jobs in which each worker alone answers the training questions; empty if nobody learns."""
    answers: dict[str, int]
    """How many answers each cell has when it is complete."""
    notes: dict[str, tuple[str, ...]]
    """Which questions the set of each table leaves out."""
    pays: bool
    """Whether anything costs money."""
    conditioned: dict[str, bool]
    """Whether the workers of each table replay answers that were given to other answers."""


async def check_suite(settings: SuiteSettings) -> Checked:
    """Open everything once.

    Raises:
        UsageError: something cannot run; there is a line of one sentence for each.
    """
    problems: list[str] = []
    jobs: list[Job] = []
    training: dict[str, tuple[Job, ...]] = {}
    answers: dict[str, int] = {}
    notes: dict[str, tuple[str, ...]] = {}
    pays = False
    conditioned: dict[str, bool] = {}
    tables = {table.label: table for table in tables_of(settings)}
    if len(tables) < len(list(tables_of(settings))):
        raise UsageError("Two tables of the suite have one name; give their files different names.")
    for table in tables.values():
        try:
            opened = OpenTable.open(table)
        except UsageError as error:
            problems.append(str(error))
            continue
        try:
            sizes = []
            for seed in range(settings.seeds):
                tasks = opened.tasks(seed)
                sizes.append(len(tasks) * settings.repeats)
            notes[table.label] = tuple(warnings_of(tasks))
            conditioned[table.label] = replays_conditioned(opened.pool)
            chooses = False
            for entry in opened.entries(settings):
                of_seeds = [entry.of_seed(seed) for seed in range(settings.seeds)]
                found = [
                    problem
                    for i, one in enumerate(of_seeds)
                    if one not in of_seeds[:i]
                    for problem in await _problems(opened, one)
                ]
                problems += found
                if found:
                    continue
                pays |= opened.pays(entry)
                controls = opened.controls(entry)
                chooses |= _chooses(entry, controls)
                for seed, each in enumerate(of_seeds):
                    cells = opened.cells(settings, each, controls, seed)
                    jobs.append(Job(settings=settings, cells=cells))
                    answers |= {cell.key: sizes[seed] for cell in cells}
            if chooses:
                learned = table.training.model_copy(update={"questions": settings.training})
                if table.split == TRAINING:
                    problems.append(
                        f"Planners or controls of {table.label} make their choices on training questions; evaluate on "
                        "another split."
                    )
                choosing = OpenTable(learned, opened.pool, opened.team)
                size = len(choosing.tasks(0))
                training[table.label] = tuple(_training_jobs(settings, choosing))
                answers |= {cell.key: size for job in training[table.label] for cell in job.cells}
        except UsageError as error:
            problems.append(str(error))
        finally:
            await opened.pool.close()
    problems += _problems_of_ray(settings, pays=pays)
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return Checked(settings, tuple(jobs), training, answers, notes, pays, conditioned)


def _problems_of_ray(settings: SuiteSettings, *, pays: bool) -> list[str]:
    told = "Paid workers and planners run in one process, whose budgets hold for all; leave out ray."
    return [told] if pays and settings.ray is not None else []


async def _problems(opened: OpenTable, entry: PlannerEntry) -> list[str]:
    """Why a planner, or one of its controls, cannot run on a table; a sentence for each."""
    try:
        found = _cannot(opened, entry)
        if found is None and not _learns(entry):
            async with opened.open_planner(entry, seed=0):
                pass
    except UsageError as error:
        found = f"{entry.row} on {opened.table.label}: {error}"
    asked = () if entry.controls == "all" else entry.controls
    refused = (opened.control_problem(PLAN_CONTROLS[name], entry) for name in asked)
    return [problem for problem in (found, *refused) if problem is not None]


def _cannot(opened: OpenTable, entry: PlannerEntry) -> str | None:
    known = find_baseline(entry.planner)
    if entry.conducts or known is None:
        return None
    baseline, argument = known
    if opened.drawn is not None and (baseline.learns or any(baseline.needs(argument))):
        return (
            f"{entry.row} needs the same workers for every question, and on {opened.table.label} they are drawn; "
            "leave it out."
        )
    lacking = [name for name in baseline.needs(argument) if name and name not in opened.pool.names]
    if lacking:
        return f"{entry.row} needs the worker {lacking[0]!r}, which {opened.table.pool.name} does not have."
    if opened.recorded and not baseline.on_recordings:
        return (
            f"{entry.row} cannot run over {opened.table.pool.name}: its steps rewrite the question or read other "
            "responses, and a recording has only answers to the bare question; leave it out, or use live workers."
        )
    baseline.check(argument)
    return None


def _learns(entry: PlannerEntry) -> bool:
    known = find_baseline(entry.planner)
    return known is not None and known[0].learns


def _chooses(entry: PlannerEntry, controls: Sequence[str]) -> bool:
    """Whether a planner or one of its controls chooses something on training questions."""
    needed = {need for name in controls for need in PLAN_CONTROLS[name].needs}
    return _learns(entry) or bool(needed & {"best worker", "plans"})


def _training_jobs(settings: SuiteSettings, opened: OpenTable) -> Iterator[Job]:
    settings = settings.model_copy(update={"repeats": 1})
    for name in opened.models:
        entry = PlannerEntry(planner=f"single:{name}")
        yield Job(settings=settings, cells=opened.cells(settings, entry, (), 0))
