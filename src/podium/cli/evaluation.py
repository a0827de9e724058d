"""`podium eval` compares the Conductor with every baseline on the same held-out questions.

`podium.cli.suite` runs the suites of `podium eval FILE.toml`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium.cli.eval_setup import (
    conductor_label,
    conductors_to_compare,
    is_named,
    refuse_without_conductor,
    second_conductor,
    team_to_compare,
)
from podium.cli.looking import EvaluationDeclaration
from podium.cli.options import Flag
from podium.cli.questions import open_questions
from podium.cli.suite import suite_from_options
from podium.cli.team_options import EvalOptions, Keys
from podium.cli.terminal import open_console
from podium.conductor.checkpoint import PlanSettings
from podium.conductor.process_policy import PolicyProcesses, processes_for
from podium.errors import UsageError
from podium.evals import Comparison, ComparisonSettings, ConstantPlanFront, compare, compare_recorded
from podium.evals.compare import SECOND_CONDUCTOR, CompareProgress
from podium.evals.report import COMPARISON, write_report
from podium.evals.table import markdown as to_markdown
from podium.evals.table import terminal
from podium.executor import ExecutionSettings
from podium.tasks import ALL, warnings_of
from podium.team.dispatching import open_dispatcher
from podium.team.opening import open_pool
from podium.team.planning import OpenedPlanner, open_planner, pays_for_plans
from podium.team.settings import TeamSettings
from podium.types import Budget

Opening = Callable[[TeamSettings], AbstractAsyncContextManager[OpenedPlanner]]
"""Opens the planner of a team, with what all methods share."""
Versus = Annotated[
    str | None,
    Parameter(
        help="The checkpoint of a second Conductor, to compare with in the same table.",
    ),
]
_STOPPED = (
    "In every row votes stopped early: once a vote was certain and no round could follow, no further worker "
    "was called."
)
_SAMPLES_NOTE = "Self-consistency has as many answers as the Conductor's cost buys without early stopping."


def compare_planners(
    *keys: Keys,
    team: EvalOptions = EvalOptions(),
    run: Path | None = None,
    declare: str | None = None,
    versus: Versus = None,
    untrained: str | None = None,
    constant_plans: Path | None = None,
    seed: int = 0,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Compare the Conductor with every baseline, or run a suite: planners, task sets, pools and seeds from a file.

    With --run, the same command resumes what was stopped. A suite, FILE.toml, is the first argument; the others are
    then key=value for its own settings.

    Args:
        run: A run's folder. Its policy is compared, over the pool and on the tasks of its training unless the command
            names others; the comparison and the report are written into the folder. Default: the team's Conductor is
            compared, and nothing is written.
        declare: What a run on the test or validation split is for. It is written into the ledger of looks before the
            run begins; a suite on test needs it.
        untrained: The checkpoint before training, to compare with. Default: none.
        constant_plans: A file of constant plans that an earlier search found, instead of a new search.
        seed: Seeds the choice of questions and all other randomness.
        json: Print the comparison as one line of JSON; of a suite, a line for each table.
        markdown: Print the table as Markdown.
    """
    if json and markdown:
        raise UsageError("--json and --markdown exclude each other; give one of them.")
    if keys and "=" not in keys[0]:
        others = {
            "versus": versus,
            "untrained": untrained,
            "constant-plans": constant_plans,
            "seed": seed or None,
        }
        return suite_from_options(keys, team, others, run=run, declare=declare, json=json, markdown=markdown)
    chosen = team_to_compare(team, keys, run)
    if chosen.plan.planner != "conductor":
        raise UsageError("This command compares all baselines with the Conductor; leave --planner out.")
    table = chosen.eval
    if table.tasks is None:
        raise UsageError("No questions are named; give a task set, a table or a recording with --tasks.")
    tasks, split, questions, repeats = table.tasks, table.split, table.questions, table.repeats
    recorded = tasks.endswith(".parquet")
    choosing = "train" if recorded else "validation"
    tuning = table.tuning
    if tuning is None:
        tuning = ALL if recorded else 0
    if recorded and constant_plans:
        raise UsageError("--constant-plans are for live workers; on a recording fixed plans are chosen anew.")
    if recorded and untrained not in {None, "none"}:
        raise UsageError("--untrained is not shown on a recording; give the checkpoint with --versus.")
    if (tuning or constant_plans is not None) and split == choosing:
        raise UsageError(
            f"Baselines make their choices on {choosing} questions; evaluate on another --split."
        )
    if recorded and not is_named(chosen):
        refuse_without_conductor(chosen, versus)
    workers = open_pool(chosen)
    measured = {
        **{"tasks": tasks, "split": split, "questions": questions, "tuning": tuning, "repeats": repeats},
        **{"pool": chosen.workers_file, "seed": seed, "versus": versus, "untrained": untrained},
        "constant_plans": constant_plans,
    }
    looking = EvaluationDeclaration.of(measured, chosen, workers, run, declare)
    constant_front = ConstantPlanFront.load(constant_plans) if constant_plans else None
    early_stop = chosen.plan.early_stop
    with _progress() as report:
        held_out = open_questions(tasks, split, size=questions, seed=seed, pool=workers)
        settings = ComparisonSettings(
            workers,
            list(held_out),
            tasks_name=held_out.name,
            tuning=list(open_questions(tasks, choosing, size=tuning, seed=seed, pool=workers))
            if tuning
            else (),
            repeats=repeats,
            concurrency=table.concurrency,
            seed=str(seed),
            on_progress=report,
            execution=ExecutionSettings(early_stop=early_stop),
            notes=(
                *warnings_of(held_out),
                *([_STOPPED] if early_stop else []),
                *([_SAMPLES_NOTE] if early_stop and not recorded else []),
            ),
        )
        before = untrained or "none"

        async def measure(processes: PolicyProcesses) -> Comparison:
            with open_dispatcher(
                workers,
                cache=chosen.cache,
                replay=chosen.replay,
                day_usd=chosen.budget.day_usd,
                run_usd=chosen.budget.run_usd,
                pays=pays_for_plans(chosen, workers),
                run=run,
            ) as dispatcher:
                shared = dataclasses.replace(settings, dispatcher=dispatcher)
                opening = partial(
                    _opened, pool=workers, seed=str(seed), dispatcher=dispatcher, processes=processes
                )
                if recorded:
                    return await _compare_recorded(
                        shared, chosen, dict(conductors_to_compare(chosen, versus)), opening
                    )
                return await _compare(
                    shared,
                    chosen,
                    opening,
                    versus=versus,
                    untrained=before,
                    constant_front=constant_front,
                )

        count = chosen.plan.processes or processes_for(len(settings.tasks) * repeats)
        with PolicyProcesses(count) as processes:
            comparison = _with_look(asyncio.run(measure(processes)), looking)
    # Shown before it is saved: if the folder cannot be written, the result is not lost.
    _show(comparison, json=json, markdown=markdown)
    if run is not None:
        comparison.save(run / COMPARISON)
        print(f"Written to {write_report(run)}", file=sys.stderr)
    return 0


