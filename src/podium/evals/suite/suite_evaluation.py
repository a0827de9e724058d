"""The evaluation of a suite in a run's folder, as `podium eval` makes it: checked, declared, answered and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from podium.calls import CallState
from podium.errors import StoreError, UsageError
from podium.evals.answer_files import ShowProgress, accuracy_so_far
from podium.evals.comparison import Comparison
from podium.evals.look_log import TEST
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.comparisons import COMPARISON, comparison_of, evaluations_of
from podium.evals.suite.manifest import SUITE, SuiteManifest
from podium.evals.suite.report import write_report
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import answers_left, run_suite
from podium.evals.suite.suite_settings import SuiteSettings


@dataclass(frozen=True, slots=True)
class SuiteEvaluation:
    """A suite and the folder of its run. `begin` comes first, then `answer`, then `save`."""

    settings: SuiteSettings
    folder: Path
    open_limited: Callable[..., AbstractContextManager[CallState]]
    """`open_call_state` with the response cache and the budgets that all calls share."""
    shares_calls: bool
    """Whether they share these even if nothing costs money. If not, several processes may then run."""
    write_settings: Callable[[], object]
    """Writes the settings into the folder."""
    open_inputs: ComparisonInputs | None = None
    """The only table, if the caller has opened its workers. Then a run on test need not be declared."""

    async def begin(self, note: str | None, on_notice: Callable[[str], None]) -> SuiteManifest:
        """Check that the suite can run. Only then write what will run, and count the looks.

        Args:
            note: what a run on the test or validation split is for. None if it is not declared.
            on_notice: called with sentences for the user: on questions that are left out, and looks that are not
                counted.

        Raises:
            UsageError: something cannot run, or a run on test is not declared.
            StoreError: the folder, or the log of a look that is declared, cannot be written.
        """
        manifest = await check_suite(self.settings, self.folder, self.open_inputs)
        self._check_declared(manifest, note)
        self.write_settings()
        manifest.save(self.folder / SUITE)
        for sentence in (notice for table in manifest.tables for notice in table.notes):
            on_notice(sentence)
        for table in manifest.tables:
            try:
                table.count_look(note or "")
            except StoreError as error:
                if note is not None:
                    raise
                on_notice(f"This look is not counted: {error}")
        return manifest

    def _check_declared(self, manifest: SuiteManifest, note: str | None) -> None:
        """Refuse a run on test that was not declared, and a declaration of nothing."""
        held_out = [table for table in manifest.tables if table.look_log is not None]
        if note is not None and not (note.strip() and held_out):
            raise UsageError(
                "--declare NOTE says what a run on the test or validation split is for; "
                + ("write a note." if held_out else "this one has neither, so leave it out.")
            )
        if self.open_inputs is not None or note is not None:
            return
        for table in held_out:
            assert table.look_log is not None
            if table.settings.split == TEST and not table.look_log.is_declared(TEST, table.config):
                raise UsageError(
                    f"{table.label}: a run on the test split is declared before it begins: say with --declare NOTE "
                    'what it is for, or choose on split = "validation".'
                )

    async def answer(self, manifest: SuiteManifest, show: ShowProgress) -> list[Comparison]:
        """Have all questions answered that have no answer yet. Returns the comparison of each table.

        Raises:
            UsageError, BudgetExceededError, PodiumError: as in `run_suite`.
        """
        calls: AbstractContextManager[CallState | None] = nullcontext()
        if self.shares_calls or manifest.pays:
            calls = self.open_limited(paid_workers=manifest.paid_workers, pays=manifest.pays, run=self.folder)
        with calls as call_state:
            on_answer = accuracy_so_far(show, answers_left(manifest, self.folder))
            results = await run_suite(
                manifest,
                self.folder,
                call_state=call_state,
                open_inputs=self.open_inputs,
                on_answer=on_answer,
            )
        return [
            comparison_of(manifest, table, evaluations_of(table, results), results)
            for table in manifest.tables
        ]

    def save(self, comparisons: Sequence[Comparison]) -> Path:
        """Write the only comparison for programs, and the report. Returns the path of the report."""
        if len(comparisons) == 1:
            comparisons[0].save(self.folder / COMPARISON)
        return write_report([self.folder])
