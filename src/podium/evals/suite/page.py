"""The report of runs: one self-contained HTML page that can be read without the suite's file.

It is drawn from the metrics of a training, and from the manifest and the kept answers of a suite, finished or not.
`cases` shows single questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from podium.errors import UsageError
from podium.evals.charts import Html, fragment, pareto_chart, tag, whisker
from podium.evals.comparison import Comparison, ComparisonRow
from podium.evals.evaluation import Evaluation
from podium.evals.evaluation_ledger import TEST
from podium.evals.measures import Measures, PlannerMeasures, measure
from podium.evals.report import REPORT, html_page, training_section
from podium.evals.suite.cases import examples, failures, topologies, wins_and_losses
from podium.evals.suite.plan import SUITE, Manifest, SuiteTable
from podium.evals.suite.results import Results, without_garbage_collection
from podium.evals.suite.tables import comparison_of, evaluations_of, unfinished
from podium.evals.table import grid, notes, percent, points, within
from podium.rollout.run_folder import RunFolder, replace_file

_SURE = 0.05
_LIGHT = """
for (const one of document.querySelectorAll("[data-row]")) {
  const light = on => {
    for (const other of one.closest("section").querySelectorAll("[data-row]"))
      if (other.dataset.row === one.dataset.row) other.classList.toggle("lit", on);
  };
  one.addEventListener("mouseenter", () => light(true));
  one.addEventListener("mouseleave", () => light(false));
}
"""
"""Marks a planner's row where the pointer is on its point, and its point where the pointer is on its row."""
_STYLE = """
tr.lit td { background: var(--card); } circle.lit { stroke: var(--ink); stroke-width: 3; }
td.said { white-space: normal; text-align: left; } details { margin: .5rem 0; } summary { cursor: pointer; }
section h3 { margin-top: 2rem; }
"""


def write_report(runs: Sequence[Path], *, title: str | None = None) -> Path:
    """Write one page about all runs into the folder of the first, and return its path: the curves of trainings, and
    each table of suites.

    Raises:
        UsageError: a folder does not exist, or has neither metrics nor a suite; or its metrics are damaged.
        ConfigError: a manifest is damaged.
        RunMismatchError: a file of answers is damaged.
    """
    heading, sections = title, []
    for run in runs:
        if not run.is_dir():
            raise UsageError(f"{run}: there is no such run folder; check the path.")
        metrics = RunFolder(run).rows().read()
        if metrics:
            sections.append(training_section(metrics))
        if (run / SUITE).is_file():
            manifest, results = Manifest.load(run / SUITE), Results(run)
            heading = heading or manifest.title
            with without_garbage_collection():
                sections += [_section(manifest, table, results) for table in manifest.tables]
        elif not metrics:
            raise UsageError(f"{run} has neither metrics nor {SUITE}; give the folder of a run.")
    heading = heading or f"Podium: {runs[0].resolve().name}"
    page = html_page(
        heading,
        tag("style", Html(_STYLE)),
        tag("h1", heading),
        sections,
        tag("script", Html(_LIGHT)),
    )
    path = runs[0] / REPORT
    replace_file(path, page.encode())
    return path


def _section(manifest: Manifest, table: SuiteTable, results: Results) -> Html:
    """All of one task set and pool."""
    evaluations = evaluations_of(table, results)
    lacking = unfinished(table, results)
    if not evaluations:
        return tag("section", tag("h2", table.label), tag("p", "No row has all of its answers yet."))
    comparison = comparison_of(manifest, table, evaluations)
    kinds = {row.label: row.kind for row in table.rows}
    singles = {
        evaluation.planner.partition(":")[2]: label
        for label, evaluation in evaluations.items()
        if kinds[label] == "single"
    }
    first = next(iter(evaluations))
    best = max(singles.values(), key=lambda label: evaluations[label].accuracy.mean, default=None)
    measures = measure(evaluations, singles=singles)
    return tag(
        "section",
        tag("h2", table.label),
        tag("p", _setting(manifest, table, comparison), class_="soft"),
        (tag("p", caveat, class_="simulated") for caveat in comparison.caveats),
        tag("p", f"Not finished, and so not shown: {', '.join(lacking)}.") if lacking else "",
        _tiles(comparison),
        _rows(comparison),
        tag("h3", "Accuracy over cost"),
        pareto_chart(comparison),
        tag(
            "p",
            "The line joins the planners that no cheaper planner beats; point at a dot to read it.",
            class_="note",
        ),
        _measures(measures),
        _controls(table, comparison),
        _before_and_after(table, evaluations),
        wins_and_losses(first, best, evaluations) if best not in {None, first} else "",
        topologies(first, evaluations[first]),
        failures(evaluations),
        _ledger(table),
    )


def _setting(manifest: Manifest, table: SuiteTable, comparison: Comparison) -> str:
    """What was measured, for a reader who does not know the file."""
    of = table.table
    return (
        f"{len(comparison.rows)} planners answered {comparison.questions:,} questions of the {of.split} split of "
        f"{of.tasks.name}, drawn with {manifest.seeds} seed{'s' * (manifest.seeds != 1)}, "
        f"{manifest.repeats} answer{'s' * (manifest.repeats != 1)} a question. "
        f"The workers of {of.pool.name}: {', '.join(comparison.pool)}."
    )


