"""`podium search`: searches for a planner's file on live answers, by the methods trinity, masrouter and workflows.

Before a search begins, each worker or workflow answers one dry question, which gives the search its price. A budget
that cannot pay for one generation is refused. What was found is in the run's folder after each generation. Generations
of a controller, MASRouter's, are epochs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from podium.calls import CallState
from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable
from podium.cli.questions import open_questions
from podium.cli.run_settings import read_run_settings
from podium.cli.team_options import CallOptions, Calls, open_limited_call_state
from podium.cli.terminal import open_console
from podium.errors import BudgetExceededError, ConfigError, UsageError
from podium.evals import evaluate
from podium.executor import ExecutionSettings
from podium.files.atomic import replace_file
from podium.planners import Constant
from podium.planners.planner import Planner
from podium.rollout import Rollout
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium_research.planners.masrouter import team_workflow
from podium_research.planners.masrouter_controller import MEAN_CALLS, RoutedTeam
from podium_research.planners.trinity import Trinity
from podium_research.planners.trinity_head import Head, sep_cma
from podium_research.search.controllers import train_controller_live
from podium_research.search.heads import head_workers, train_head_live
from podium_research.search.settings import AnySearch, ControllerSearch, HeadSearch, WorkflowSearch
from podium_research.search.workflows import (
    FRESH,
    TriedWorkflow,
    beginnings,
    choose,
    front_of,
    search_workflows,
)

Method = Literal["trinity", "masrouter", "workflows"]
_SETTINGS: Mapping[Method, type[AnySearch]] = {
    "trinity": HeadSearch,
    "masrouter": ControllerSearch,
    "workflows": WorkflowSearch,
}
PLAN, PLANS = "plan.txt", "plans.json"
"""What a run's folder gets: the file of `constant:FILE`, and the best plan for each cost."""
_CHANGEABLE = frozenset({"generations", "epochs", "proposals", "concurrency"})
"""Settings that may change when a search continues."""


@dataclass(frozen=True)
class SearchStart:
    """One start of a search, over opened workers and questions."""

    settings: AnySearch
    pool: Pool
    tasks: Sequence[Task]
    console: Console
    """Where progress is said; standard error where the result is JSON."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers of a head or a controller."""
        assert isinstance(self.settings, HeadSearch | ControllerSearch)
        return head_workers(self.pool, self.settings.workers)

    @property
    def dry_planners(self) -> list[Planner]:
        """What answers the dry question: a head or a team for each worker, or the archive's first workflows."""
        if isinstance(self.settings, HeadSearch):
            return [Trinity(Head.untrained((name,)), name) for name in self.workers]
        if isinstance(self.settings, ControllerSearch):
            teams = [RoutedTeam("reflection", (("solver", name),)) for name in self.workers]
            workflows = [team_workflow(team, self.pool.profiles) for team in teams]
        else:
            workflows = beginnings(self.pool.names, self.settings.max_steps)
        return [Constant(workflow, self.pool.names) for workflow in workflows]

    def price(self, rollouts: Sequence[Rollout]) -> SearchPrice:
        """The price of the search, by what each of `dry_planners` did with one question."""
        settings = self.settings
        mean = sum(rollout.trace.uncached_usd for rollout in rollouts) / len(rollouts)
        if isinstance(settings, HeadSearch):
            answers = settings.population * min(settings.replications, len(self.tasks))
            return SearchPrice("generation", answers * mean, settings.generations * answers * mean)
        if isinstance(settings, ControllerSearch):
            epoch = len(self.tasks) * MEAN_CALLS / 2 * mean  # Each of `dry_planners` makes two calls.
            return SearchPrice("epoch", epoch, settings.epochs * epoch)
        # Equal calls of several workflows are paid once.
        calls = {
            (s.worker, s.messages): s.spent.cost_usd + s.spent.saved_usd
            for r in rollouts
            for s in r.trace.spans
        }
        archive, tried_on = sum(calls.values()), min(settings.tried_on, len(self.tasks))
        fresh = len(self.tasks) - tried_on
        whole = (tried_on + (fresh if fresh >= FRESH else 0)) * (archive + settings.proposals * mean)
        return SearchPrice("archive and its first proposal", tried_on * (archive + mean), whole)


@dataclass(frozen=True, slots=True)
class SearchPrice:
    """Dollars, by one dry question; later answers may share cached calls, or be longer."""

    unit: str
    """What `first_usd` pays for."""
    first_usd: float
    whole_usd: float

    def check(self, budget_usd: float | None) -> None:
        """Raise a `UsageError` if the budget cannot pay for the first generation."""
        if budget_usd is not None and self.first_usd > budget_usd:
            smaller = {"generation": "population or replications", "epoch": "questions"}.get(
                self.unit, "tried_on"
            )
            raise UsageError(
                f"--run-budget-usd is {dollars(budget_usd)}, and by a dry question one {self.unit} costs about "
                f"{dollars(self.first_usd)}: give more, or set {smaller} lower."
            )


