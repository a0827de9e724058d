"""Accuracy over cost: each method of a comparison as a point, and the front of those that nothing beats at their price.

An oracle is told verdicts, so it is no method that anybody could run: it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from podium.evals.charts import BOTTOM, LEFT, RIGHT, TOP, WIDTH, colour, nice_ticks
from podium.evals.comparison import Comparison, Row
from podium.evals.markup import Html, tag

_WIDTH, _HEIGHT = 3 * WIDTH, 320


def pareto_front(rows: Iterable[Row]) -> list[Row]:
    """Rows that are more accurate than every cheaper one, the cheapest first; of equals one."""
    front: list[Row] = []
    for shown in sorted(rows, key=lambda shown: (shown.cost_usd, -shown.accuracy.mean)):
        if shown.kind != "oracle" and (not front or shown.accuracy.mean > front[-1].accuracy.mean):
            front.append(shown)
    return front


def front_chart(comparison: Comparison) -> Html:
    """The points, dollars on a logarithmic axis, and the front as a line; what costs nothing, or no end, is not."""
    rows = [shown for shown in comparison.rows if shown.kind != "oracle" and 0 < shown.cost_usd < math.inf]
    if len(rows) < 2:
        return tag("p", "Too few methods that cost anything.", class_="none")
    kinds = list(dict.fromkeys(shown.kind for shown in comparison.rows))
    place = _Places(rows)
    line = pareto_front(rows)
    return tag(
        "svg",
        place.axes(),
        tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in map(place.of, line)), class_="mean"),
        (_dot(shown, place.of(shown), colour(kinds.index(shown.kind))) for shown in rows),
        (_name(shown, place.of(shown)) for shown in rows if shown in line or shown.kind == "conductor"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
    )


def _dot(shown: Row, at: tuple[float, float], fill: str) -> Html:
    said = f"{shown.label}: {shown.accuracy.mean:.1%} for ${1000 * shown.cost_usd:.3g} per 1,000 questions"
    radius = 7 if shown.kind == "conductor" else 4
    return tag("circle", tag("title", said), cx=f"{at[0]:.1f}", cy=f"{at[1]:.1f}", r=radius, fill=fill)


def _name(shown: Row, at: tuple[float, float]) -> Html:
    x, y = at
    anchor, beside = ("end", -9) if x > _WIDTH / 2 else ("start", 9)
    return tag("text", shown.label, x=f"{x + beside:.1f}", y=f"{y - 7:.1f}", text_anchor=anchor)


class _Places:
    """From dollars and accuracy to places in the drawing."""

    def __init__(self, rows: Sequence[Row]) -> None:
        costs = [math.log10(shown.cost_usd) for shown in rows]
        self._low, self._high = min(costs) - 0.05, max(costs) + 0.05
        means = [shown.accuracy.mean for shown in rows]
        self._ticks = nice_ticks(min(means), max(means))

    def of(self, shown: Row) -> tuple[float, float]:
        return self._x(math.log10(shown.cost_usd)), self._y(shown.accuracy.mean)

    def axes(self) -> Html:
        """Accuracies across, and below them 1, 2 and 5 times each power of ten, in dollars for 1,000 questions."""
        across = [
            (
                tag("line", x1=LEFT, x2=_WIDTH - RIGHT, y1=self._y(y), y2=self._y(y), class_="grid"),
                tag("text", f"{y:.0%}", x=LEFT - 6, y=self._y(y) + 4, text_anchor="end"),
            )
            for y in self._ticks
        ]
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        dollars = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        below = [
            tag("text", f"${1000 * x:g}", x=self._x(math.log10(x)), y=_HEIGHT - 8, text_anchor="middle")
            for x in dollars
            if self._low <= math.log10(x) <= self._high
        ]
        return tag("g", *across, below)

    def _x(self, power: float) -> float:
        return LEFT + (power - self._low) / (self._high - self._low) * (_WIDTH - LEFT - RIGHT)

    def _y(self, accuracy: float) -> float:
        low, high = self._ticks[0], self._ticks[-1]
        return _HEIGHT - BOTTOM - (accuracy - low) / (high - low) * (_HEIGHT - TOP - BOTTOM)
