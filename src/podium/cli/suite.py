"""`podium eval FILE.toml` runs a suite, counts the looks, and shows a table for each task set and pool; `podium report`
writes a run's report.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium.cli.team_options import EvalOptions
from podium.cli.terminal import open_console
from podium.config import load
from podium.errors import StoreError, UsageError
from podium.evals.looks import TEST, TRAIN
from podium.evals.report import write_report
from podium.evals.suite.manifest import SUITE, Manifest
from podium.evals.suite.opening import Checked, check_suite
from podium.evals.suite.page import write_suite_report
from podium.evals.suite.results import GradedAnswer, Results
from podium.evals.suite.run import OnAnswer, answers_left, run_suite
from podium.evals.suite.settings import CHANGEABLE, SuiteRun, SuiteSettings
from podium.evals.suite.tables import comparison_of, evaluations_of
from podium.evals.table import markdown as to_markdown
from podium.evals.table import terminal
from podium.rollout.run_folder import RunFolder
from podium.team.dispatching import open_dispatcher
from podium.team.opening import open_pool
from podium.workers.pool import has_paid_workers

_OF_SUITES = frozenset({"cache", "day_budget_usd", "run_budget_usd"})
"""The options of a team that a suite takes from the command line."""


def suite_from_options(
    suite: Sequence[str],
    options: EvalOptions,
    others: Mapping[str, object],
    *,
    run: Path | None,
    declare: str | None,
    json: bool,
    markdown: bool,
) -> int:
    """Run the suite of a command line; refuse the options that its file takes the place of.

    Args:
        suite: the file, then its overrides.
        others: by option, what else was given; None: it was not.
    """
    file, *overrides = suite
    given = {
        field.name.replace("_", "-"): getattr(options, field.name)
        for field in fields(options)
        if field.name not in _OF_SUITES
    }
    option = next((name for name, value in {**given, **others}.items() if value), None)
    if option is not None:
        raise UsageError(f"The file of a suite takes the place of --{option}; set it in {file}.")
    return evaluate_suite(
        Path(file), overrides, run=run, declare=declare, calls=options, json=json, markdown=markdown
    )


def evaluate_suite(
    file: Path,
    overrides: Sequence[str],
    *,
    run: Path | None,
    declare: str | None,
    calls: EvalOptions = EvalOptions(),
    json: bool,
    markdown: bool,
) -> int:
    """Run the suite of a file in a run's folder, or continue it, and print its tables.

    Raises:
        UsageError: something in the file cannot run, or a run on test was not declared.
    """
    if run is None:
        raise UsageError("A suite needs --run FOLDER, in which it keeps its answers and its report.")
    settings = load(file, SuiteSettings, overrides)
    if settings.ray is not None and _shares(calls):
        raise UsageError(
            "A response cache and a budget hold in one process; leave out ray, or --cache and --day-budget-usd."
        )
    RunFolder.check(run, SuiteRun(suite=settings), changeable=CHANGEABLE)
    checked = asyncio.run(check_suite(settings))
    manifest = Manifest.of(checked, run)
    _check_declared(manifest, declare)
    RunFolder.open(run, SuiteRun(suite=settings), changeable=CHANGEABLE)
    manifest.save(run / SUITE)
    if declare is not None:
        _declare(manifest, declare)
    _count(manifest)
    with _progress(answers_left(checked, run)) as on_answer:
        results = asyncio.run(_run(checked, run, calls, on_answer))
    for table in manifest.tables:
        comparison = comparison_of(manifest, table, evaluations_of(table, results))
        if json:
            print(comparison.model_dump_json())
        elif markdown:
            print(f"**{table.label}**\n\n{to_markdown(comparison)}")
        else:
            console = open_console()
            console.print(table.label)
            console.print(terminal(comparison))
    print(f"Written to {write_suite_report([run])}", file=sys.stderr)
    return 0


def _shares(calls: EvalOptions) -> bool:
    """Whether the answers of all processes would share a cache or a budget."""
    return calls.cache is not None or calls.day_budget_usd is not None


async def _run(checked: Checked, run: Path, calls: EvalOptions, on_answer: OnAnswer | None) -> Results:
    """Run with a response cache and an account in the folder where anything costs money, else in many processes."""
    if not checked.pays and not _shares(calls):
        return await run_suite(checked, run, on_answer=on_answer)
    # The first pool that costs money decides that there are a cache and an account; all pools share them.
    pools = [open_pool(entry.name) for entry in checked.settings.pool]
    paid = next((pool for pool in pools if has_paid_workers(pool)), pools[0])
    try:
        with open_dispatcher(
            paid,
            cache=calls.cache,
            day_usd=calls.day_budget_usd,
            run_usd=calls.run_budget_usd,
            pays=checked.pays,
            run=run,
        ) as dispatcher:
            return await run_suite(checked, run, dispatcher=dispatcher, on_answer=on_answer)
    finally:
        for pool in pools:
            await pool.close()


def _check_declared(manifest: Manifest, note: str | None) -> None:
    """Refuse a run on test that was not declared, and a declaration of nothing."""
    held_out = [table for table in manifest.tables if table.split != TRAIN]
    if note is not None and not (note.strip() and held_out):
        raise UsageError(
            "--declare NOTE says what a run on the test or validation split is for; "
            + ("write a note." if held_out else "this suite has neither, so leave it out.")
        )
    on_test = [table for table in manifest.tables if table.split == TEST]
    for table in on_test if note is None else ():
        if table.looks is not None and not table.looks.is_declared(TEST, table.config):
            raise UsageError(
                f"{table.label}: a run on the test split is declared before it begins: say with --declare NOTE what it "
                'is for, or choose on split = "validation".'
            )


def _declare(manifest: Manifest, note: str) -> None:
    """Write into the ledgers what will be run on test or validation."""
    for table in manifest.tables:
        if table.split != TRAIN and table.looks is not None:
            table.looks.declare(table.tasks, table.split, table.config, table.planners, note)


def _count(manifest: Manifest) -> None:
    """Count this look at each split."""
    for table in manifest.tables:
        if table.looks is None:
            continue
        try:
            table.looks.count(table.tasks, table.split, table.config, table.planners)
        except StoreError as error:
            print(f"This look is not counted: {error}", file=sys.stderr)


@contextmanager
def _progress(left: int) -> Iterator[OnAnswer | None]:
    """A bar over all answers with the row, its accuracy so far and all dollars so far, on a terminal's stderr."""
    console = open_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=left)
        right: dict[str, list[bool]] = {}
        dollars = 0.0

        def on_answer(label: str, answer: GradedAnswer) -> None:
            nonlocal dollars
            dollars += answer.trace.uncached_usd
            found = right.setdefault(label, [])
            found.append(answer.rollout.correct)
            share = sum(found) / len(found)
            progress.update(bar, advance=1, description=f"{label}: {share:.1%} right, ${dollars:.4f} so far")

        yield on_answer


def report(*runs: Path, title: str | None = None) -> int:
    """Write a run's report.html, and print its path. Several runs of suites make one page, in the first one's folder.

    Args:
        runs: The folders of a training, of an evaluation, or of suites.
        title: The heading. Default: the folder's name, or the suite's title.
    """
    if not runs:
        raise UsageError("A report needs the folder of a run.")
    suites = [(run / SUITE).is_file() for run in runs]
    if len(runs) > 1 and not all(suites):
        raise UsageError(f"{runs[suites.index(False)]} is no run of a suite; only suites share a page.")
    print(write_suite_report(runs, title=title) if all(suites) else write_report(runs[0], title=title))
    return 0
