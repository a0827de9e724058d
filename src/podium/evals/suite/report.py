"""The report of runs: one self-contained HTML page that can be read without the suite's file.

The page is made from the metrics of a training, and from the manifest and the kept answers of a suite, which need not
be finished. `cases` shows single questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.errors import UsageError
from podium.evals.answer_files import AnswerFiles, without_garbage_collection
from podium.evals.charts import pareto_chart, whisker
from podium.evals.comparison import Comparison, ComparisonRow
from podium.evals.comparison_table import format_interval, percent, points, table_cells, table_notes
from podium.evals.look_log import TEST
from podium.evals.markup import SafeHtml, data_table, fragment, html_page, prose, table_row, tag
from podium.evals.report_sections import collapse_section, training_section
from podium.evals.suite.cases import examples, failures, topologies, wins_and_losses
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.manifest import SUITE, SuiteManifest, SuiteTable
from podium.files.atomic import replace_file
from podium.rollout.run_folder import RunFolder

REPORT = "report.html"
_SURE = 0.05
_LEAST_GAIN = 0.01
"""The least gain of the oracle that is worth a team."""


def write_report(runs: Sequence[Path]) -> Path:
    """Write one page about all runs into the folder of the first, and return its path: the curves of trainings, and
    each table of suites.

    Raises:
        UsageError: a folder does not exist, has neither metrics nor a suite, or has damaged metrics.
        ConfigError: a manifest is damaged.
        RunMismatchError: a file of answers is damaged.
    """
    heading, sections = "", []
    for run in runs:
        if not run.is_dir():
            raise UsageError(f"{run}: there is no such run folder; check the path.")
        metrics = RunFolder(run).rows().read()
        if metrics:
            sections.append(training_section(metrics))
        if (run / SUITE).is_file():
            manifest, results = SuiteManifest.load(run / SUITE), AnswerFiles(run)
            heading = heading or manifest.settings.title
            with without_garbage_collection():
                sections += [_section(manifest, table, results) for table in manifest.tables]
        elif not metrics:
            raise UsageError(f"{run} has neither metrics nor {SUITE}; give the folder of a run.")
    heading = heading or f"Podium: {runs[0].resolve().name}"
    path = runs[0] / REPORT
    replace_file(path, html_page(heading, tag("h1", heading), sections).encode())
    return path


def _section(manifest: SuiteManifest, table: SuiteTable, results: AnswerFiles) -> SafeHtml:
    evaluations = evaluations_of(table, results)
    lacking = [row.label for row in table.rows if row.label not in evaluations]
    if not evaluations:
        return tag("section", tag("h2", table.label), tag("p", "No row has all of its answers yet."))
    comparison = comparison_of(manifest, table, evaluations, results)
    shown = [row for row in table.rows if row.label in evaluations]
    singles = [row.label for row in shown if row.kind == "single"]
    first = next(iter(evaluations))
    start_of = {row.entry.row: row.label for row in table.rows if row.control == "untrained"}
    before = start_of.get(first)
    best = max(singles, key=lambda label: evaluations[label].accuracy.mean, default=None)
    line = "The line joins the planners that no cheaper planner beats; point at a dot to read it."
    return tag(
        "section",
        tag("h2", table.label),
        tag("p", _setting(manifest, table, comparison), class_="soft"),
        (tag("p", caveat, class_="caveat") for caveat in comparison.caveats),
        tag("p", f"Not finished, and so not shown: {', '.join(lacking)}.") if lacking else "",
        _tiles(comparison),
        _rows(comparison),
        tag("h3", "Accuracy over cost"),
        pareto_chart(comparison.rows),
        tag("p", line, class_="note"),
        _prices(comparison),
        _controls(table, comparison),
        examples(first, before, evaluations) if before is not None and before in evaluations else "",
        wins_and_losses(first, best, evaluations) if best not in {None, first} else "",
        collapse_section(
            {
                row.label: evaluations[row.label]
                for row in shown
                if row.entry.uses_conductor and row.control in (None, "untrained")
            },
            start_of=start_of,
            untrained=[row.label for row in shown if row.entry.conducts_untrained],
        ),
        topologies(first, evaluations[first]),
        failures(evaluations),
        _looks(table),
    )


def _setting(manifest: SuiteManifest, table: SuiteTable, comparison: Comparison) -> str:
    """Sentences on what was measured, for a reader who has not seen the suite's file."""
    of, seeds, repeats = table.settings, manifest.settings.seeds, manifest.settings.repeats
    return (
        f"{len(comparison.answering)} planners answered {comparison.questions:,} questions of the {of.split} split of "
        f"{of.tasks.name}, drawn with {seeds} seed{'s' * (seeds != 1)}, {repeats} "
        f"answer{'s' * (repeats != 1)} a question. "
        f"The workers of {of.pool.name}: {', '.join(comparison.pool)}."
    )