def _tiles(comparison: Comparison) -> Html:
    """The accuracy of the best row of each kind. Of several Conductors the first one counts."""
    best = {shown.kind: shown for shown in sorted(comparison.rows, key=lambda shown: shown.accuracy.mean)}
    conductors = [shown for shown in comparison.rows if shown.kind == "conductor"]
    if conductors:
        best["conductor"] = conductors[0]
    names = {
        "conductor": best["conductor"].label if conductors else "",
        "single": "best single worker",
        "oracle": best["oracle"].label if "oracle" in best else "",
    }
    return tag(
        "div",
        (
            tag(
                "div",
                tag("b", percent(best[kind].accuracy.mean)),
                tag("span", name, class_="soft"),
                class_="tile",
            )
            for kind, name in names.items()
            if kind in best
        ),
        class_="tiles",
    )


def _rows(comparison: Comparison) -> Html:
    """The table, with a last column that says which differences Holm's method lets stand."""
    headings, *rows = grid(comparison)
    kinds = list(dict.fromkeys(row.kind for row in comparison.rows))

    def line(row: ComparisonRow, written: Sequence[str]) -> Html:
        label, *cells = written
        return tag(
            "tr",
            tag("td", label),
            tag("td", whisker(row.accuracy, kinds.index(row.kind))),
            (tag("td", cell) for cell in cells),
            tag("td", _verdict(row, comparison.reference)),
            class_=row.kind,
            data_row=row.label,
        )

    heads = (headings[0], "", *headings[1:], "difference")
    return fragment(
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", (tag("th", head) for head in heads))),
                tag("tbody", map(line, comparison.rows, rows)),
            ),
            class_="scroll",
        ),
        (tag("p", note, class_="note") for note in notes(comparison)),
    )


def _verdict(row: ComparisonRow, reference: str) -> str:
    if row.difference is None or row.adjusted_p is None:
        return ""
    if row.adjusted_p > _SURE:
        return "none shown"
    return f"{reference} is ahead" if row.difference.mean > 0 else f"{reference} is behind"


def _measures(measures: Measures) -> Html:
    """Further figures of each planner, and what the pool allows."""

    def cells(planner: PlannerMeasures) -> Iterator[str]:
        gaps, variety = planner.gaps, planner.variety
        yield f"{planner.cost_of_pass * 1000:.3f}"
        yield f"{planner.tokens:,.0f}"
        yield "" if gaps is None or gaps.ahead_of_best is None else points(gaps.ahead_of_best.mean)
        yield "" if gaps is None or gaps.behind_oracle is None else points(gaps.behind_oracle.mean)
        yield "" if variety is None else f"{variety.workers_bits:.2f}"
        yield "" if variety is None else percent(variety.commonest_plan)

    heads = (
        "planner",
        "$ / 1000 right answers",
        "tokens",
        "ahead of best single",
        "behind oracle of one call",
        "entropy of workers, bits",
        "commonest plan",
    )
    return fragment(
        tag("h3", "Further measures"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", (tag("th", head) for head in heads))),
                tag(
                    "tbody",
                    (
                        tag(
                            "tr",
                            tag("td", planner.label),
                            (tag("td", cell) for cell in cells(planner)),
                            data_row=planner.label,
                        )
                        for planner in measures.planners
                    ),
                ),
            ),
            class_="scroll",
        ),
        tag("p", measures.pool.statement, class_="note") if measures.pool else "",
    )


def _controls(table: SuiteTable, comparison: Comparison) -> Html:
    """Each control beside its planner: what it would explain, and whether the figures rule that out."""
    rows = {row.label: row for row in comparison.rows}
    first = comparison.rows[0]
    entry = table.rows[0].entry
    shown = [row for row in table.rows if row.control and row.entry == entry and row.label in rows]
    if not shown:
        return Html("")

    def line(label: str, explains: str) -> Html:
        row = rows[label]
        lead = row.difference
        ruled_out = (
            lead is not None and lead.mean > 0 and row.adjusted_p is not None and row.adjusted_p <= _SURE
        )
        cells = (
            percent(row.accuracy.mean),
            "" if lead is None else f"{points(lead.mean)} {within(lead)}",
            "ruled out" if ruled_out else "not ruled out",
        )
        return tag(
            "tr", tag("td", label), (tag("td", cell) for cell in cells), tag("td", explains, class_="said")
        )

    heads = ("control", "accuracy", f"{first.label} ahead by", "verdict", "what would explain the accuracy")
    return fragment(
        tag("h3", f"Controls of {first.label}"),
        tag(
            "table",
            tag("thead", tag("tr", (tag("th", head) for head in heads))),
            tag("tbody", (line(row.label, row.rules_out) for row in shown)),
        ),
    )


def _before_and_after(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Html:
    """Plans of the first planner beside those of its checkpoint before training, if that has a row."""
    first = next(iter(evaluations))
    before = f"{first}: untrained"
    return examples(first, before, evaluations) if before in evaluations else Html("")


def _ledger(table: SuiteTable) -> Html:
    """How often the split was looked at."""
    split = table.table.split
    looks = () if table.ledger is None else table.ledger.looks(split)
    if not looks:
        return Html("")

    def line(number: int, date: str, note: str, planners: Sequence[str], this: bool) -> Html:
        undeclared = "not declared" if split == TEST else ""
        cells = (date[:10], f"{len(planners)}", note or undeclared)
        return tag("tr", tag("td", f"{number}{', this one' * this}"), (tag("td", cell) for cell in cells))

    return fragment(
        tag("h3", f"Looks at the {split} split of {Path(table.table.tasks.name).name}"),
        tag(
            "table",
            tag("thead", tag("tr", (tag("th", head) for head in ("look", "date", "rows", "what for")))),
            tag(
                "tbody",
                (
                    line(number, look.date, look.note, look.planners, look.config == table.config)
                    for number, look in enumerate(looks, 1)
                ),
            ),
        ),
    )
