"""Opens what a suite names, and refuses what cannot run before anything runs.

It opens task sets, pools and planners, expands `single:*`, and finds which controls a planner can have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from podium.conductor.conductor import Conductor
from podium.errors import UsageError
from podium.evals.fingerprints import fingerprints
from podium.evals.look_log import TRAIN, looks_file
from podium.evals.plan_selection import PLANNER_SELECTIONS
from podium.evals.suite.comparison_inputs import ComparisonInputs, OpenTasks, untrained_of
from podium.evals.suite.manifest import (
    SeedAnswersFile,
    SuiteManifest,
    SuiteRow,
    SuiteTable,
    TableSettings,
    tables_of,
)
from podium.evals.suite.plan_controls import PLAN_CONTROLS
from podium.evals.suite.suite_settings import EACH_WORKER, PlannerEntry, PoolEntry, SuiteSettings
from podium.planners import find_baseline
from podium.tasks import TaskSet, warnings_of
from podium.workers.base import has_paid_workers
from podium.workers.replay import (
    ReplayWorker,
    replays_bare_questions,
    replays_conditioned,
    unknown_length_warning,
)

_STOPPED = (
    "In every row votes stopped early: once a vote was certain and no round could follow, no further worker "
    "was called."
)


async def check_suite(
    settings: SuiteSettings, run: Path, open_inputs: ComparisonInputs | None = None
) -> SuiteManifest:
    """Open everything once. Returns what will run.

    Args:
        open_inputs: the only table of the suite, if the caller has opened its workers.

    Raises:
        UsageError: something cannot run. The message has a line for each problem.
    """
    tables = list(tables_of(settings))
    if len({table.label for table in tables}) < len(tables):
        raise UsageError("Two tables of the suite have one name; give their files different names.")
    checked: list[SuiteTable] = []
    problems: list[str] = []
    tasks: OpenTasks = {}
    for table in tables:
        try:
            async with AsyncExitStack() as opened:
                inputs_by_pool: dict[PoolEntry | None, ComparisonInputs] = {}
                inputs_by_pool[None] = await opened.enter_async_context(
                    ComparisonInputs.open(table, open_inputs, tasks)
                )
                entries = [entry for entry in settings.planner if entry.is_evaluated_on(table.tasks)]
                for entry in entries:
                    if entry.pool not in inputs_by_pool:
                        pool_inputs = ComparisonInputs.open(table.with_pool_of(entry), tasks=tasks)
                        inputs_by_pool[entry.pool] = await opened.enter_async_context(pool_inputs)
                checked.append(await _checked(inputs_by_pool, entries, settings, run))
        except UsageError as error:
            problems += str(error).split("\n")
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return SuiteManifest(settings=settings, tables=tuple(checked))


async def _checked(
    inputs_by_pool: Mapping[PoolEntry | None, ComparisonInputs],
    entries: Sequence[PlannerEntry],
    settings: SuiteSettings,
    run: Path,
) -> SuiteTable:
    """The table of one task set and pool.

    Args:
        inputs_by_pool: the inputs by the pool that a row names. The key None has the table's own pool.
    """
    table = inputs_by_pool[None].table
    tasks_by_seed = {seed: inputs_by_pool[None].tasks(seed) for seed in settings.all_seeds}
    check = _TableCheck(
        settings, {seed: len(tasks) * settings.repeats for seed, tasks in tasks_by_seed.items()}
    )
    check.problems += _question_problems(inputs_by_pool, tasks_by_seed)
    for entry in entries:
        for planner in _expanded(inputs_by_pool[entry.pool], entry):
            await check.add(inputs_by_pool[entry.pool], planner)
    check.problems += check.table_problems(table)
    if check.problems:
        raise UsageError("\n".join(check.problems))
    pools = [inputs.pool for inputs in inputs_by_pool.values()]
    replayed = [worker for pool in pools for worker in pool if isinstance(worker, ReplayWorker)]
    tasks = tasks_by_seed[settings.all_seeds[-1]]
    unknown = unknown_length_warning(replayed, [task.question.text for task in tasks])
    notes = (*warnings_of(tasks), unknown, _STOPPED if settings.early_stop else None)
    log = None if table.split == TRAIN else looks_file(table.tasks.name, run)
    return SuiteTable(
        settings=table,
        looks_file=None if log is None else str(log.absolute()),
        notes=tuple(filter(None, notes)),
        conditioned=any(map(replays_conditioned, pools)),
        pays=check.pays,
        paid_workers=any(map(has_paid_workers, pools)),
        rows=tuple(check.rows),
        training=tuple(row for pool_rows in check.training.values() for row in pool_rows),
    )


def _question_problems(
    inputs_by_pool: Mapping[PoolEntry | None, ComparisonInputs], tasks_by_seed: Mapping[int, TaskSet]
) -> Iterator[str]:
    """A sentence for each pool of a row that lacks questions of the table."""
    for seed, tasks in tasks_by_seed.items():
        asked = {task.id for task in tasks}
        for pool, inputs in inputs_by_pool.items():
            if pool is not None and {task.id for task in inputs.tasks(seed)} != asked:
                yield (
                    f"The pool {pool.title} of a row does not have all questions of {inputs.table.label}, which were "
                    "recorded for other workers; give the table a pool of all these workers, or leave the row out."
                )


@dataclass
class _TableCheck:
    """The rows of one table, as far as its planners were checked, and the reasons to refuse the table."""

    settings: SuiteSettings
    answers: Mapping[int, int]
    """For each seed, how many answers a complete file has."""
    rows: list[SuiteRow] = field(default_factory=list)
    training: dict[PoolEntry | None, list[SuiteRow]] = field(default_factory=dict)
    """The rows of each worker alone on the training questions, by the pool over which a planner makes its choices."""
    problems: list[str] = field(default_factory=list)
    pays: bool = False
    _refused_checkpoints: set[str] = field(default_factory=set)

    async def add(self, inputs: ComparisonInputs, planner: PlannerEntry) -> None:
        """Check a planner, and add its row and those of its controls."""
        if planner.checkpoint in self._refused_checkpoints:
            return  # The same policy at another level is refused once.
        seeded = [planner.with_seed(seed) for seed in list(self.answers)[: planner.seeds]]
        different = [each for index, each in enumerate(seeded) if each not in seeded[:index]]
        own_problems = [problem for each in different for problem in await self._entry_problems(inputs, each)]
        if own_problems:
            self.problems += own_problems
            if planner.checkpoint is not None:
                self._refused_checkpoints.add(planner.checkpoint)
            return
        controls = _controls(inputs, planner)
        self.pays |= has_paid_workers(inputs.pool)
        if _chooses(planner, controls) and planner.pool not in self.training:
            training_inputs = inputs.for_training(self.settings.training)
            self.training[planner.pool] = list(_training(training_inputs, self.settings, planner.pool))
        self.rows += _rows(inputs, self.settings, planner, controls, self.answers)

    async def _entry_problems(self, inputs: ComparisonInputs, entry: PlannerEntry) -> list[str]:
        try:
            reason = _planner_problem(inputs, entry)
            if reason is None and not _learns(entry):
                team = inputs.open_team(entry, self.settings, seed=0)
                await team.release()
                self.pays |= team.opened_planner.pays
                if entry.best_of > 1 and not isinstance(team.planner, Conductor):
                    raise UsageError(
                        f"best_of samples the plans of a Conductor, and {team.planner.name} plans for "
                        f"{inputs.table.pool.name}; name a Conductor, or leave best_of out."
                    )
        except UsageError as error:
            reason = f"{entry.row} on {inputs.table.label}: {error}"
        asked = () if entry.controls == "all" else entry.controls
        refused = (_control_problem(inputs, name, entry) for name in asked)
        return [problem for problem in (reason, *refused) if problem is not None]

    def table_problems(self, table: TableSettings) -> Iterator[str]:
        """The reasons to refuse the table as a whole, once all planners were added."""
        if self.training and table.split == TRAIN:
            yield (
                f"Planners or controls of {table.label} make their choices on training questions; "
                "evaluate on another split."
            )
        for label, count in Counter(row.label for row in self.rows).items():
            if count > 1:
                yield f"{table.label} has {count} rows {label!r}; give one of the pools other names of workers."
        if not self.rows and not self.problems:
            yield f"No [[planner]] is evaluated on {table.label}; leave the task set out."


def _expanded(inputs: ComparisonInputs, entry: PlannerEntry) -> list[PlannerEntry]:
    if entry.planner != EACH_WORKER:
        return [entry]
    alone = ({"planner": f"single:{name}", "label": f"{name} alone"} for name in inputs.pool.answering)
    return [entry.model_copy(update=each) for each in alone]


def _rows(
    inputs: ComparisonInputs,
    settings: SuiteSettings,
    entry: PlannerEntry,
    controls: Sequence[str],
    answers: Mapping[int, int],
) -> Iterator[SuiteRow]:
    """The rows of a planner and of its controls. The names of their files depend on the files that they read.

    Args:
        answers: for each seed, how many answers a complete file has.
    """
    files: dict[str | None, list[SeedAnswersFile]] = {control: [] for control in (None, *controls)}
    for seed, count in list(answers.items())[: entry.seeds]:
        planner = entry.with_seed(seed)
        teams = [
            inputs.settings_for(each, settings)
            for each in (planner, untrained_of(planner))
            if each is not None
        ]
        read = fingerprints(inputs.table.tasks.name, inputs.table.pool.name, inputs.pool, teams)
        for control, by_seed in files.items():
            key = inputs.table.key(settings, planner, control, seed, read)
            by_seed.append(SeedAnswersFile(key=key, seed=seed, answers=count * entry.best_of))
    for control, by_seed in files.items():
        yield SuiteRow(entry=entry, control=control, files=tuple(by_seed))


def _control_problem(inputs: ComparisonInputs, name: str, entry: PlannerEntry) -> str | None:
    control, named = PLAN_CONTROLS[name], f"The control {name} of {entry.row}"
    if inputs.drawn is not None and control.needs & {"best worker", "plans"}:
        return f"{named} needs the same workers for every question, and here they are drawn; leave it out."
    if replays_bare_questions(inputs.pool) and not control.on_recordings:
        return (
            f"{named} cannot run over {inputs.table.pool.name}: it shows workers others' responses, or gives them "
            "other subtasks, and a recording has only answers to the bare question; leave it out."
        )
    described = inputs.pool.ratings is not None or any(
        worker.profile.description or worker.profile.skills for worker in inputs.pool if not worker.is_tool
    )
    if "ability" in control.needs and not described:
        return (
            f"{named} needs workers of which something is said, and {inputs.table.pool.name} has neither "
            "descriptions nor ratings; leave it out."
        )
    if "untrained" in control.needs and untrained_of(entry) is None:
        return (
            f"{named} needs a checkpoint from before training; name it with untrained = ..., or leave it out."
        )
    return None


def _controls(inputs: ComparisonInputs, entry: PlannerEntry) -> list[str]:
    if entry.controls != "all":
        return list(entry.controls)
    return [name for name in PLAN_CONTROLS if _control_problem(inputs, name, entry) is None]


def _training(
    inputs: ComparisonInputs, settings: SuiteSettings, pool: PoolEntry | None
) -> Iterator[SuiteRow]:
    once, answers = settings.model_copy(update={"repeats": 1}), {0: len(inputs.tasks(0))}
    for name in inputs.pool.answering:
        yield from _rows(inputs, once, PlannerEntry(planner=f"single:{name}", pool=pool), (), answers)


def _planner_problem(inputs: ComparisonInputs, entry: PlannerEntry) -> str | None:
    known = find_baseline(entry.planner)
    bound = known is not None and (known[0].learns or any(known[0].needs(known[1])))
    if inputs.drawn is not None and (bound or entry.planner in PLANNER_SELECTIONS):
        return (
            f"{entry.row} needs the same workers for every question, and on {inputs.table.label} they are drawn; "
            "leave it out."
        )
    if entry.uses_conductor or known is None:
        return None
    baseline, argument = known
    lacking = [name for name in baseline.needs(argument) if name and name not in inputs.pool.names]
    if lacking:
        return f"{entry.row} needs the worker {lacking[0]!r}, which {inputs.table.pool.name} does not have."
    if replays_bare_questions(inputs.pool) and not baseline.on_recordings:
        return (
            f"{entry.row} cannot run over {inputs.table.pool.name}: its steps rewrite the question or read other "
            "responses, and a recording has only answers to the bare question; leave it out, or use live workers."
        )
    baseline.check(argument)
    return None


def _learns(entry: PlannerEntry) -> bool:
    known = find_baseline(entry.planner)
    return entry.planner in PLANNER_SELECTIONS or (known is not None and known[0].learns)


def _chooses(entry: PlannerEntry, controls: Sequence[str]) -> bool:
    """Whether a planner or one of its controls chooses something on training questions."""
    needed = {need for name in controls for need in PLAN_CONTROLS[name].needs}
    return _learns(entry) or bool(needed & {"best worker", "plans"})
