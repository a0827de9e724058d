"""`podium eval` compares planners on held-out questions: the planners that a suite's file names, or without one the
team's planner with what else its workers can do. Without a file it writes the suite that it runs into the run's folder.
`podium report` writes the report of a run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from podium.calls import Dispatcher
from podium.calls.dispatcher import open_dispatcher
from podium.cli.options import Flag
from podium.cli.printable import say
from podium.cli.progress import show_progress
from podium.cli.questions import check_question_count
from podium.cli.team_file import find_team
from podium.cli.team_options import EvalOptions, Override
from podium.cli.terminal import open_console, print_json
from podium.conductor.settings import SOURCES
from podium.config import load
from podium.config.toml_text import toml_text
from podium.errors import StoreError, UsageError
from podium.evals.answer_files import AnswerFiles, accuracy_so_far
from podium.evals.comparison_table import comparison_markdown, terminal_table
from podium.evals.look_log import TEST
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.comparisons import COMPARISON, comparison_of, evaluations_of
from podium.evals.suite.default_suite import default_suite
from podium.evals.suite.manifest import SUITE, SuiteManifest, SuiteTable, tables_of
from podium.evals.suite.report import write_report
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import answers_left, run_suite
from podium.evals.suite.suite_settings import CHANGEABLE, SuiteSettings
from podium.files import replace_file
from podium.rollout.run_folder import RunFolder
from podium.rows import is_table
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
        return _compare_suite(Path(file), suite_overrides, team, _SuiteRunner(run, declare, json, markdown))
    runner = _SuiteRunner(run or Path("eval"), declare, json, markdown)
    return _compare_team(_team_to_compare(team, overrides, run), runner, untrained=untrained, seed=seed)


# --- a suite's file ----------------------------------------------------------------------------------------


def _refuse_options(file: str, options: EvalOptions, others: dict[str, object]) -> None:
    values = {name: value for name, value in vars(options).items() if name not in _OF_SUITES}
    if named := [name.replace("_", "-") for name, value in {**values, **others}.items() if value]:
        raise UsageError(f"The file of a suite takes the place of --{named[0]}; set it in {file}.")


def _compare_suite(file: Path, overrides: Sequence[str], calls: EvalOptions, runner: _SuiteRunner) -> int:
    settings = load(file, SuiteSettings, overrides)
    # A key of its own keeps it apart from the configuration of a training.
    configuration = {"suite": settings.model_dump(mode="json")}
    RunFolder.check(runner.folder, configuration, changeable=CHANGEABLE)
    cache, day_usd = calls.cache, calls.day_budget_usd
    open_limited = partial(open_dispatcher, cache=cache, day_usd=day_usd, run_usd=calls.run_budget_usd)
    begin = partial(RunFolder.open, runner.folder, configuration, changeable=CHANGEABLE)
    share = cache is not None or day_usd is not None
    asyncio.run(runner.run(settings, open_limited, begin, share=share))
    return 0


# --- a team ------------------------------------------------------------------------------------------------


def _compare_team(reference: TeamReference, runner: _SuiteRunner, *, untrained: str | None, seed: int) -> int:
    team = reference.read()
    if team.eval.tasks is not None:
        check_question_count(team.eval.questions, team.eval.tasks)
    pool = open_pool(team)
    settings = default_suite(team, pool, reference.overrides, untrained=untrained, seed=seed)
    (table,) = tables_of(settings)
    opened = ComparisonInputs.from_pool(table, pool, team)
    open_limited = partial(
        open_dispatcher,
        cache=team.cache,
        replay=team.replay,
        day_usd=team.budget.day_usd,
        run_usd=team.budget.run_usd,
    )

    def write_suite() -> None:
        written = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        runner.folder.mkdir(parents=True, exist_ok=True)
        replace_file(runner.folder / SUITE_FILE, toml_text(written).encode())

    async def compare() -> None:
        try:
            await runner.run(settings, open_limited, write_suite, open_inputs=opened)
        finally:
            await opened.pool.close()

    asyncio.run(compare())
    return 0


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


# --- a run -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SuiteRunner:
    folder: Path
    declare: str | None
    """What a run on the test or validation split is for. None if it is not declared."""
    json: bool
    markdown: bool

    async def run(
        self,
        settings: SuiteSettings,
        open_limited: Callable[..., AbstractContextManager[Dispatcher]],
        begin: Callable[[], object],
        *,
        share: bool = True,
        open_inputs: ComparisonInputs | None = None,
    ) -> None:
        """Have all questions answered that have no answer yet, and show the results.

        Args:
            open_limited: `open_dispatcher` with the cache and the budgets that all calls share.
            begin: called once it is known that the suite can run, before anything is written.
            share: whether they share these even if nothing costs money. If not, several processes may then run.
            open_inputs: the only table, if the caller has opened its workers. Then a run on test need not be declared.
        """
        manifest = await check_suite(settings, self.folder, open_inputs)
        self._check_declared(manifest, needed=open_inputs is None)
        begin()
        manifest.save(self.folder / SUITE)
        for sentence in (notice for table in manifest.tables for notice in table.notes):
            say(sentence, stderr=True)
        for table in manifest.tables:
            self._count(table)
        calls: AbstractContextManager[Dispatcher | None] = nullcontext()
        if share or manifest.pays:
            calls = open_limited(paid_workers=manifest.paid_workers, pays=manifest.pays, run=self.folder)
        with calls as dispatcher, show_progress() as show:
            on_answer = accuracy_so_far(show, answers_left(manifest, self.folder))
            results = await run_suite(
                manifest, self.folder, dispatcher=dispatcher, open_inputs=open_inputs, on_answer=on_answer
            )
        self._show(manifest, results)

    def _show(self, manifest: SuiteManifest, results: AnswerFiles) -> None:
        """Print the tables, then write the comparison and the report: if the folder cannot be written, they are not
        lost."""
        comparisons = [
            comparison_of(manifest, table, evaluations_of(table, results), results)
            for table in manifest.tables
        ]
        for table, comparison in zip(manifest.tables, comparisons, strict=True):
            if self.json:
                print_json(comparison.model_dump_json())
            elif self.markdown:
                print(f"**{table.label}**\n\n{comparison_markdown(comparison)}")
            else:
                console = open_console()
                console.print(table.label)
                console.print(terminal_table(comparison))
        if len(comparisons) == 1:
            comparisons[0].save(self.folder / COMPARISON)
        say(f"Written to {write_report([self.folder])}", stderr=True)

    def _check_declared(self, manifest: SuiteManifest, *, needed: bool) -> None:
        """Refuse a run on test that was not declared, and a declaration of nothing."""
        note = self.declare
        held_out = [table for table in manifest.tables if table.look_log is not None]
        if note is not None and not (note.strip() and held_out):
            raise UsageError(
                "--declare NOTE says what a run on the test or validation split is for; "
                + ("write a note." if held_out else "this one has neither, so leave it out.")
            )
        if not needed or note is not None:
            return
        for table in held_out:
            assert table.look_log is not None
            if table.settings.split == TEST and not table.look_log.is_declared(TEST, table.config):
                raise UsageError(
                    f"{table.label}: a run on the test split is declared before it begins: say with --declare NOTE "
                    'what it is for, or choose on split = "validation".'
                )

    def _count(self, table: SuiteTable) -> None:
        """Count a look. A run that is declared does not begin if its declaration cannot be written."""
        if table.look_log is None:
            return
        try:
            table.look_log.add(table.look(self.declare or ""))
        except StoreError as error:
            if self.declare is not None:
                raise
            say(f"This look is not counted: {error}", stderr=True)


def report(*runs: Path) -> int:
    """Write a run's report.html, and print its path. Several runs make one page, in the first one's folder.

    Args:
        runs: The folders of trainings and evaluations.
    """
    if not runs:
        raise UsageError("A report needs the folder of a run.")
    print(write_report(runs))
    return 0
