"""Runs a suite in a run's folder: declares it, counts its looks, shows a table for each task set and pool, and writes
the report. `podium eval` opens what it needs; `podium report` writes the report again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from podium.calls import Dispatcher
from podium.cli.progress import show_progress
from podium.cli.terminal import json_output, open_console
from podium.errors import StoreError, UsageError
from podium.evals.answering.answer_files import AnswerFiles
from podium.evals.answering.progress import accuracy_so_far
from podium.evals.comparison_table import comparison_markdown, terminal_table
from podium.evals.look_log import TEST
from podium.evals.suite.check import check_suite
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.comparisons import COMPARISON, comparison_of, evaluations_of
from podium.evals.suite.manifest import SUITE, SuiteManifest, SuiteTable
from podium.evals.suite.report import write_report
from podium.evals.suite.suite_run import answers_left, run_suite
from podium.evals.suite.suite_settings import SuiteSettings

DispatcherOpener = Callable[..., AbstractContextManager[Dispatcher]]
"""`open_dispatcher` with what one command line says; it still needs to know what costs money."""


@dataclass(frozen=True, slots=True)
class SuiteRunner:
    """Runs suites as one command line says."""

    run: Path
    """The run's folder."""
    declare: str | None
    """What a run on the test or validation split is for. None if it is not declared."""
    json: bool
    markdown: bool

    async def check(
        self, settings: SuiteSettings, open_inputs: ComparisonInputs | None = None
    ) -> SuiteManifest:
        """What will run. Nothing is written.

        Args:
            open_inputs: the only table, if the caller has opened its workers. Then a run on test need not be declared.

        Raises:
            UsageError: something cannot run, or a run on test was not declared.
        """
        manifest = await check_suite(settings, self.run, open_inputs)
        self._check_declared(manifest, needed=open_inputs is None)
        return manifest

    async def answer(
        self,
        manifest: SuiteManifest,
        open_dispatcher: DispatcherOpener,
        *,
        share: bool = True,
        open_inputs: ComparisonInputs | None = None,
    ) -> AnswerFiles:
        """Have all questions answered that have no answer yet.

        Args:
            open_dispatcher: opens the dispatcher that all calls share.
            share: whether they do so if nothing costs money. If not, many processes may run.
            open_inputs: as in `check`.

        Raises:
            BudgetError: a spend limit refused a call.
        """
        manifest.save(self.run / SUITE)
        for sentence in (notice for table in manifest.tables for notice in table.notes):
            print(sentence, file=sys.stderr)
        for table in manifest.tables:
            self._count(table)
        calls: AbstractContextManager[Dispatcher | None] = nullcontext()
        if share or manifest.pays:
            calls = open_dispatcher(paid_workers=manifest.paid_workers, pays=manifest.pays)
        with calls as dispatcher, show_progress() as show:
            on_answer = accuracy_so_far(show, answers_left(manifest, self.run))
            return await run_suite(
                manifest, self.run, dispatcher=dispatcher, open_inputs=open_inputs, on_answer=on_answer
            )

    def show(self, manifest: SuiteManifest, results: AnswerFiles) -> None:
        """Print the tables, then write the comparison and the report: if the folder cannot be written, they are not
        lost."""
        comparisons = [
            comparison_of(manifest, table, evaluations_of(table, results), results)
            for table in manifest.tables
        ]
        for table, comparison in zip(manifest.tables, comparisons, strict=True):
            if self.json:
                print(comparison.model_dump_json(), file=json_output())
            elif self.markdown:
                print(f"**{table.label}**\n\n{comparison_markdown(comparison)}")
            else:
                console = open_console()
                console.print(table.label)
                console.print(terminal_table(comparison))
        if len(comparisons) == 1:
            comparisons[0].save(self.run / COMPARISON)
        print(f"Written to {write_report([self.run])}", file=sys.stderr)

    def _check_declared(self, manifest: SuiteManifest, *, needed: bool) -> None:
        """Refuse a run on test that was not declared, and a declaration of nothing."""
        note = self.declare
        held_out = [table for table in manifest.tables if table.look_log is not None]
        if note is not None and not (note.strip() and held_out):
            raise UsageError(
                "--declare NOTE says what a run on the test or validation split is for; "
                + ("write a note." if held_out else "this one has neither, so leave it out.")
            )
        for table in held_out if needed and note is None else ():
            assert table.look_log is not None
            if table.settings.split == TEST and not table.look_log.declarations(TEST, table.config):
                raise UsageError(
                    f"{table.label}: a run on the test split is declared before it begins: say with --declare NOTE "
                    'what it is for, or choose on split = "validation".'
                )

    def _count(self, table: SuiteTable) -> None:
        """Write into the log what will be run on test or validation, and count this look."""
        if table.look_log is None:
            return
        if self.declare is not None:
            table.look_log.declare(table.look(self.declare))
        try:
            table.look_log.count(table.look())
        except StoreError as error:
            print(f"This look is not counted: {error}", file=sys.stderr)


def report(*runs: Path) -> int:
    """Write a run's report.html, and print its path. Several runs make one page, in the first one's folder.

    Args:
        runs: The folders of trainings and evaluations.
    """
    if not runs:
        raise UsageError("A report needs the folder of a run.")
    print(write_report(runs))
    return 0
