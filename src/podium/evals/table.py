"""The table of a comparison: for a terminal and for Markdown. JSON is the comparison itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.evals.comparison import SIMULATED, Comparison, Row
from podium.evals.statistics import Interval

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADINGS = ("planner", "accuracy", "Conductor ahead by", "steps", "calls", "$ / 1000", "seconds")
"""Costs are dollars per thousand questions: a single one costs too little to read."""


def cells(shown: Row) -> tuple[str, ...]:
    """One row as text: a string for each of `HEADINGS`."""
    return (
        shown.label,
        f"{percent(shown.accuracy.mean)} {_within(shown.accuracy)}",
        "" if shown.difference is None else f"{_points(shown.difference.mean)} {_within(shown.difference)}",
        f"{shown.steps:.2f}",
        f"{shown.calls:.2f}",
        f"{shown.cost_usd * 1000:.3f}",
        f"{shown.latency_s:.1f}",
    )


def notes(comparison: Comparison) -> Iterator[str]:
    """The sentences below the table."""
    yield (
        f"{comparison.questions} held-out questions, seed {comparison.seed}. In brackets: 95 % intervals "
        "over questions; differences are paired, in points."
    )
    failures = sum(shown.failures for shown in comparison.rows)
    if failures:
        yield f"{failures} answers lack a step because a worker failed; they count as they are."
    for found in comparison.routing:
        if found.pairs:
            verdict = "above chance" if found.by_question else "within chance"
            yield (
                f"Worker and skill, {found.alignment} ({found.pairs} pairs): mutual information "
                f"{found.nats:.3f} nats; permuted workers {found.null_mean:.3f}, 95 % of them below "
                f"{found.null_high:.3f}: {verdict}."
            )
    rho = comparison.steps_by_hops
    yield (
        "Steps and hops: no rank correlation, since one of them does not vary."
        if rho is None
        else f"Steps and hops: rank correlation {rho.mean:.2f} [{rho.low:.2f}, {rho.high:.2f}]."
    )
    if comparison.simulated:
        yield SIMULATED


def markdown(comparison: Comparison) -> str:
    """The table and its notes."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1)), *map(cells, comparison.rows)]
    table = "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)
    return table + "\n\n" + "\n\n".join(notes(comparison)) + "\n"


def terminal(comparison: Comparison) -> RenderableType:
    """The table and its notes, for `rich`."""
    from rich.console import Group  # noqa: PLC0415 - only where something is drawn
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title="Simulated workers" if comparison.simulated else None, title_justify="left")
    for position, heading in enumerate(HEADINGS):
        table.add_column(
            heading,
            justify="right" if position else "left",
            no_wrap=position > 0,
            min_width=None if position else 20,
        )
    for shown in comparison.rows:
        style = {"conductor": "bold", "oracle": "dim"}.get(shown.kind)
        table.add_row(*(Text(cell) for cell in cells(shown)), style=style)
    return Group(table, *(Text(note, style="dim") for note in notes(comparison)))


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{share * 100:.1f} %"


def _points(difference: float) -> str:
    return f"{difference * 100:+.1f}"


def _within(interval: Interval) -> str:
    return f"[{interval.low * 100:.1f}, {interval.high * 100:.1f}]"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
