"""`podium eval` compares planners on held-out questions: the planners that a suite's file names, or without one the
team's planner with what else its workers can do. Without a file it writes the suite that it runs into the run's folder.
`podium report` writes the report of a run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from podium.calls.call_state import open_call_state
from podium.cli.found_team import find_team
from podium.cli.options import Flag
from podium.cli.printable import say
from podium.cli.progress import show_progress
from podium.cli.questions import check_question_count
from podium.cli.team_options import EvalOptions, Override
from podium.cli.terminal import open_console, print_json
from podium.conductor.settings import SOURCES
from podium.config import load
from podium.config.toml import toml_text
from podium.errors import UsageError
from podium.evals.comparison import Comparison
from podium.evals.comparison_table import comparison_markdown, terminal_table
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.default_suite import default_suite
from podium.evals.suite.manifest import SuiteManifest, tables_of
from podium.evals.suite.report import write_report
from podium.evals.suite.suite_evaluation import SuiteEvaluation
from podium.evals.suite.suite_settings import CHANGEABLE, SuiteSettings
from podium.files.atomic import replace_file
from podium.files.tables import is_table
from podium.rollout.run_folder import RunFolder
from podium.team.team_file import TeamReference, open_pool
from podium.workers.pool import pool_file

SUITE_FILE = "suite.toml"
"""The file in a run's folder that holds the suite written for it."""
_OF_SUITES = frozenset({"cache", "day_budget_usd", "run_budget_usd"})
"""The options of a team that a suite takes from the command line."""


def compare_planners(
    *overrides: Override,
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
    if overrides and "=" not in overrides[0]:
        file, *suite_overrides = overrides
        _refuse_options(file, team, {"untrained": untrained, "seed": seed or None})
        if run is None:
            raise UsageError("A suite needs --run FOLDER, in which it keeps its answers and its report.")
        suite = _suite_of_file(Path(file), suite_overrides, team, run)
    else:
        reference = _team_to_compare(team, overrides, run)
        suite = _suite_of_team(reference, run or Path("eval"), untrained=untrained, seed=seed)
    manifest, comparisons = asyncio.run(_compare(suite, declare))
    for table, comparison in zip(manifest.tables, comparisons, strict=True):
        if json:
            print_json(comparison.model_dump_json())
        elif markdown:
            print(f"**{table.label}**\n\n{comparison_markdown(comparison)}")
        else:
            console = open_console()
            console.print(table.label)
            console.print(terminal_table(comparison))
    # They are written after they are shown, so that they are not lost if the folder cannot be written.
    say(f"Written to {suite.save(comparisons)}", stderr=True)
    return 0


async def _compare(suite: SuiteEvaluation, note: str | None) -> tuple[SuiteManifest, list[Comparison]]:
    """Run the suite. Workers that are open are closed at the end."""
    try:
        manifest = await suite.begin(note, partial(say, stderr=True))
        with show_progress() as show:
            return manifest, await suite.answer(manifest, show)
    finally:
        if suite.open_inputs is not None:
            await suite.open_inputs.pool.close()


def _refuse_options(file: str, options: EvalOptions, others: dict[str, object]) -> None:
    values = {name: value for name, value in vars(options).items() if name not in _OF_SUITES}
    if named := [name.replace("_", "-") for name, value in {**values, **others}.items() if value]:
        raise UsageError(f"The file of a suite takes the place of --{named[0]}; set it in {file}.")


def _suite_of_file(file: Path, overrides: Sequence[str], calls: EvalOptions, run: Path) -> SuiteEvaluation:
    settings = load(file, SuiteSettings, overrides)
    # A key of its own keeps it apart from the configuration of a training.
    configuration = {"suite": settings.model_dump(mode="json")}
    RunFolder.check(run, configuration, changeable=CHANGEABLE)
    cache, day_usd = calls.cache, calls.day_budget_usd
    return SuiteEvaluation(
        settings,
        run,
        partial(open_call_state, cache=cache, day_usd=day_usd, run_usd=calls.run_budget_usd),
        shares_calls=cache is not None or day_usd is not None,
        write_settings=partial(RunFolder.open, run, configuration, changeable=CHANGEABLE),
    )


def _suite_of_team(
    reference: TeamReference, run: Path, *, untrained: str | None, seed: int
) -> SuiteEvaluation:
    team = reference.read()
    if team.eval.tasks is not None:
        check_question_count(team.eval.questions, team.eval.tasks)
    pool = open_pool(team)
    settings = default_suite(team, pool, reference.overrides, untrained=untrained, seed=seed)
    (table,) = tables_of(settings)

    def write_suite() -> None:
        written = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        run.mkdir(parents=True, exist_ok=True)
        replace_file(run / SUITE_FILE, toml_text(written).encode())

    open_limited = partial(
        open_call_state,
        cache=team.cache,
        replay=team.replay,
        day_usd=team.budget.day_usd,
        run_usd=team.budget.run_usd,
    )
    inputs = ComparisonInputs.from_pool(table, pool, team)
    return SuiteEvaluation(
        settings, run, open_limited, shares_calls=True, write_settings=write_suite, open_inputs=inputs
    )


def _team_to_compare(options: EvalOptions, overrides: Sequence[str], run: Path | None) -> TeamReference:
    """The team whose planner is compared. What the command does not name, the run's training says: the pool, the tasks,
    and the policy."""
    keys_given = {text.partition("=")[0].strip() for text in (*options.overrides(), *overrides)}
    if run is None:
        return find_team(options, overrides)
    if (run / "config.json").is_file():
        had = RunFolder(run).configuration
        missing = None
        if "eval.tasks" not in keys_given and "tasks" in had:
            options = replace(options, tasks=(tasks := str(had["tasks"])))
            is_file = tasks.endswith(".toml") or is_table(Path(tasks))
            missing = tasks if is_file and not Path(tasks).is_file() else None
        if "pool" not in keys_given and options.team is None and "pool" in had:
            options = replace(options, pool=(pool := str(had["pool"])))
            missing = missing or (None if pool_file(pool).is_file() else pool)
        if missing is not None:
            raise UsageError(
                f"{run} was trained on {missing}, which cannot be found from this folder; run the command in the "
                "folder of the training, or name --pool and --tasks."
            )
    named = keys_given & {"plan.planner", *(f"conductor.{key}" for key in SOURCES)}
    if not named and (run / "policy").is_dir():
        options = replace(options, planner="conductor", conductor=str(run / "policy"))
    return find_team(options, overrides)


def report(*runs: Path) -> int:
    """Write a run's report.html, and print its path. Several runs make one page, in the first one's folder.

    Args:
        runs: The folders of trainings and evaluations.
    """
    if not runs:
        raise UsageError("A report needs the folder of a run.")
    print(write_report(runs))
    return 0
