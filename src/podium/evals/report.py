"""The report of a run: one self-contained HTML page.

It is drawn from `metrics.jsonl` (training) and `comparison.json` (evaluation), whichever the run folder has: tiles,
curves, the table, and example plans before and after training. It computes no figures of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from podium import __version__
from podium.errors import UsageError
from podium.evals.charts import Html, colour, curve, fragment, pareto_chart, shares, tag, whisker
from podium.evals.comparison import RECORDED, BeforeAfter, Comparison, ComparisonRow, ExamplePlan
from podium.evals.table import HEADINGS, grid, notes, percent
from podium.rollout.run_folder import RunFolder, replace_file

COMPARISON, REPORT = "comparison.json", "report.html"
"""Names of the files in a run folder."""


def write_report(run: Path, *, title: str | None = None) -> Path:
    """Write `report.html` into the run folder, and return its path.

    Raises:
        UsageError: the folder does not exist, or has neither metrics nor a comparison.
    """
    if not run.is_dir():
        raise UsageError(f"{run}: there is no such run folder; check the path.")
    try:
        metrics = RunFolder(run).rows().read()
    except ValueError:
        raise UsageError(f"{run}: its metrics.jsonl is damaged; repair or remove it.") from None
    comparison = Comparison.load(run / COMPARISON) if (run / COMPARISON).is_file() else None
    if not metrics and comparison is None:
        raise UsageError(f"{run} has neither metrics nor {COMPARISON}; give the folder of a run.")
    path = run / REPORT
    replace_file(path, render_page(title or run.resolve().name, metrics, comparison).encode())
    return path


Metrics = Sequence[Mapping[str, Any]]
"""One mapping for each iteration of training."""


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"


def _number(value: float) -> str:
    return f"{value:g}"


def _thousand(value: float) -> str:
    return f"{1000 * value:.3g}"


CURVES: tuple[tuple[str, str, Callable[[float], str], float | None], ...] = (
    ("reward", "Reward", _number, None),
    ("accuracy", "Accuracy on training questions", _share, None),
    ("valid", "Valid plans", _share, None),
    ("steps", "Steps a question", _number, 0.0),
    ("cost_usd", "Dollars per thousand questions", _thousand, 0.0),
    ("entropy", "Entropy of the policy, nats a token", _number, 0.0),
)
"""(metric, caption, function that formats a value, lower end of the axis); None: the axis begins at the least value."""


def render_page(title: str, metrics: Metrics, comparison: Comparison | None) -> str:
    """The whole page. It says where workers were simulated or recorded, as the comparison or the metrics do."""
    caveats = comparison.caveats if comparison else _caveats(metrics[-1])
    return html_page(
        f"Podium: {title}",
        tag("h1", f"Podium: {title}"),
        tag("p", _subtitle(metrics, comparison), class_="soft"),
        (tag("p", caveat, class_="simulated") for caveat in caveats),
        _tiles(comparison) if comparison else "",
        _training(metrics) if metrics else "",
        _table(comparison) if comparison else "",
        _front(comparison) if comparison else "",
        _by_hops(comparison) if comparison else "",
        _examples(comparison.examples) if comparison and comparison.examples else "",
    )


def html_page(title: str, *body: Html | str | Iterable[Html | str]) -> str:
    """A self-contained page in the style of the report, which ends with the version that wrote it."""
    style = files("podium").joinpath("assets", "report.css").read_text(encoding="utf-8")
    viewport = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    written_by = tag("p", f"Written by podium {__version__}.", class_="note")
    head = tag("head", viewport, tag("title", title), tag("style", Html(style)))
    return f"<!doctype html>\n{tag('html', head, tag('body', *body, written_by), lang='en')}\n"


def _caveats(last: Mapping[str, Any]) -> tuple[str, ...]:
    """The caveats of a run without a comparison, from the last row of its metrics."""
    return (RECORDED,) * bool(last.get("recorded", False))


def _subtitle(metrics: Metrics, comparison: Comparison | None) -> str:
    parts = []
    if metrics:
        parts.append(f"{len(metrics)} iterations of training")
    if comparison:
        parts.append(comparison.subject)
        parts.append(f"workers: {', '.join(comparison.pool)}")
    return " · ".join(parts)


def _tiles(comparison: Comparison) -> Html:
    """The accuracy of the best row of each kind. If there are several Conductors, the first one counts."""
    best = {shown.kind: shown for shown in sorted(comparison.rows, key=lambda shown: shown.accuracy.mean)}
    conductors = [shown for shown in comparison.rows if shown.kind == "conductor"]
    if conductors:
        best["conductor"] = conductors[0]  # Its cost is the limit of the baselines.
    cost = ", equal cost" if conductors else ""
    names = {
        "conductor": conductors[0].label if len(conductors) > 1 else "trained Conductor",
        "untrained": "before training",
        "single": "best single worker",
        "self-consistency": f"self-consistency{cost}",
        "constant": f"best constant plan{cost}",
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


def _training(metrics: Metrics) -> Html:
    figures = []
    for key, caption, show, minimum in CURVES:
        points = [(float(at), float(row[key])) for at, row in _numbered(metrics) if _is_number(row.get(key))]
        if points:
            figures.append(
                tag("figure", tag("figcaption", caption), curve(points, show=show, minimum=minimum))
            )
    used = [(float(at), row["workers"]) for at, row in _numbered(metrics) if row.get("workers")]
    names = sorted({name for _, found in used for name in found})
    return fragment(
        tag("h2", "Training"),
        tag("p", "Faint: each iteration. Strong: the moving mean over a tenth of them.", class_="note"),
        tag("div", figures, class_="curves"),
        (tag("h2", "Share of steps by worker"), _legend(names), shares(used, names)) if used else "",
    )


def _numbered(metrics: Metrics) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((row.get("iteration", position), row) for position, row in enumerate(metrics))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _legend(names: Sequence[str]) -> Html:
    return tag(
        "ul",
        (
            tag("li", tag("i", style=f"background:{colour(position)}"), name)
            for position, name in enumerate(names)
        ),
        class_="legend",
    )


def _table(comparison: Comparison) -> Html:
    kinds = list(dict.fromkeys(shown.kind for shown in comparison.rows))

    headings, *rows = grid(comparison)

    def line(shown: ComparisonRow, written: Sequence[str]) -> Html:
        label, *rest = written
        bar = whisker(shown.accuracy, kinds.index(shown.kind))
        return tag(
            "tr", tag("td", label), tag("td", bar), (tag("td", cell) for cell in rest), class_=shown.kind
        )

    first, *others = headings
    return fragment(
        tag("h2", "Held-out questions"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", tag("th", first), tag("th"), (tag("th", name) for name in others))),
                tag("tbody", map(line, comparison.rows, rows)),
            ),
            class_="scroll",
        ),
        (tag("p", note, class_="note") for note in notes(comparison)),
    )


def _front(comparison: Comparison) -> Html:
    return fragment(
        tag("h2", "Accuracy over cost"),
        pareto_chart(comparison),
        tag(
            "p",
            "Dollars for 1,000 questions; the line joins the methods that no cheaper method beats.",
            class_="note",
        ),
    )


def _by_hops(comparison: Comparison) -> Html:
    hops = sorted({count for shown in comparison.rows for count in shown.by_hops})
    if not hops:
        return Html("")
    heads = [f"{count} hop{'s' if count > 1 else ''}" for count in hops]

    def line(shown: ComparisonRow) -> Html:
        found = (percent(shown.by_hops[count]) if count in shown.by_hops else "" for count in hops)
        return tag("tr", tag("td", shown.label), (tag("td", cell) for cell in found), class_=shown.kind)

    return fragment(
        tag("h2", "Accuracy by hops"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", tag("th", HEADINGS[0]), (tag("th", head) for head in heads))),
                tag("tbody", map(line, comparison.rows)),
            ),
            class_="scroll",
        ),
    )


def _examples(examples: Sequence[BeforeAfter]) -> Html:
    return fragment(
        tag("h2", "Plans before and after"),
        tag("p", "The first held-out question of each number of hops, not selected by hand.", class_="note"),
        map(_example, examples),
    )


def _example(shown: BeforeAfter) -> Html:
    sides = [("After training", shown.after)]
    if shown.before is not None:
        sides.insert(0, ("Before training", shown.before))
    return tag(
        "div",
        tag("p", shown.question, class_="question"),
        tag("p", f"{shown.hops} hop{'s' * (shown.hops != 1)} · right answer: {shown.gold}", class_="note"),
        tag("div", (plan_side(heading, plan) for heading, plan in sides), class_="sides"),
        class_="example",
    )


def plan_side(heading: str, plan: ExamplePlan) -> Html:
    """A plan, its responses and its answer under a heading."""
    verdict = tag("span", "right", class_="right") if plan.correct else tag("span", "wrong", class_="wrong")
    steps = (
        tag(
            "li",
            tag("b", step.worker),
            f" · {step.subtask} ",
            tag("span", _reads(step.reads, step.status), class_="soft"),
            tag("div", step.response, class_="response") if step.response else "",
        )
        for step in plan.steps
    )
    return tag(
        "div",
        tag("h3", heading),
        tag("ol", steps, class_="steps", start=0),
        tag("p", plan.error, class_="wrong") if plan.error else "",
        tag(
            "p",
            f"Answer: {'none' if plan.answer is None else plan.answer} · ",
            verdict,
            f" · ${plan.cost_usd:.6f}",
        ),
    )


def _reads(reads: Sequence[int], status: str) -> str:
    seen = f"sees {', '.join(map(str, reads))}" if reads else ""
    return " · ".join(part for part in (seen, "" if status == "done" else status) if part)
