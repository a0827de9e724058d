"""Opens what a suite names, and refuses what cannot run before anything runs.

It opens task sets, pools and planners, expands `single:*`, and finds which controls a planner can have. It runs none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from podium.errors import UsageError
from podium.evals.suite.cells import TRAINING, Job, Table, tables_of
from podium.evals.suite.open_table import CHOSEN, OpenTable
from podium.evals.suite.settings import PlannerEntry, SuiteSettings
from podium.planners import find_baseline
from podium.planners.plan_controls import PLAN_CONTROLS
from podium.tasks import warnings_of
from podium.workers.pool import has_paid_workers
from podium.workers.replay import ReplayWorker, replays_conditioned, unknown_length_warning


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
    paid_workers: bool
    """Whether workers do: answers then repeat from a response cache."""
    conditioned: dict[str, bool]
    """Whether the workers of each table replay answers that were given to other answers."""


_STOPPED = (
    "In every row votes stopped early: once a vote was certain and no round could follow, no further worker "
    "was called."
)


@asynccontextmanager
async def open_table(table: Table, given: OpenTable | None = None) -> AsyncIterator[OpenTable]:
    """A table, closed at the end; or with the workers of `given`, which stay open.

    Raises:
        ConfigError: as `OpenTable.open`.
    """
    if given is not None:
        yield replace(given, table=table)
        return
    opened = OpenTable.open(table)
    try:
        yield opened
    finally:
        await opened.pool.close()


async def check_suite(settings: SuiteSettings, given: OpenTable | None = None) -> Checked:
    """Open everything once.

    Args:
        given: the only table of the suite, if the caller has opened its workers.

    Raises:
        UsageError: something cannot run; there is a line of one sentence for each.
    """
    problems: list[str] = []
    jobs: list[Job] = []
    training: dict[str, tuple[Job, ...]] = {}
    answers: dict[str, int] = {}
    notes: dict[str, tuple[str, ...]] = {}
    pays = paid_workers = False
    conditioned: dict[str, bool] = {}
    tables = {table.label: table for table in tables_of(settings)}
    if len(tables) < len(list(tables_of(settings))):
        raise UsageError("Two tables of the suite have one name; give their files different names.")
    for table in tables.values():
        try:
            async with open_table(table, given) as opened:
                sizes = []
                for seed in settings.all_seeds:
                    tasks = opened.tasks(seed)
                    sizes.append(len(tasks) * settings.repeats)
                replayed = [worker for worker in opened.pool if isinstance(worker, ReplayWorker)]
                unknown = unknown_length_warning(replayed, [task.question.text for task in tasks])
                notes[table.label] = tuple(
                    filter(None, (*warnings_of(tasks), unknown, _STOPPED if settings.early_stop else None))
                )
                conditioned[table.label] = replays_conditioned(opened.pool)
                paid_workers |= has_paid_workers(opened.pool)
                chooses = False
                misfits: set[str | None] = set()
                for entry in opened.entries(settings):
                    if (
                        entry.checkpoint is not None and entry.checkpoint in misfits
                    ):  # The same policy at another level is refused once.
                        continue
                    of_seeds = [entry.of_seed(seed) for seed in settings.all_seeds]
                    found = [
                        problem
                        for i, one in enumerate(of_seeds)
                        if one not in of_seeds[:i]
                        for problem in await _problems(opened, one, settings)
                    ]
                    problems += found
                    if found:
                        misfits.add(entry.checkpoint)
                        continue
                    pays |= opened.pays(entry)
                    controls = opened.controls(entry)
                    chooses |= _chooses(entry, controls)
                    for seed, each, size in zip(settings.all_seeds, of_seeds, sizes, strict=True):
                        cells = opened.cells(settings, each, controls, seed)
                        jobs.append(Job(settings=settings, cells=cells))
                        answers |= {cell.key: size for cell in cells}
                if chooses:
                    learned = table.training.model_copy(update={"questions": settings.training})
                    if table.split == TRAINING:
                        problems.append(
                            f"Planners or controls of {table.label} make their choices on training questions; "
                            "evaluate on another split."
                        )
                    choosing = OpenTable(learned, opened.pool, opened.team)
                    size = len(choosing.tasks(0))
                    training[table.label] = tuple(_training_jobs(settings, choosing))
                    answers |= {cell.key: size for job in training[table.label] for cell in job.cells}
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return Checked(settings, tuple(jobs), training, answers, notes, pays, paid_workers, conditioned)


async def _problems(opened: OpenTable, entry: PlannerEntry, settings: SuiteSettings) -> list[str]:
    """Why a planner, or one of its controls, cannot run on a table; a sentence for each."""
    try:
        found = _cannot(opened, entry)
        if found is None and not _learns(entry):
            async with opened.open_team(entry, settings, seed=0):
                pass
    except UsageError as error:
        found = f"{entry.row} on {opened.table.label}: {error}"
    asked = () if entry.controls == "all" else entry.controls
    refused = (opened.control_problem(PLAN_CONTROLS[name], entry) for name in asked)
    return [problem for problem in (found, *refused) if problem is not None]


def _cannot(opened: OpenTable, entry: PlannerEntry) -> str | None:
    known = find_baseline(entry.planner)
    bound = known is not None and (known[0].learns or any(known[0].needs(known[1])))
    if opened.drawn is not None and (bound or entry.planner in CHOSEN):
        return (
            f"{entry.row} needs the same workers for every question, and on {opened.table.label} they are drawn; "
            "leave it out."
        )
    if entry.conducts or known is None:
        return None
    baseline, argument = known
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
    return entry.planner in CHOSEN or (known is not None and known[0].learns)


def _chooses(entry: PlannerEntry, controls: Sequence[str]) -> bool:
    """Whether a planner or one of its controls chooses something on training questions."""
    needed = {need for name in controls for need in PLAN_CONTROLS[name].needs}
    return _learns(entry) or bool(needed & {"best worker", "plans"})


def _training_jobs(settings: SuiteSettings, opened: OpenTable) -> Iterator[Job]:
    settings = settings.model_copy(update={"repeats": 1})
    for name in opened.models:
        entry = PlannerEntry(planner=f"single:{name}")
        yield Job(settings=settings, cells=opened.cells(settings, entry, (), 0))
