"""The report of a study: what it says, in sentences, and its two forms, Markdown and one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from podium.evals.charts import pareto_chart, whisker
from podium.evals.comparison_table import format_interval, percent, points
from podium.evals.markup import SafeHtml, data_table, html_page, prose, table_row, tag
from podium.evals.stats import Interval
from podium.evals.study.decision import StudyRow
from podium.evals.study.result import Study
from podium.files.atomic import replace_file

MARKDOWN, HTML = "study.md", "study.html"
"""Names of the report's two forms in a study's folder."""
_MARKED = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;"})
HEADINGS = ("method", "accuracy", "$ / 1000", "beside the best single worker", "verdict")
_VERDICTS = {
    "reference": "the best single worker",
    "better": "better",
    "same": "the same answers as it",
    "worse": "worse",
    "not better": "gains too little to matter",
    "open": "open",
}
_JUDGES_ERR = (
    "A judge errs, and may favour its own answers. Check some of its verdicts before you rely on the figures."
)
_MANY = 0.25
"""The grader is doubted if at least this share of the wrong answers has the words of the right answer."""


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
        chosen = "conductor" if row is study.recommended else None
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


def cells(study: Study, row: StudyRow) -> tuple[str, ...]:
    """One row as text: a string for each of `HEADINGS`."""
    return (
        row.label if row.choice in (row.label, f"the {row.label}") else f"{row.label}: {row.choice}",
        f"{percent(row.accuracy.mean)} {format_interval(row.accuracy)}",
        f"{row.cost_usd * 1000:.3g}",
        "" if row.difference is None or row.verdict == "same" else _difference(row.difference),
        verdict_of(study, row),
    )


def verdict_of(study: Study, row: StudyRow) -> str:
    if row.verdict == "cheaper":
        return f"as good, to within {_points(study.margin)}, and {_saving(study, row)} cheaper"
    if row.verdict == "open" and row.more_questions:
        return f"open: about {row.more_questions:,} more questions would decide it"
    return _VERDICTS[row.verdict]


def headline(study: Study) -> str:
    """The recommendation, in one sentence or two."""
    best, single = study.recommended, study.reference
    if best is single:
        is_open = any(row.verdict == "open" and row.is_team for row in study.rows)
        return f"Nothing {'is shown to beat' if is_open else 'beats'} `{_worker(single)}` alone on your questions."
    if best.verdict == "better":
        assert best.difference is not None
        return (
            f"Use {best.choice}. It is right {_difference(best.difference)} more often than `{_worker(single)}` alone, "
            f"your best single worker, at {_price(study, best)} its price."
        )
    return (
        f"Use {best.choice}. It is as good as `{_worker(single)}` alone, your best single worker, to within "
        f"{_points(study.margin)}, and costs {_saving(study, best)} less. Nothing is better for certain."
    )


def summary(study: Study) -> Iterator[str]:
    """The sentences after the headline: prices, the other choice, and how certain the figures are."""
    best, single = study.recommended, study.reference
    yield (
        f"{best.choice}: {percent(best.accuracy.mean)} {format_interval(best.accuracy)} right, "
        f"${best.cost_usd * 1000:.3g} for 1,000 questions."
    )
    if best is not single:
        yield (
            f"{_worker(single)} alone: {percent(single.accuracy.mean)} {format_interval(single.accuracy)} right, "
            f"${single.cost_usd * 1000:.3g} for 1,000 questions."
        )
    cheaper = study.cheaper
    if cheaper is not None:
        yield (
            f"To save money: {cheaper.choice}, {percent(cheaper.accuracy.mean)} right, ${cheaper.cost_usd * 1000:.3g} "
            f"for 1,000 questions, which is {_saving(study, cheaper)} less than {_worker(single)} alone."
        )
    if best is single and study.detectable is not None:
        if study.detectable > 1 - single.accuracy.mean:
            yield (
                f"With {study.questions:,} questions, this study is not likely to find any gain of a team, however "
                "large. Ask more."
            )
        else:
            yield (
                f"With {study.questions:,} questions, this study is likely (80 %) to find a gain of the best team if "
                f"it is {_points(study.detectable)} or more. It cannot exclude a smaller gain."
            )
    opened = [row for row in study.rows if row.verdict == "open" and row.is_team and row.more_questions]
    if opened:
        least = min(opened, key=lambda row: row.more_questions)
        assert least.difference is not None
        yield (
            f"{len(opened)} method{'s are' if len(opened) > 1 else ' is'} still open. About {_more(least)} would "
            f"decide the first of them ({least.label}), if its true difference is the measured "
            f"{points(least.difference.mean)} points."
        )


def bounds(study: Study) -> Iterator[str]:
    """Sentences on the most that the pool's diversity allows."""
    limits = study.bounds
    yield (
        f"On {percent(limits.any_right.mean)} {format_interval(limits.any_right)} of the questions at least one "
        f"worker was right, and on {percent(limits.none_right)} none. No planner that hands on one worker's "
        "answer can be right more often."
    )
    if limits.again is None or limits.any_right_of_repeated is None or limits.best_of_repeated is None:
        yield (
            "Some of this is luck: where workers guess, one of them is often right. Without second answers nobody "
            "can say how much."
        )
        return
    luck = max(0.0, limits.any_right_of_repeated - limits.again.mean)
    yield (
        f"Part of this is luck. {limits.repeated:,} questions were asked twice: on "
        f"{percent(limits.any_right_of_repeated)} of them some worker's first answer was right, but a worker whose "
        f"first answer was right is right again on only {percent(limits.again.mean)} {format_interval(limits.again)}. "
        f"So {_points(luck)} are luck, which no planner can know."
    )
    best = f"The best single worker is right on {percent(limits.best_of_repeated)} of these questions"
    if limits.again.mean > limits.best_of_repeated:
        gain = limits.again.mean - limits.best_of_repeated
        yield f"{best}, so choosing workers by the question can gain about {_points(gain)} at most."
    else:
        yield f"{best}, so there is no sign that choosing workers by the question can gain anything."


