"""`podium search`: searches for a planner's file on live answers, by the methods trinity, masrouter and workflows.

Before a search begins, each worker or workflow answers one dry question, which gives the search its price. A budget
that cannot pay for one generation is refused. What was found is in the run's folder after each generation. Generations
of a controller, MASRouter's, are epochs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from math import inf
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from podium.calls import Dispatcher
from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable
from podium.cli.questions import open_questions
from podium.cli.run_settings import read_run_settings
from podium.cli.team_options import DEFAULT_CALLS, Calls, DispatchOptions, open_limited_dispatcher
from podium.cli.terminal import open_console
from podium.errors import BudgetError, ConfigError, UsageError
from podium.evals import evaluate
from podium.executor import ExecutionSettings
from podium.files import replace_file
from podium.rollout import Rollout
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import JsonLines, RunFolder
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium_research.planners.trinity_head import sep_cma
from podium_research.search.constant import ConstantPlanFront, undominated
from podium_research.search.controllers import train_controller_live
from podium_research.search.heads import head_workers, train_head_live
from podium_research.search.settings import AnySearch, ControllerSearch, HeadSearch, WorkflowSearch
from podium_research.search.start import SearchPrice, SearchStart
from podium_research.search.workflows import TriedWorkflow, search_workflows

Method = Literal["trinity", "masrouter", "workflows"]
_SETTINGS: Mapping[Method, type[AnySearch]] = {
    "trinity": HeadSearch,
    "masrouter": ControllerSearch,
    "workflows": WorkflowSearch,
}
HEAD, CONTROLLER, PLAN, PLANS = "head.json", "controller.json", "plan.txt", "plans.json"
"""What a run's folder gets: the files of `trinity:FILE`, `masrouter:FILE` and `constant:FILE`, and the best plan for
each cost."""
_CHANGEABLE = frozenset({"generations", "epochs", "proposals", "concurrency"})
"""Settings that may change when a search continues."""


def search(
    method: Method,
    /,
    *overrides: str,
    run: Path | None = None,
    config: Path | None = None,
    dry_run: Flag = False,
    json: Flag = False,
    calls: Calls = DEFAULT_CALLS,
) -> int:
    """Search for the file of a planner on the graded answers of a pool. The same command continues what was stopped.

    Args:
        method: trinity trains the head of the planner trinity:FILE; masrouter trains the controller of masrouter:FILE;
            workflows lets a worker search for the plan of constant:FILE.
        overrides: Settings as key=value, such as pool=my-workers.toml; they override the file.
        run: The folder to which the search writes what it found so far. A dry run needs none.
        config: A TOML file of settings.
        dry_run: Print what the search would cost, by one dry question, and stop.
        json: With --dry-run: print one JSON object.
    """
    if json and not dry_run:
        raise UsageError("--json is for --dry-run; what a search found is in the files of its folder.")
    if run is None and not dry_run:
        raise UsageError("A search needs --run FOLDER, the folder of the run.")
    settings = read_run_settings(config, _SETTINGS[method], overrides)
    pool = open_pool(settings.pool)
    _check(settings, pool)
    tasks = open_questions(
        settings.tasks, settings.split, size=settings.questions, seed=settings.seed, pool=pool
    )
    start = SearchStart(settings, pool, list(tasks), open_console(stderr=json))
    asyncio.run(_run(start, run, calls, dry_run=dry_run, as_json=json))
    return 0


def _check(settings: AnySearch, pool: Pool) -> None:
    if any(isinstance(worker, ReplayWorker) and not worker.recording.conditioned for worker in pool):
        raise ConfigError(
            f"{settings.pool} has recorded workers, and a recording has only answers to the bare question; give a pool "
            "of live workers."
        )
    if isinstance(settings, HeadSearch | ControllerSearch):
        head_workers(pool, settings.workers)
        if isinstance(settings, HeadSearch):
            sep_cma()
    elif not settings.writer:
        raise ConfigError(
            "The search has no worker that proposes workflows; name a language model of the pool with writer=NAME."
        )
    elif pool.named(settings.writer).is_tool:
        raise ConfigError(
            f"writer names {settings.writer!r}, which is a tool; name a language model of the pool."
        )


async def _run(
    search: SearchStart,
    run: Path | None,
    calls: DispatchOptions,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    folder = None if dry_run or run is None else _open_folder(run, search)
    begun = folder is not None and bool(folder.rows().read())
    try:
        with open_limited_dispatcher(calls, search.pool, run=None if folder is None else run) as dispatcher:
            if not begun:
                price = search.price(await _dry_question(search, dispatcher))
                if as_json:
                    print(dumps({"first_usd": price.first_usd, "whole_usd": price.whole_usd}))
                else:
                    _say_price(search, price)
                price.check(calls.run_budget_usd)
            if folder is None:
                return
            if isinstance(search.settings, WorkflowSearch):
                await _search_workflows(search, search.settings, folder, dispatcher)
            else:
                await _train(search, folder, dispatcher)
    finally:
        await search.pool.close()


def _open_folder(run: Path, search: SearchStart) -> RunFolder:
    """The run's folder. All settings, questions and workers may change until the first generation is kept."""
    begun, settings = bool(RunFolder(run).rows().read()), search.settings
    folder = RunFolder.open(
        run, settings, changeable=_CHANGEABLE if begun else frozenset(type(settings).model_fields)
    )
    folder.check_or_store_data(DataFingerprint.of(search.tasks, search.pool), begun=begun)
    return folder


