"""`podium eval` compares planners on held-out questions: the planners that a suite's file names, or without one the
team's planner with what else its workers can do. Without a file it writes the suite that it runs into the run's folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from podium.calls.dispatcher import open_dispatcher
from podium.cli.options import Flag
from podium.cli.questions import check_size
from podium.cli.suite import SuiteRunner
from podium.cli.team_file import find_team
from podium.cli.team_options import EvalOptions, Overrides
from podium.conductor.settings import SOURCES
from podium.config import load
from podium.config.toml_text import toml_text
from podium.errors import UsageError
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.default_suite import default_suite
from podium.evals.suite.manifest import tables_of
from podium.evals.suite.suite_settings import CHANGEABLE, SuiteSettings
from podium.files import replace_file
from podium.rollout.run_folder import RunFolder
from podium.rows import is_table
from podium.team.team_file import TeamFile, open_pool
from podium.workers.pool import pool_file

SUITE_FILE = "suite.toml"
"""The file in a run's folder that holds the suite written for it."""
_OF_SUITES = frozenset({"cache", "day_budget_usd", "run_budget_usd"})
"""The options of a team that a suite takes from the command line."""


def compare_planners(
    *keys: Overrides,
    team: EvalOptions = EvalOptions(),
    run: Path | None = None,
    declare: str | None = None,
    untrained: str | None = None,
    seed: int = 0,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Compare the team's planner with each worker alone, votes and others; or run a suite: planners, task sets, pools
    and seeds from a file.

    The same command resumes what was stopped. A suite, FILE.toml, is the first argument; the others are then key=value
    for its own settings. Without a file, RUN/suite.toml has the suite that was run.

    Args:
        run: A run's folder. That of a training gives its policy, pool and tasks unless the command names others.
            Default without a suite: eval.
        declare: What a run on the test or validation split is for. It is written into the log of looks before the
            run begins; a suite on test needs it.
        untrained: The checkpoint before training, to compare with. Default: none.
        seed: Seeds the choice of questions and all other randomness.
        json: Print the comparison as one line of JSON; of a suite, a line for each table.
        markdown: Print the table as Markdown.
    """
    if json and markdown:
        raise UsageError("--json and --markdown exclude each other; give one of them.")
    if keys and "=" not in keys[0]:
        file, *overrides = keys
        _refuse_options(file, team, {"untrained": untrained, "seed": seed or None})
        if run is None:
            raise UsageError("A suite needs --run FOLDER, in which it keeps its answers and its report.")
        return _compare_suite(Path(file), overrides, team, SuiteRunner(run, declare, json, markdown))
    runner = SuiteRunner(run or Path("eval"), declare, json, markdown)
    team_file = _team_to_compare(team, keys, run)
    return _compare_team(team_file, runner, untrained=untrained, seed=seed)


# --- a suite's file ----------------------------------------------------------------------------------------


def _refuse_options(file: str, options: EvalOptions, others: dict[str, object]) -> None:
    """Refuse the options that the file of a suite takes the place of."""
    values = {
        field.name.replace("_", "-"): getattr(options, field.name)
        for field in fields(options)
        if field.name not in _OF_SUITES
    }
    option = next((name for name, value in {**values, **others}.items() if value), None)
    if option is not None:
        raise UsageError(f"The file of a suite takes the place of --{option}; set it in {file}.")


def _compare_suite(file: Path, overrides: Sequence[str], calls: EvalOptions, runner: SuiteRunner) -> int:
    settings = load(file, SuiteSettings, overrides)
    # A key of its own keeps it apart from the configuration of a training.
    configuration = {"suite": settings.model_dump(mode="json")}
    RunFolder.check(runner.run, configuration, changeable=CHANGEABLE)
    open_limited = partial(
        open_dispatcher,
        cache=calls.cache,
        day_usd=calls.day_budget_usd,
        run_usd=calls.run_budget_usd,
        run=runner.run,
    )

    async def compare() -> None:
        manifest = await runner.check(settings)
        RunFolder.open(runner.run, configuration, changeable=CHANGEABLE)
        share = calls.cache is not None or calls.day_budget_usd is not None
        runner.show(manifest, await runner.answer(manifest, open_limited, share=share))

    asyncio.run(compare())
    return 0


# --- a team ------------------------------------------------------------------------------------------------


def _compare_team(file: TeamFile, runner: SuiteRunner, *, untrained: str | None, seed: int) -> int:
    team = file.read()
    if team.eval.tasks is not None:
        check_size(team.eval.questions, team.eval.tasks)
    pool = open_pool(team)
    settings = default_suite(team, pool, file.overrides, untrained=untrained, seed=seed)
    (table,) = tables_of(settings)
    opened = ComparisonInputs.from_pool(table, pool, team)
    open_limited = partial(
        open_dispatcher,
        cache=team.cache,
        replay=team.replay,
        day_usd=team.budget.day_usd,
        run_usd=team.budget.run_usd,
        run=runner.run,
    )

    async def compare() -> None:
        try:
            manifest = await runner.check(settings, opened)
            written = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)
            runner.run.mkdir(parents=True, exist_ok=True)
            replace_file(runner.run / SUITE_FILE, toml_text(written).encode())
            runner.show(manifest, await runner.answer(manifest, open_limited, open_inputs=opened))
        finally:
            await opened.pool.close()

    asyncio.run(compare())
    return 0


def _team_to_compare(options: EvalOptions, keys: Sequence[str], run: Path | None) -> TeamFile:
    """The team whose planner is compared. What the command does not name, the run's training says: the pool, the tasks,
    and the policy.

    Raises:
        UsageError: the run was trained on a file that cannot be found from this folder.
        RunMismatchError: the folder's config.json is not a run's.
    """
    keys_given = {text.partition("=")[0].strip() for text in (*options.overrides(), *keys)}
    if run is None:
        return find_team(options, keys)
    if (run / "config.json").is_file():
        had = RunFolder(run).configuration
        if "eval.tasks" not in keys_given and "tasks" in had:
            tasks = str(had["tasks"])
            is_file = tasks.endswith(".toml") or is_table(Path(tasks))
            _check_found(run, tasks, there=not is_file or Path(tasks).is_file())
            options = replace(options, tasks=tasks)
        if "pool" not in keys_given and options.team is None and "pool" in had:
            pool = str(had["pool"])
            _check_found(run, pool, there=pool_file(pool).is_file())
            options = replace(options, pool=pool)
    named = keys_given & {"plan.planner", *(f"conductor.{key}" for key in SOURCES)}
    if not named and (run / "policy").is_dir():
        options = replace(options, planner="conductor", conductor=str(run / "policy"))
    return find_team(options, keys)


def _check_found(run: Path, name: str, *, there: bool) -> None:
    if not there:
        raise UsageError(
            f"{run} was trained on {name}, which cannot be found from this folder; run the command in the folder of "
            "the training, or name --pool and --tasks."
        )