def misjudged(study: Study) -> Iterator[str]:
    """Sentences on what to do if the grader seems to judge right answers wrong."""
    misses = study.misjudged
    if misses.with_words and misses.with_words >= _MANY * misses.wrong:
        yield (
            f"{misses.with_words:,} of the {misses.wrong:,} answers judged wrong contain the right "
            "answer. The grader reads the whole of a text. If these answers are right, let your questions end with "
            '"End with a line of the form Answer: ...", or name another grader in their column grader '
            "(docs/graders.md); then give the same command again."
        )


def caveats(study: Study) -> Iterator[str]:
    """What a reader has to know before believing a figure."""
    yield from misjudged(study)
    if study.replayed:
        who = "The workers" if study.replayed == study.workers else ", ".join(study.replayed)
        yield f"{who} answered from a recording, with responses to the bare question."
    if study.judged_by == "judge":
        yield (f"No right answers were given: the worker {study.judge} judged all answers. {_JUDGES_ERR}")
    elif study.judged_by == "agreement":
        yield (
            "No right answers and no judge were given: an answer counts as right if most of the other workers say "
            "the same. That measures agreement, not truth. Votes, cascades and routers are left out, since they "
            "agree with the workers by construction. Add a column of right answers, or name a judge (--judge "
            "WORKER)."
        )
    elif study.judged_by in ("outcomes", "outcomes and judge"):
        yield "No right answers were given: what users said of the stored answers says which answers are right."
        if study.judge is not None:
            yield (f"Where that says nothing of an answer, the worker {study.judge} judged it. {_JUDGES_ERR}")


def method_notes(study: Study) -> Iterator[str]:
    """How the figures were made."""
    yield (
        f"{study.questions:,} questions of {study.tasks}, {len(study.workers)} workers: {', '.join(study.workers)}. "
        f"${study.spent_usd:,.2f} {_spent(study)}."
    )
    yield (
        "Each question was scored by methods that made their choices on other questions (five folds). The method "
        "that is served was chosen in the same way on all questions. In brackets: 95 % intervals of accuracy. "
        "Differences are paired by question, in percentage points. With 95 % probability the lower ends of the "
        "intervals of all teams lie below the true differences, and with 95 % all upper ends above them; the same "
        "holds for single workers and teams at half the price. So the best row may be picked after looking."
    )
    if any(row.label.startswith("router") for row in study.rows):
        yield "A router learns from the questions of the study. With more of them it may gain more than it does here."
    yield from (f"{row.label}: {row.note}" for row in study.rows if row.note)
    yield from study.notes


def _difference(interval: Interval) -> str:
    return f"{points(interval.mean)} {format_interval(interval)} points"


def _spent(study: Study) -> str:
    if study.recorded:
        return "is what the answers would have cost; no worker was paid"
    return f"was spent{', or would have been without the recording' * bool(study.replayed)}"


def _more(row: StudyRow) -> str:
    return f"{row.more_questions:,} more questions ({row.questions + row.more_questions:,} in all)"


def _points(amount: float) -> str:
    return f"{100 * amount:.1f} points"


def _saving(study: Study, row: StudyRow) -> str:
    return f"{1 - row.cost_usd / study.reference.cost_usd:.0%}"


def _price(study: Study, row: StudyRow) -> str:
    single = study.reference.cost_usd
    return f"{row.cost_usd / single:.2g} times" if single else "more than"


def _worker(row: StudyRow) -> str:
    """The worker of a row that is one worker alone."""
    return (row.planner or row.choice).removeprefix("single:")
