"""The page of a study: Markdown, and one self-contained HTML file with the charts of `podium report`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from podium.evals.charts import pareto_chart, whisker
from podium.evals.markup import Html, data_table, fragment, html_page, prose, table_row, tag
from podium.rollout.run_folder import replace_file
from podium.study.decision import StudyRow
from podium.study.result import Study
from podium.study.sentences import HEADINGS, bounds, caveats, cells, headline, method_notes, summary

MARKDOWN, HTML = "study.md", "study.html"
"""Names of the page's two forms in a study's folder."""
_MARKED = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;"})


def write_page(folder: Path, study: Study) -> None:
    """Write both forms of the page."""
    replace_file(folder / MARKDOWN, study_markdown(study).encode())
    replace_file(folder / HTML, study_html(study).encode())


def study_markdown(study: Study) -> str:
    """The page as Markdown."""
    return "\n\n".join(_sections(study)) + "\n"


def _sections(study: Study) -> Iterator[str]:
    yield f"# Does a team pay? {study.tasks}".translate(_MARKED)
    yield f"**{headline(study)}**"
    yield from (f"> {caveat}" for caveat in caveats(study))
    yield "\n".join(f"- {sentence}" for sentence in summary(study))
    yield from (
        f"Serve it, from the folder of this page: `podium serve --team {file}`" for file in study.files[:1]
    )
    yield from (f"Serve the cheaper choice: `podium serve --team {file}`" for file in study.files[1:])
    yield "## What was tried"
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(study, row) for row in study.rows)]
    yield "\n".join(f"| {' | '.join(cell.translate(_MARKED) for cell in row)} |" for row in rows)
    yield "## What the pool allows at most"
    yield from bounds(study)
    yield "## How this was measured"
    yield from method_notes(study)


def study_html(study: Study) -> str:
    """The page as one HTML file that loads nothing."""
    title = f"Does a team pay? {study.tasks}"
    return html_page(
        f"Podium: {title}",
        tag("h1", title),
        tag("p", tag("b", headline(study).replace("`", ""))),
        (tag("p", caveat, class_="caveat") for caveat in caveats(study)),
        _list(summary(study)),
        _served(study.files),
        tag("h2", "What was tried"),
        _table(study),
        tag("h2", "Accuracy over cost"),
        pareto_chart(study.rows),
        tag(
            "p",
            "Dollars for 1,000 questions; the line joins the methods that no cheaper method beats.",
            class_="note",
        ),
        tag("h2", "What the pool allows at most"),
        _paragraphs(bounds(study)),
        tag("h2", "How this was measured"),
        _paragraphs(method_notes(study)),
    )


def _list(sentences: Iterable[str]) -> Html:
    return tag("ul", (tag("li", sentence) for sentence in sentences))


def _paragraphs(sentences: Iterable[str]) -> Html:
    return fragment(tag("p", sentence) for sentence in sentences)


def _served(names: Sequence[str]) -> Html:
    leads = ("Serve it, from the folder of this page: ", "Serve the cheaper choice: ")
    return fragment(
        tag("p", lead, tag("code", f"podium serve --team {name}"))
        for lead, name in zip(leads, names, strict=False)
    )


def _table(study: Study) -> Html:
    order = list(dict.fromkeys(row.kind for row in study.rows))

    def line(row: StudyRow) -> Html:
        label, *rest, verdict = cells(study, row)
        bar = whisker(row.accuracy, order.index(row.kind))
        chosen = "conductor" if row is study.best else None
        return table_row(prose(label), bar, *rest, prose(verdict), class_=chosen)

    first, *others = HEADINGS
    return data_table((first, "", *others), map(line, study.rows))
