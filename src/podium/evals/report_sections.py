"""Sections of a report: the curves of a training, and whether policies still write different plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from podium.evals.charts import colour, line_chart, share_chart
from podium.evals.comparison import RECORDED
from podium.evals.evaluation import Evaluation
from podium.evals.markup import SafeHtml, data_table, fragment, table_row, tag
from podium.rollout.collapse import (
    PlanFacts,
    PlanStructure,
    collapse_figures,
    collapse_warnings,
    first_and_last_means,
    question_kind,
)


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"


CURVES: tuple[tuple[str, str, Callable[[float], str], float | None], ...] = (
    ("reward", "Reward", "{:g}".format, None),
    ("accuracy", "Accuracy on training questions", _share, None),
    ("valid", "Valid plans", _share, None),
    ("steps", "Steps a question", "{:g}".format, 0.0),
    ("cost_usd", "Dollars per thousand questions", lambda usd: f"{1000 * usd:.3g}", 0.0),
    ("entropy", "Entropy of the policy, nats a token", "{:g}".format, 0.0),
    ("accuracy_readable", "Accuracy of plans that can be read", _share, None),
    ("first_worker_entropy", "Entropy of first workers, nats", "{:g}".format, 0.0),
    ("topology_entropy", "Entropy of topologies, nats", "{:g}".format, 0.0),
    ("plan_information", "Information of the question's kind in the plan, nats", "{:g}".format, 0.0),
    ("commonest_plan", "Share of the commonest workers and topology", _share, 0.0),
)
"""(metric, caption, function that formats a value, lower end of the axis). If the end is None, the axis begins at the
least value."""
COLLAPSE: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("valid", "plans that can be read", _share),
    ("accuracy", "right answers", _share),
    ("accuracy_readable", "right answers given a plan that can be read", _share),
    ("steps", "steps", "{:.2f}".format),
    ("steps_std", "standard deviation of steps", "{:.2f}".format),
    ("worker_entropy", "entropy of workers, nats", "{:.2f}".format),
    ("first_worker_entropy", "entropy of first workers, nats", "{:.2f}".format),
    ("topology_entropy", "entropy of topologies, nats", "{:.2f}".format),
    ("plan_information", "information of the question's kind in the plan, nats", "{:.2f}".format),
    ("commonest_plan", "share of the commonest workers and topology", _share),
)
"""(figure of `collapse_figures`, caption, function that formats a value)."""


def training_section(metrics: Sequence[Mapping[str, Any]]) -> SafeHtml:
    """The curves of a training, and where its replies came from.

    Args:
        metrics: a row of metrics for each iteration.
    """
    numbered = [(float(row.get("iteration", index)), row) for index, row in enumerate(metrics)]
    figures = []
    for key, caption, show, minimum in CURVES:
        points = [(x, float(row[key])) for x, row in numbered if isinstance(row.get(key), int | float)]
        if points:
            figures.append(
                tag("figure", tag("figcaption", caption), line_chart(points, show=show, minimum=minimum))
            )
    used = [(x, row["workers"]) for x, row in numbered if row.get("workers")]
    names = sorted({name for _, points in used for name in points})
    legend = (
        tag("li", tag("i", style=f"background:{colour(index)}"), name) for index, name in enumerate(names)
    )
    return fragment(
        tag("h2", f"Training: {len(metrics)} iterations"),
        tag("p", RECORDED, class_="caveat") if metrics[-1].get("recorded") else "",
        tag("p", "Faint: each iteration. Strong: the moving mean over a tenth of them.", class_="note"),
        tag("div", figures, class_="curves"),
        _collapse(metrics),
        (tag("h2", "Share of steps by worker"), tag("ul", legend, class_="legend"), share_chart(used, names))
        if used
        else "",
    )


def _collapse(metrics: Sequence[Mapping[str, Any]]) -> SafeHtml:
    start, now = first_and_last_means(metrics)
    lines = [
        table_row(caption, show(start[key]), show(now[key]))
        for key, caption, show in COLLAPSE
        if key in start and key in now
    ]
    if not lines:
        return SafeHtml("")
    signs = collapse_warnings(now, start) or ["No sign of collapse beside the start."]
    return fragment(
        tag("h2", "Collapse"),
        (tag("p", sign) for sign in signs),
        data_table(("figure", "first iterations", "last iterations"), lines),
    )


def collapse_section(
    evaluations: Mapping[str, Evaluation],
    *,
    start_of: Mapping[str, str] | None = None,
    untrained: Collection[str] = (),
) -> SafeHtml:
    """The figures of collapse of each planner whose plans a model writes, with warnings. A trained planner is compared
    with itself before training, and with models that were not trained.

    Args:
        start_of: maps the label of a trained planner to the label of its row before training.
        untrained: the labels of untrained Conductors.
    """
    if not evaluations:
        return SafeHtml("")
    start_of = start_of or {}
    figures = {label: collapse_figures(list(_plans(evaluation))) for label, evaluation in evaluations.items()}
    lines = (
        table_row(label, *(show(own[key]) for key, _, show in COLLAPSE)) for label, own in figures.items()
    )
    signs = _collapse_signs(figures, start_of, untrained)
    return fragment(
        tag("h3", "Collapse"),
        (tag("p", sign) for sign in dict.fromkeys(signs)),
        data_table(("planner", *(caption for _, caption, _ in COLLAPSE)), lines),
    )


def _collapse_signs(
    figures: Mapping[str, Mapping[str, float]], start_of: Mapping[str, str], untrained: Collection[str]
) -> Iterator[str]:
    for label, own in figures.items():
        if label in untrained or label in start_of.values():
            continue
        for other, before in ((start_of.get(label), "the start"), *zip(untrained, untrained, strict=True)):
            if other is not None and other in figures:
                for sign in collapse_warnings(own, figures[other], before=before):
                    yield f"{label}: {sign}"


def _plans(evaluation: Evaluation) -> Iterator[PlanFacts]:
    for rollout in evaluation.rollouts:
        trace = rollout.trace
        structure = PlanStructure.of(trace.rounds[0].workflow if trace.rounds else None, trace.pool)
        correct = None if rollout.grade.failure is not None else rollout.correct
        yield PlanFacts(question_kind(rollout.task), rollout.valid, correct, structure)