def _with_look(comparison: Comparison, looking: EvaluationDeclaration | None) -> Comparison:
    """The comparison with a sentence on the look that it was."""
    looked = () if looking is None else looking.count()
    return comparison.model_copy(update={"notes": (*comparison.notes, *looked)})


def _show(comparison: Comparison, *, json: bool, markdown: bool) -> None:
    if json:
        print(comparison.model_dump_json())
    elif markdown:
        print(to_markdown(comparison), end="")
    else:
        open_console().print(terminal(comparison))


@asynccontextmanager
async def _opened(team: TeamSettings, **shared: Any) -> AsyncIterator[OpenedPlanner]:
    """The planner of a team; its connections are closed at the end."""
    opened = open_planner(team, **shared)
    try:
        yield opened
    finally:
        await opened.close()


def _as_trained(
    settings: ComparisonSettings, team: TeamSettings, opened: OpenedPlanner | None
) -> ComparisonSettings:
    """The settings with the steps and rounds that the team names, or with which its Conductor was trained."""
    trained = PlanSettings() if opened is None else opened.trained
    return dataclasses.replace(
        settings,
        max_steps=team.plan.max_steps or trained.max_steps,
        budget=Budget(rounds=team.budget.given_rounds or trained.rounds),
    )


async def _compare(
    settings: ComparisonSettings,
    team: TeamSettings,
    opening: Opening,
    *,
    versus: str | None,
    untrained: str,
    constant_front: ConstantPlanFront | None,
) -> Comparison:
    try:
        second = None if versus is None else second_conductor(versus, team)
        async with (
            opening(team) as trained,
            nullcontext() if second is None else opening(second) as other,
            nullcontext() if untrained == "none" else opening(team.with_checkpoint(untrained)) as first,
        ):
            return await compare(
                _as_trained(settings, team, trained),
                trained.planner,
                label=conductor_label("Conductor", team.plan.cost_sensitivity),
                versus=None if other is None else other.planner,
                versus_label=conductor_label(
                    SECOND_CONDUCTOR, None if second is None else second.plan.cost_sensitivity
                ),
                untrained=None if first is None else first.planner,
                constant_plans=constant_front,
            )
    finally:
        await settings.pool.close()


async def _compare_recorded(
    settings: ComparisonSettings, team: TeamSettings, conductors: Mapping[str, TeamSettings], opening: Opening
) -> Comparison:
    try:
        async with AsyncExitStack() as stack:
            opened = {
                label: await stack.enter_async_context(opening(led)) for label, led in conductors.items()
            }
            first = next(iter(opened.values()), None) if is_named(team) else None
            planners = {label: each.planner for label, each in opened.items()}
            return await compare_recorded(_as_trained(settings, team, first), planners)
    finally:
        await settings.pool.close()


@contextmanager
def _progress() -> Iterator[CompareProgress | None]:
    """A bar for what is being evaluated, on a terminal's stderr."""
    console = open_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("")

        def report(label: str, done: int, total: int) -> None:
            progress.update(task, description=label, completed=done, total=total)

        yield report