def search(
    method: Method,
    /,
    *overrides: str,
    run: Path | None = None,
    config: Path | None = None,
    dry_run: Flag = False,
    json: Flag = False,
    calls: Calls = CallOptions(),
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
    calls: CallOptions,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    folder = None if dry_run or run is None else _open_folder(run, search)
    begun = folder is not None and bool(folder.rows().read())
    try:
        with open_limited_call_state(calls, search.pool, run=None if folder is None else run) as call_state:
            if not begun:
                price = search.price(await _dry_question(search, call_state))
                if as_json:
                    print(dumps({"first_usd": price.first_usd, "whole_usd": price.whole_usd}))
                else:
                    _say_price(search, price)
                price.check(calls.run_budget_usd)
            if folder is None:
                return
            if isinstance(search.settings, WorkflowSearch):
                await _search_workflows(search, search.settings, folder, call_state)
            else:
                await _train(search, search.settings, folder, call_state)
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


async def _dry_question(search: SearchStart, call_state: CallState) -> list[Rollout]:
    """What each of `search.dry_planners` does with the first question."""
    rollouts = []
    for planner in search.dry_planners:
        evaluation = await evaluate(
            Runner(
                planner,
                search.pool,
                budget=Budget(rounds=planner.rounds),
                settings=ExecutionSettings(early_stop=search.settings.early_stop),
                call_state=call_state,
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


async def _train(
    search: SearchStart, settings: HeadSearch | ControllerSearch, folder: RunFolder, call_state: CallState
) -> None:
    """Train a head or a controller; each generation or epoch is kept before the next one begins."""
    rows, console, unit = folder.rows(), search.console, settings.unit
    file = folder.path / f"{settings.found}.json"
    earlier = [row[settings.scores] for row in rows.read()]
    done = len(earlier)
    options: dict[str, Any] = {"resume_from": earlier, "call_state": call_state}
    try:
        async for step in (
            train_head_live(search.pool, search.tasks, settings, **options)
            if isinstance(settings, HeadSearch)
            else train_controller_live(search.pool, search.tasks, settings, **options)
        ):
            known = [score for score in step.scores if score is not None]
            mean, best = sum(known) / len(known), max(known)
            replace_file(file, step.found.model_dump_json().encode() + b"\n")
            row = {unit: step.number, "mean": mean, "best": best, "cost_usd": step.cost_usd}
            rows.append(row | {settings.scores: step.scores})
            done = step.number
            print_sentence(
                console,
                f"{unit} {done}/{settings.most}  reward {mean:.3f}, best {best:.3f}  {dollars(step.cost_usd)}",
            )
    except BudgetExceededError as error:
        if not done:
            raise
        _say_budget_ended(console, f"{unit} {done} of {settings.most}", error)
    print_sentence(
        console, f"The {settings.found} is in {file}. Use it as the planner {settings.planner}:{file}."
    )


async def _search_workflows(
    search: SearchStart, settings: WorkflowSearch, folder: RunFolder, call_state: CallState
) -> None:
    rows, console = folder.rows(), search.console
    archive = [TriedWorkflow.model_validate(row) for row in rows.read()]
    pool, tasks = search.pool, search.tasks
    try:
        async for entry in search_workflows(
            pool, tasks, settings, resume_from=tuple(archive), call_state=call_state
        ):
            archive.append(entry)
            rows.append(entry.model_dump())
            what = f"proposal {entry.proposal}/{settings.proposals}" if entry.proposal else "of the beginning"
            sentence = "no new workflow was written in three tries"
            if entry.tried is not None:
                sentence = f"{entry.tried.accuracy:.1%} right  {dollars(entry.tried.cost_usd)} a question"
            print_sentence(console, f"{what}  {sentence}")
        front = await choose(pool, tasks, settings, archive, call_state=call_state)
    except BudgetExceededError as error:
        front = front_of(archive, pool, settings, min(settings.tried_on, len(tasks)))
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


def print_sentence(console: Console, sentence: str) -> None:
    """Print a sentence on one line, however wide the terminal is."""
    console.print(printable(sentence), soft_wrap=True)


def _say_budget_ended(console: Console, done: str, error: BudgetExceededError) -> None:
    print_sentence(
        console, f"The budget ended after {done}: {error} The same command with a larger budget continues."
    )