def _tiles(comparison: Comparison) -> SafeHtml:
    """The accuracy of the best row of each kind. If there are several Conductors, the first counts."""
    best = {shown.kind: shown for shown in sorted(comparison.rows, key=lambda shown: shown.accuracy.mean)}
    best |= {row.kind: row for row in reversed(comparison.rows) if row.kind == "conductor"}
    shown = (
        (best_row, "best single worker" if kind == "single" else best_row.label)
        for kind in ("conductor", "single", "oracle")
        if (best_row := best.get(kind))
    )
    tiles = (
        tag("div", tag("b", percent(row.accuracy.mean)), tag("span", name, class_="soft"), class_="tile")
        for row, name in shown
    )
    return tag("div", tiles, class_="tiles")


def _rows(comparison: Comparison) -> SafeHtml:
    """The table, with a last column that says which differences are significant by Holm's method."""
    headings, *rows = table_cells(comparison)
    kinds = list(dict.fromkeys(row.kind for row in comparison.rows))
    lines = (
        table_row(
            label,
            whisker(row.accuracy, kinds.index(row.kind)),
            *cells,
            _verdict(row, comparison.reference),
            class_=row.kind,
        )
        for row, (label, *cells) in zip(comparison.rows, rows, strict=True)
    )
    return fragment(
        data_table((headings[0], "", *headings[1:], "difference"), lines),
        (tag("p", note, class_="note") for note in table_notes(comparison)),
    )


def _verdict(row: ComparisonRow, reference: str) -> str:
    if row.difference is None or row.adjusted_p is None:
        return ""
    if row.adjusted_p > _SURE:
        return "none shown"
    return f"{reference} is ahead" if row.difference.mean > 0 else f"{reference} is behind"


def _prices(comparison: Comparison) -> SafeHtml:
    """What each planner's right answers cost, and whether a team of these workers can help at all."""
    rows = [row for row in comparison.rows if row.kind != "oracle"]
    lines = (table_row(row.label, f"{row.cost_of_pass * 1000:.3f}", f"{row.tokens:,.0f}") for row in rows)
    return fragment(
        tag("h3", "Price of a right answer"),
        data_table(("planner", "$ / 1000 right answers", "tokens"), lines),
        tag("p", _room_for_a_team(comparison), class_="note"),
    )


def _room_for_a_team(comparison: Comparison) -> str:
    """A sentence on how much a team could gain, from the best worker and the oracle. Empty if there are fewer than two
    workers."""
    oracle = comparison.oracle
    if oracle is None:
        return ""
    singles = (row for row in comparison.rows if row.kind == "single")
    best = max(singles, key=lambda row: row.accuracy.mean)
    gain = oracle.accuracy.mean - best.accuracy.mean
    if gain < _LEAST_GAIN:
        return (
            f"A team cannot help on these questions: {best.label} is right on {best.accuracy.mean:.1%}, and any of the "
            f"workers on {oracle.accuracy.mean:.1%}."
        )
    return (
        f"A team may help: a planner that always chose a worker that is right would gain {gain * 100:.1f} points on "
        f"{best.label}."
    )


def _controls(table: SuiteTable, comparison: Comparison) -> SafeHtml:
    """Each control compared with its planner: what it would explain, and whether the figures rule that out."""
    first, entry = comparison.rows[0], table.rows[0].entry
    controls = {row.label: row.rules_out for row in table.rows if row.control and row.entry == entry}
    shown = [row for row in comparison.rows if row.label in controls]
    if not shown:
        return SafeHtml("")

    def line(row: ComparisonRow) -> SafeHtml:
        lead = row.difference
        sure = lead is not None and lead.mean > 0 and row.adjusted_p is not None and row.adjusted_p <= _SURE
        return table_row(
            row.label,
            percent(row.accuracy.mean),
            "" if lead is None else f"{points(lead.mean)} {format_interval(lead)}",
            "ruled out" if sure else "not ruled out",
            prose(controls[row.label]),
        )

    ahead_by = f"{first.label} ahead by"
    headings = ("control", "accuracy", ahead_by, "verdict", "what would explain the accuracy")
    return fragment(tag("h3", f"Controls of {first.label}"), data_table(headings, map(line, shown)))


def _looks(table: SuiteTable) -> SafeHtml:
    split = table.settings.split
    looks = () if table.look_log is None else table.look_log.looks(split)
    if not looks:
        return SafeHtml("")
    lines = (
        table_row(
            f"{number}{', this one' * (look.config == table.config)}",
            look.date[:10],
            f"{len(look.planners)}",
            look.note or "not declared" * (split == TEST),
        )
        for number, look in enumerate(looks, 1)
    )
    return fragment(
        tag("h3", f"Looks at the {split} split of {Path(table.settings.tasks.name).name}"),
        data_table(("look", "date", "rows", "what for"), lines),
    )
