"""The report of a study: Markdown, and one self-contained HTML file with the charts of `podium report`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from podium.evals.charts import pareto_chart, whisker
from podium.evals.markup import SafeHtml, data_table, html_page, prose, table_row, tag
from podium.evals.study.decision import StudyRow
from podium.evals.study.result import Study
from podium.evals.study.sentences import HEADINGS, bounds, caveats, cells, headline, method_notes, summary
from podium.files import replace_file

MARKDOWN, HTML = "study.md", "study.html"
"""Names of the report's two forms in a study's folder."""
_MARKED = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;"})


def write_report(folder: Path, study: Study) -> None:
    replace_file(folder / MARKDOWN, study_markdown(study).encode())
    replace_file(folder / HTML, study_html(study).encode())


def study_markdown(study: Study) -> str:
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(study, row) for row in study.rows)]
    sections = (
        f"# {_title(study)}".translate(_MARKED),
        f"**{headline(study)}**",
        *(f"> {caveat}" for caveat in caveats(study)),
        "\n".join(f"- {sentence}" for sentence in summary(study)),
        *(f"{lead}: `{command}`" for lead, command in _served(study)),
        "## What was tried",
        "\n".join(f"| {' | '.join(cell.translate(_MARKED) for cell in row)} |" for row in rows),
        "## What the pool allows at most",
        *bounds(study),
        "## How this was measured",
        *method_notes(study),
    )
    return "\n\n".join(sections) + "\n"


def study_html(study: Study) -> str:
    """The report as one HTML file that loads nothing."""
    order = list(dict.fromkeys(row.kind for row in study.rows))
    drawn = "Dollars for 1,000 questions; the line joins the methods that no cheaper method beats."

    def line(row: StudyRow) -> SafeHtml:
        label, *rest, verdict = cells(study, row)
        bar = whisker(row.accuracy, order.index(row.kind))
        chosen = "conductor" if row is study.best else None
        return table_row(prose(label), bar, *rest, prose(verdict), class_=chosen)

    return html_page(
        f"Podium: {_title(study)}",
        tag("h1", _title(study)),
        tag("p", tag("b", headline(study).replace("`", ""))),
        (tag("p", caveat, class_="caveat") for caveat in caveats(study)),
        tag("ul", (tag("li", sentence) for sentence in summary(study))),
        (tag("p", f"{lead}: ", tag("code", command)) for lead, command in _served(study)),
        tag("h2", "What was tried"),
        data_table((HEADINGS[0], "", *HEADINGS[1:]), map(line, study.rows)),
        tag("h2", "Accuracy over cost"),
        pareto_chart(study.rows),
        tag("p", drawn, class_="note"),
        tag("h2", "What the pool allows at most"),
        (tag("p", sentence) for sentence in bounds(study)),
        tag("h2", "How this was measured"),
        (tag("p", sentence) for sentence in method_notes(study)),
    )


def _title(study: Study) -> str:
    return f"Does a team pay? {study.tasks}"


def _served(study: Study) -> Iterator[tuple[str, str]]:
    """What each team file is for, and the command that serves it."""
    leads = ("Serve it, from the folder of this page", "Serve the cheaper choice")
    return ((lead, f"podium serve --team {file}") for lead, file in zip(leads, study.files, strict=False))
