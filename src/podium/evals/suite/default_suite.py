"""The suite that `podium eval` writes and runs if no file names one.

It compares the team's planner with each worker alone, with what the same dollars buy (self-consistency, the best vote),
and with the rows that registered planners add to every comparison. Over recorded workers, it also compares it with the
best votes and the best cascade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podium.conductor.checkpoint import Checkpoint
from podium.errors import UsageError
from podium.evals.plan_selection import PLANNER_SELECTIONS
from podium.evals.suite.manifest import TRAINING
from podium.evals.suite.plan_controls import CHOSEN_CONTROLS
from podium.evals.suite.suite_settings import EACH_WORKER, PlannerEntry, PoolEntry, SuiteSettings, TasksEntry
from podium.planners import known_baselines
from podium.tasks.open import splits_of
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker

_TRAINING, _RECORDED_TRAINING = 100, 400
"""How many training questions choices are made on by default: with live workers, and with recorded workers, whose
answers cost nothing."""
_OF_WORKERS = ("worker", "ratings")


def default_suite(
    team: TeamSettings,
    pool: Pool,
    keys: Sequence[str] = (),
    *,
    untrained: str | None = None,
    seed: int = 0,
) -> SuiteSettings:
    """The settings of the suite.

    Args:
        keys: the overrides with which the team was read. The suite keeps overrides of workers.
        untrained: the team's checkpoint before training.

    Raises:
        UsageError: settings that exclude each other, or a checkpoint that cannot be read.
    """
    table, recorded = team.eval, any(isinstance(worker, ReplayWorker) for worker in pool)
    if table.tasks is None:
        raise UsageError("No questions are named; give a task set, a table or a recording with --tasks.")
    training = _training(team, recorded=recorded)
    # Over recorded workers, there is a Conductor only if somebody named it.
    named = team.conductor.names_conductor or team.plan.conducting_worker is not None
    leads = not recorded or not team.plan.uses_conductor or named
    if not leads and team.plan.cost_sensitivity is not None:
        raise UsageError(
            "plan.cost_sensitivity is for a Conductor; on a recording name one with --conductor."
        )
    first = _leading(team, training, untrained, all_levels=recorded) if leads else ()
    choices = PLANNER_SELECTIONS if recorded and training else {}
    chosen = (
        PlannerEntry(planner=planner, label=choice.label)
        for planner, choice in choices.items()
        if planner != "best-cascade" or len(pool.answering) > 2
    )
    return SuiteSettings(
        seed=seed,
        split=table.split,
        questions=table.questions,
        training=training or 1,
        repeats=table.repeats,
        max_steps=team.plan.max_steps,
        early_stop=team.plan.early_stop,
        budget=team.budget.question_budget(1),
        concurrency=table.concurrency,
        planner=(
            *first,
            *chosen,
            PlannerEntry(planner=EACH_WORKER),
            *_registered(pool.answering, recorded=recorded),
        ),
        tasks=(TasksEntry(name=table.tasks),),
        pool=(PoolEntry(name=team.workers_file, keys=_keys_of_workers(keys)),),
    )


def _training(team: TeamSettings, *, recorded: bool) -> int:
    table = team.eval
    assert table.tasks is not None
    there = TRAINING in splits_of(table.tasks)
    if table.tuning is None:
        return (_RECORDED_TRAINING if recorded else _TRAINING) * (there and table.split != TRAINING)
    if table.tuning and table.split == TRAINING:
        raise UsageError(
            "Planners make their choices on train questions; evaluate on another --split, or set eval.tuning=0."
        )
    if table.tuning and not there:
        raise UsageError(f"{table.tasks} has no train questions to make choices on; set eval.tuning=0.")
    return table.tuning


def _leading(
    team: TeamSettings, training: int, untrained: str | None, *, all_levels: bool
) -> Iterator[PlannerEntry]:
    """The team's planner. With `all_levels`, at each level of cost sensitivity that it knows, if no level is named. The
    first has controls, unless it learns from outcomes."""
    plan, source = team.plan, team.conductor.checkpoint
    levels: Iterable[float | None] = [plan.cost_sensitivity]
    if all_levels and plan.cost_sensitivity is None and source is not None:
        levels = range(Checkpoint.read(source).prompt.levels) or levels
    controls = ("untrained",) * (untrained is not None) + CHOSEN_CONTROLS * bool(training)
    for index, level in enumerate(levels):
        label = "Conductor" if level is None else f"Conductor, cost sensitivity {level:g}"
        yield PlannerEntry(
            planner=plan.planner,
            cost_sensitivity=level,
            quarantine_failing=plan.quarantine_failing,
            conductor=team.conductor if team.conductor.model_fields_set and plan.uses_conductor else None,
            rounds=team.budget.given_rounds,
            label=label if plan.planner == "conductor" else plan.planner,
            controls=() if index or plan.quarantine_failing else controls,
            untrained=None if index else untrained,
        )


def _registered(models: Sequence[str], *, recorded: bool) -> Iterator[PlannerEntry]:
    for baseline in known_baselines().values():
        if baseline.on_recordings or not recorded:
            for label, name in baseline.rows(models):
                yield PlannerEntry(planner=name, label=label)


def _keys_of_workers(keys: Sequence[str]) -> tuple[str, ...] | None:
    worker_keys = tuple(key for key in keys if key.partition("=")[0].partition(".")[0].strip() in _OF_WORKERS)
    return worker_keys or None
