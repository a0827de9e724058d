"""`podium eval` compares the Conductor with every baseline on the same held-out questions.

`podium.cli.suite` runs the suites of `podium eval FILE.toml`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium.baselines import PlanFor
from podium.baselines.embedded_oracle import embedded_oracle
from podium.cli.eval_setup import (
    conductor_label,
    conductor_of_run,
    conductors_to_compare,
    is_named,
    refuse_without_conductor,
    second_conductor,
    tasks_and_pool,
)
from podium.cli.looking import EvaluationDeclaration
from podium.cli.opening import open_dispatcher, planner_from_options, trained_plan
from podium.cli.options import (
    DEFAULT_CALLS,
    SHIPPED_CONDUCTOR,
    DispatchOptions,
    EarlyStop,
    Flag,
    PlannerOptions,
    PoolName,
    RunBudget,
)
from podium.cli.questions import open_questions
from podium.cli.suite import suite_from_options
from podium.cli.terminal import open_console
from podium.conductor.process_policy import PolicyProcesses, processes_for
from podium.errors import UsageError
from podium.evals import Comparison, ComparisonSettings, ConstantPlanFront, compare, compare_recorded
from podium.evals.compare import SECOND_CONDUCTOR, CompareProgress
from podium.evals.report import COMPARISON, write_report
from podium.evals.table import markdown as to_markdown
from podium.evals.table import terminal
from podium.executor import ExecutionSettings
from podium.orchestrator.planning import OpenedPlanner
from podium.orchestrator.team import open_pool
from podium.planner import Planner
from podium.tasks import ALL, warnings_of
from podium.tasks.open import EMBEDDED
from podium.types import Budget
from podium.workers.pool import has_real_workers
from podium.workers.specialist import Specialist

Opening = Callable[[PlannerOptions], AbstractAsyncContextManager[OpenedPlanner]]
"""Opens the planner that options name, with what all methods share."""
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
    *suite: str,
    run: Path | None = None,
    declare: str | None = None,
    planner: PlannerOptions = SHIPPED_CONDUCTOR,
    versus: Versus = None,
    untrained: str | None = None,
    pool: PoolName = None,
    tasks: str | None = None,
    split: str = "test",
    questions: int = 400,
    tuning: int | None = None,
    repeats: int = 1,
    constant_plans: Path | None = None,
    max_steps: int | None = None,
    early_stop: EarlyStop = False,
    rounds: int | None = None,
    concurrency: int = 16,
    plan_processes: int | None = None,
    calls: DispatchOptions = DEFAULT_CALLS,
    run_budget_usd: RunBudget = None,
    seed: int = 0,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Compare the Conductor with every baseline, or run a suite: planners, task sets, pools and seeds from a file.

    With --run, the same command resumes what was stopped.

    Args:
        suite: The TOML file of a suite, then key=value for settings that differ from it. It takes the place of all
            options but --run, --declare, --json, --markdown and those of workers' calls.
        run: A run's folder. Its policy is compared, over the pool and on the tasks of its training unless --pool and
            --tasks name others; the comparison and the report are written into the folder. Default: the shipped
            Conductor is compared, and nothing is written.
        declare: What a run on the test or validation split is for. It is written into the ledger of looks before the
            run begins; a suite on test needs it.
        untrained: The checkpoint before training, to compare with; "none" leaves it out. Default: warmstart for
            embedded questions, none for others.
        tasks: The task set, a task file (NAME.toml), a table (NAME.csv, NAME.jsonl) or a recording (NAME.parquet). The
            shipped Conductor does not know a recording's questions, and is left out there. Default: the run's, else
            embedded.
        split: The split to compare on. Baselines make their choices on validation questions; on a recording, on
            training questions.
        questions: How many questions to compare on.
        tuning: How many questions baselines make their choices on; each is answered hundreds of times. 0: no constant
            plan is searched. Default: 400 embedded questions, all of a recording, none of other sets.
        repeats: Answers to each question.
        constant_plans: A file of constant plans that an earlier search found, instead of a new search.
        max_steps: The most steps of a plan. Default: as many as the Conductor was trained with, else 5.
        rounds: The most plans for a question; with more than 1 the Conductor sees its answer and may plan again.
            Default: as many as it was trained with, else 1.
        concurrency: The most questions at once.
        plan_processes: How many processes write the plans of a small local policy; 1: no other than this one. Default:
            for 100 questions and more one for each core, at most 8.
        seed: Seeds the choice of questions and all other randomness.
        json: Print the comparison as one line of JSON; of a suite, a line for each table.
        markdown: Print the table as Markdown.
    """
    if suite:
        return suite_from_options(compare_planners, locals())
    counts = (questions, repeats, max_steps, rounds, concurrency, plan_processes)
    if min(count for count in counts if count is not None) < 1 or (tuning is not None and tuning < 0):
        raise UsageError(
            "--questions, --repeats, --max-steps, --rounds, --concurrency and --plan-processes are at least 1, "
            "--tuning at least 0."
        )
    if planner.planner != "conductor":
        raise UsageError("This command compares all baselines with the Conductor; leave --planner out.")
    if json and markdown:
        raise UsageError("--json and --markdown exclude each other; give one of them.")
    tasks, pool = tasks_and_pool(run, tasks=tasks, pool=pool)
    recorded, embedded = tasks.endswith(".parquet"), tasks == EMBEDDED
    choosing = "train" if recorded else "validation"
    if tuning is None and recorded:
        tuning = ALL
    elif tuning is None:
        tuning = 400 if embedded else 0
    if recorded and constant_plans:
        raise UsageError(
            "--constant-plans are for embedded tasks; on a recording fixed plans are chosen anew."
        )
    if recorded and untrained not in {None, "none"}:
        raise UsageError("--untrained is not shown on a recording; give the checkpoint with --versus.")
    if tuning and split == choosing:
        raise UsageError(
            f"Baselines make their choices on {choosing} questions; evaluate on another --split."
        )
    chosen = conductor_of_run(planner, run)
    if recorded and not is_named(chosen):
        refuse_without_conductor(chosen, versus)
    workers = open_pool(pool)
    looking = EvaluationDeclaration.of(
        {key: value for key, value in locals().items() if key in _MEASURED}, chosen, workers, run, declare
    )
    constant_front = ConstantPlanFront.load(constant_plans) if constant_plans else None
    trained = trained_plan(chosen, workers)
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
            concurrency=concurrency,
            seed=str(seed),
            max_steps=max_steps or trained.max_steps,
            budget=Budget(rounds=rounds or trained.rounds),
            on_progress=report,
            execution=ExecutionSettings(early_stop=early_stop),
            notes=(
                *warnings_of(held_out),
                *([_STOPPED] if early_stop else []),
                *([_SAMPLES_NOTE] if early_stop and not recorded else []),
            ),
        )
        simulated = not has_real_workers(workers)
        before = untrained or ("warmstart" if embedded and simulated else "none")
        bound = embedded and any(isinstance(worker, Specialist) for worker in workers)
        oracle = embedded_oracle(list(workers)) if bound else None

        async def measure(processes: PolicyProcesses) -> Comparison:
            async with open_dispatcher(
                calls, workers, planner=chosen, run=run, run_budget_usd=run_budget_usd
            ) as dispatcher:
                shared = dataclasses.replace(settings, dispatcher=dispatcher)
                opening = partial(
                    planner_from_options,
                    pool=workers,
                    seed=str(seed),
                    dispatcher=dispatcher,
                    processes=processes,
                )
                if recorded:
                    return await _compare_recorded(
                        shared, dict(conductors_to_compare(chosen, versus)), opening
                    )
                return await _compare(
                    shared,
                    chosen,
                    opening,
                    versus=versus,
                    untrained=before,
                    oracle=oracle,
                    constant_front=constant_front,
                )

        count = plan_processes or processes_for(len(settings.tasks) * repeats)
        with PolicyProcesses(count) as processes:
            comparison = _with_look(asyncio.run(measure(processes)), looking)
    # Shown before it is saved: if the folder cannot be written, the result is not lost.
    _show(comparison, json=json, markdown=markdown)
    if run is not None:
        comparison.save(run / COMPARISON)
        print(f"Written to {write_report(run)}", file=sys.stderr)
    return 0


