"""Parts of a run's report: the page around it, the curves of a training from `metrics.jsonl`, and a plan.

`podium.evals.suite.page` puts the page together. Nothing here computes figures of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from podium import __version__
from podium.evals.charts import Html, colour, curve, fragment, shares, tag
from podium.evals.comparison import RECORDED, ExamplePlan

REPORT = "report.html"
"""The name of the page in a run's folder."""


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
    """Where replies were from, by the last row of the metrics."""
    return (RECORDED,) * bool(last.get("recorded", False))


def training_section(metrics: Metrics) -> Html:
    """The curves of a training, and where its replies were from."""
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
        tag("h2", f"Training: {len(metrics)} iterations"),
        (tag("p", caveat, class_="simulated") for caveat in _caveats(metrics[-1])),
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