async def _dry_question(search: SearchStart, dispatcher: Dispatcher) -> list[Rollout]:
    """What each of `search.dry_planners` does with the first question."""
    rollouts = []
    for planner in search.dry_planners:
        evaluation = await evaluate(
            Runner(
                planner,
                search.pool,
                budget=Budget(rounds=planner.rounds),
                settings=ExecutionSettings(early_stop=search.settings.early_stop),
                dispatcher=dispatcher,
            ),
            search.tasks[:1],
        )
        (rollout,) = evaluation.rollouts
        if rollout.infrastructure_failed:
            failed = (span.error for span in rollout.trace.spans if span.status == "failed")
            reason = rollout.grade.failure or next(failed, None) or rollout.trace.error
            raise UsageError(f"The dry question failed: {reason} Repair that, and run the command again.")
        rollouts.append(rollout)
    return rollouts


def _say_price(search: SearchStart, price: SearchPrice) -> None:
    print_sentence(
        search.console,
        f"By a dry question, one {price.unit} costs about {dollars(price.first_usd)}, and the whole search about "
        f"{dollars(price.whole_usd)}.",
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One generation of a head, or one epoch of a controller."""

    number: int
    content: str
    """What was found so far, as JSON."""
    row: Mapping[str, Any]
    """What the run's folder keeps of the step."""
    summary: str


async def _head_steps(
    search: SearchStart, settings: HeadSearch, rows: JsonLines, dispatcher: Dispatcher
) -> AsyncIterator[_Step]:
    earlier_rewards = [row["rewards"] for row in rows.read()]
    async for generation in train_head_live(
        search.pool, search.tasks, settings, resume_from=earlier_rewards, dispatcher=dispatcher
    ):
        mean, best = sum(generation.rewards) / len(generation.rewards), max(generation.rewards)
        row = {"generation": generation.number, "mean": mean, "best": best, "cost_usd": generation.cost_usd}
        yield _Step(
            generation.number,
            generation.head.model_dump_json(),
            row | {"rewards": generation.rewards},
            f"reward {mean:.3f}, best {best:.3f}  {dollars(generation.cost_usd)}",
        )


async def _controller_steps(
    search: SearchStart, settings: ControllerSearch, rows: JsonLines, dispatcher: Dispatcher
) -> AsyncIterator[_Step]:
    earlier_utilities = [row["utilities"] for row in rows.read()]
    async for epoch in train_controller_live(
        search.pool, search.tasks, settings, resume_from=earlier_utilities, dispatcher=dispatcher
    ):
        utilities = [utility for utility in epoch.utilities if utility is not None]
        mean = sum(utilities) / len(utilities)
        row = {"epoch": epoch.number, "mean": mean, "cost_usd": epoch.cost_usd}
        yield _Step(
            epoch.number,
            epoch.controller.model_dump_json(),
            row | {"utilities": epoch.utilities},
            f"utility {mean:.3f}  {dollars(epoch.cost_usd)}",
        )


async def _train(search: SearchStart, folder: RunFolder, dispatcher: Dispatcher) -> None:
    """Train a head or a controller; each step is kept before the next one begins."""
    rows, settings, console = folder.rows(), search.settings, search.console
    if isinstance(settings, HeadSearch):
        noun, planner, file, unit = "head", "trinity", folder.path / HEAD, "generation"
        steps, most = _head_steps(search, settings, rows, dispatcher), settings.generations
    else:
        assert isinstance(settings, ControllerSearch)
        noun, planner, file, unit = "controller", "masrouter", folder.path / CONTROLLER, "epoch"
        steps, most = _controller_steps(search, settings, rows, dispatcher), settings.epochs
    done = len(rows.read())
    try:
        async for step in steps:
            replace_file(file, step.content.encode() + b"\n")
            rows.append(step.row)
            done = step.number
            print_sentence(console, f"{unit} {done}/{most}  {step.summary}")
    except BudgetError as error:
        if not done:
            raise
        _say_budget_ended(console, f"{unit} {done} of {most}", error)
    print_sentence(console, f"The {noun} is in {file}. Use it as the planner {planner}:{file}.")


async def _search_workflows(
    search: SearchStart, settings: WorkflowSearch, folder: RunFolder, dispatcher: Dispatcher
) -> None:
    rows, console = folder.rows(), search.console
    archive = [TriedWorkflow.model_validate(row) for row in rows.read()]
    earlier = tuple(archive)

    def on_tried(entry: TriedWorkflow) -> None:
        archive.append(entry)
        rows.append(entry.model_dump())
        what = f"proposal {entry.proposal}/{settings.proposals}" if entry.proposal else "of the beginning"
        sentence = "no new workflow was written in three tries"
        if entry.tried is not None:
            sentence = f"{entry.tried.accuracy:.1%} right  {dollars(entry.tried.cost_usd)} a question"
        print_sentence(console, f"{what}  {sentence}")

    try:
        front = await search_workflows(
            search.pool,
            search.tasks,
            settings.writer,
            proposals=settings.proposals,
            questions=settings.tried_on,
            max_steps=settings.max_steps,
            max_cost=settings.max_cost,
            seed=str(settings.seed),
            execution=ExecutionSettings(early_stop=settings.early_stop),
            dispatcher=dispatcher,
            resume_from=earlier,
            on_tried=on_tried,
        )
    except BudgetError as error:
        front = _front_so_far(search, settings, archive)
        if not front.plans:
            raise
        _say_budget_ended(console, counted(len(archive), "entry").replace("entrys", "entries"), error)
    if not front.plans:
        raise UsageError(
            f"No workflow costs at most max_cost = {settings.max_cost:g} dollars a question; set it higher."
        )
    best = max(front.plans, key=lambda plan: plan.accuracy)
    front.save(folder.path / PLANS)
    file = folder.path / PLAN
    replace_file(file, best.plan.encode() + b"\n")
    print_sentence(
        console,
        f"The most accurate plan is right on {best.accuracy:.1%} of {front.questions} questions, at "
        f"{dollars(best.cost_usd)} each.",
    )
    print_sentence(
        console, f"It is in {file}. Use it as the planner constant:{file}. Cheaper plans are in {PLANS}."
    )


def _front_so_far(
    search: SearchStart, settings: WorkflowSearch, archive: Sequence[TriedWorkflow]
) -> ConstantPlanFront:
    """The best workflows of an archive that is not complete."""
    most = inf if settings.max_cost is None else settings.max_cost
    tried = [entry.tried for entry in archive if entry.tried is not None and entry.tried.cost_usd <= most]
    return ConstantPlanFront(
        workers=search.pool.names,
        plans=undominated(tried),
        max_steps=settings.max_steps,
        questions=min(settings.tried_on, len(search.tasks)),
        seed=str(settings.seed),
    )


def print_sentence(console: Console, sentence: str) -> None:
    """Print a sentence on one line, however wide the terminal is."""
    console.print(printable(sentence), soft_wrap=True)


def _say_budget_ended(console: Console, done: str, error: BudgetError) -> None:
    print_sentence(
        console, f"The budget ended after {done}: {error} The same command with a larger budget continues."
    )