_MEASURED = frozenset({
    "tasks", "pool", "split", "questions", "tuning", "repeats", "max_steps", "rounds", "early_stop", "seed", "versus",
    "untrained", "constant_plans",
})  # fmt: skip
"""The parameters on which figures depend, beside the Conductor."""


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


async def _compare(
    settings: ComparisonSettings,
    planner: PlannerOptions,
    opening: Opening,
    *,
    versus: str | None,
    untrained: str,
    oracle: PlanFor | None,
    constant_front: ConstantPlanFront | None,
) -> Comparison:
    try:
        second = None if versus is None else second_conductor(versus, planner)
        async with (
            opening(planner) as trained,
            nullcontext() if second is None else opening(second) as other,
            nullcontext() if untrained == "none" else opening(PlannerOptions(conductor=untrained)) as first,
        ):
            return await compare(
                settings,
                trained.planner,
                label=conductor_label("Conductor", planner.cost_sensitivity),
                versus=None if other is None else other.planner,
                versus_label=conductor_label(
                    SECOND_CONDUCTOR, None if second is None else second.cost_sensitivity
                ),
                untrained=None if first is None else first.planner,
                oracle=oracle,
                constant_plans=constant_front,
            )
    finally:
        await settings.pool.close()


async def _compare_recorded(
    settings: ComparisonSettings,
    conductors: Mapping[str, PlannerOptions],
    opening: Opening,
) -> Comparison:
    try:
        async with AsyncExitStack() as stack:
            opened: dict[str, Planner] = {}
            for label, options in conductors.items():
                opened[label] = (await stack.enter_async_context(opening(options))).planner
            return await compare_recorded(settings, opened)
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
