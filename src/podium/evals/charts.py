"""Charts as inline SVG: curves and shares over iterations, confidence intervals, accuracy over cost.

Values that are not finite are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium.evals.comparison import PlannerKind
from podium.evals.markup import SafeHtml, tag
from podium.evals.stats import Interval

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 26
"""Margins for the labels of the axes."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442")
"""The colours of Okabe and Ito, which colour-blind readers can distinguish. A ninth worker gets the first colour
again."""

Point = tuple[float, float]


def colour(position: int) -> str:
    return COLOURS[position % len(COLOURS)]


def line_chart(
    points: Sequence[Point], *, show: Callable[[float], str], minimum: float | None = None
) -> SafeHtml:
    """A metric over iterations: its values as a faint line, and their moving mean.

    Args:
        points: (iteration, value), in order.
        show: formats a value for the axis.
        minimum: the lower end of the axis. Default: the least value.
    """
    points = [point for point in points if math.isfinite(point[1])]
    if not points:
        return tag("p", "No values.", class_="none")
    values = [value for _, value in points]
    ticks = nice_ticks(min(values) if minimum is None else minimum, max(values))
    scale = _Scale((points[0][0], points[-1][0]), (ticks[0], ticks[-1]), WIDTH)
    return scale.drawing(
        scale.axes(ticks, show),
        scale.line(points, class_="raw"),
        scale.line(moving_mean(points), class_="mean"),
    )


def share_chart(points: Sequence[tuple[float, Mapping[str, float]]], names: Sequence[str]) -> SafeHtml:
    """Shares of a whole over iterations, stacked in the order of `names`, the first at the bottom."""
    if not points:
        return tag("p", "No values.", class_="none")
    scale = _Scale((points[0][0], points[-1][0]), (0.0, 1.0), 3 * WIDTH)
    below = [0.0] * len(points)
    areas = []
    for position, name in enumerate(names):
        parts = [counts.get(name, 0.0) / (sum(counts.values()) or 1.0) for _, counts in points]
        above = [low + part for low, part in zip(below, parts, strict=True)]
        upper = [scale.at(x, y) for (x, _), y in zip(points, above, strict=True)]
        lower = [scale.at(x, y) for (x, _), y in zip(points, below, strict=True)]
        outline = " ".join((*upper, *reversed(lower)))
        areas.append(tag("polygon", tag("title", name), points=outline, fill=colour(position)))
        below = above
    return scale.drawing(areas, scale.axes([0.0, 0.25, 0.5, 0.75, 1.0], lambda share: f"{share:.0%}"))


def whisker(interval: Interval, position: int) -> SafeHtml:
    """A bar for a share, with its confidence interval as a line across the bar's end."""
    end, low, high = (round(100 * value, 2) for value in (interval.mean, interval.low, interval.high))
    return tag(
        "svg",
        tag("rect", x=0, y=3, width=end, height=8, rx=1, fill=colour(position), opacity=0.75),
        tag("line", x1=low, x2=high, y1=7, y2=7, class_="whisker"),
        viewBox="0 0 100 14",
        class_="bar",
        preserveAspectRatio="none",
        role="img",
    )


def moving_mean(points: Sequence[Point]) -> list[Point]:
    """For each point, the mean of its value and its neighbours' values. The neighbours on each side are a twentieth of
    all points, and fewer at the ends."""
    reach = len(points) // 20
    values = [value for _, value in points]
    means = []
    for position, (x, _) in enumerate(points):
        near = values[max(0, position - reach) : position + reach + 1]
        means.append((x, sum(near) / len(near)))
    return means


def nice_ticks(low: float, high: float) -> list[float]:
    """About five to eight round numbers, of which the first is at most `low` and the last at least `high`."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):  # equal, but for rounding
        size = max(abs(low), abs(high))
        high = low + (size if size > 1e-30 else 1.0)
    rough = (high - low) / 4
    unit: float = 10 ** math.floor(math.log10(rough))
    step = unit * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(factor * unit - rough))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [float(f"{step * count:.12g}") for count in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class _Scale:
    xs: Point
    """The values at the left and at the right end."""
    ys: Point
    """The values at the bottom and at the top."""
    width: int
    height: int = HEIGHT

    def x(self, x: float) -> float:
        first, last = self.xs
        return LEFT + (x - first) / ((last - first) or 1) * (self.width - LEFT - RIGHT)

    def y(self, y: float) -> float:
        first, last = self.ys
        return self.height - BOTTOM - (y - first) / ((last - first) or 1) * (self.height - TOP - BOTTOM)

    def at(self, x: float, y: float) -> str:
        return f"{self.x(x):.1f},{self.y(y):.1f}"

    def drawing(self, *parts: SafeHtml | Iterable[SafeHtml]) -> SafeHtml:
        return tag("svg", *parts, viewBox=f"0 0 {self.width} {self.height}", role="img")

    def line(self, points: Iterable[Point], *, class_: str) -> SafeHtml:
        return tag("polyline", points=" ".join(self.at(x, y) for x, y in points), class_=class_)

    def axes(
        self, ticks: Sequence[float], show: Callable[[float], str], below: Mapping[float, str] | None = None
    ) -> SafeHtml:
        """Horizontal grid lines with their values, and texts below. Default: the first and the last number."""
        across = [
            (
                tag("line", x1=LEFT, x2=self.width - RIGHT, y1=self.y(y), y2=self.y(y), class_="grid"),
                tag("text", show(y), x=LEFT - 6, y=self.y(y) + 4, text_anchor="end"),
            )
            for y in ticks
        ]
        first, last = self.xs
        ends = {first: "start", last: "end"} if below is None else {}
        texts = {x: f"{x:g}" for x in ends} if below is None else below
        under = (
            tag("text", text, x=self.x(x), y=self.height - 8, text_anchor=ends.get(x, "middle"))
            for x, text in texts.items()
        )
        return tag("g", *across, under)


_WIDE, _TALL = 3 * WIDTH, 320


class CostRow(Protocol):
    """A row with an accuracy and a price, of a comparison or of a study."""

    @property
    def kind(self) -> PlannerKind: ...
    @property
    def label(self) -> str: ...
    @property
    def accuracy(self) -> Interval: ...
    @property
    def cost_usd(self) -> float: ...


def pareto_front(rows: Iterable[CostRow]) -> list[CostRow]:
    """The rows that are more accurate than every cheaper row, cheapest first. Of equal rows there is one. The oracle is
    left out."""
    front: list[CostRow] = []
    for row in sorted(rows, key=lambda row: (row.cost_usd, -row.accuracy.mean)):
        if row.kind != "oracle" and (not front or row.accuracy.mean > front[-1].accuracy.mean):
            front.append(row)
    return front


def pareto_chart(all_rows: Sequence[CostRow]) -> SafeHtml:
    """Accuracy over dollars (logarithmic), with a point for each row and the Pareto front as a line.

    Rows that cost nothing stand left of the scale. The oracle is left out, as are rows whose cost is infinite.
    """
    rows = [row for row in all_rows if row.kind != "oracle" and row.cost_usd < math.inf]
    powers = [math.log10(row.cost_usd) for row in rows if row.cost_usd > 0]
    if len(rows) < 2 or not powers:
        return tag("p", "Too few methods that cost anything.", class_="none")
    kinds = list(dict.fromkeys(row.kind for row in all_rows))
    low, high = min(powers) - 0.05, max(powers) + 0.05
    free = low - 0.08 * (high - low)
    start = low if len(powers) == len(rows) else 2 * free - low
    means = [row.accuracy.mean for row in rows]
    ticks = nice_ticks(min(means), max(means))
    scale = _Scale((start, high), (ticks[0], ticks[-1]), _WIDE, _TALL)
    whole = range(math.floor(low), math.ceil(high) + 1)
    dollars = [factor * 10.0**power for power in whole for factor in (1, 2, 5)]
    below = {math.log10(x): f"${1000 * x:g}" for x in dollars if low <= math.log10(x) <= high}
    if start < low:
        below[free] = "$0"

    def point(row: CostRow) -> Point:
        return math.log10(row.cost_usd) if row.cost_usd > 0 else free, row.accuracy.mean

    line = pareto_front(rows)
    dots = [(row, scale.x(point(row)[0]), scale.y(point(row)[1])) for row in rows]
    return scale.drawing(
        scale.axes(ticks, lambda share: f"{share:.0%}", below),
        scale.line(map(point, line), class_="mean"),
        (_dot(row, x, y, colour(kinds.index(row.kind))) for row, x, y in dots),
        (_name(row, x, y) for row, x, y in dots if row in line or row.kind == "conductor"),
    )


def _dot(row: CostRow, x: float, y: float, fill: str) -> SafeHtml:
    caption = f"{row.label}: {row.accuracy.mean:.1%} for ${1000 * row.cost_usd:.3g} per 1,000 questions"
    radius = 7 if row.kind == "conductor" else 4
    return tag("circle", tag("title", caption), cx=f"{x:.1f}", cy=f"{y:.1f}", r=radius, fill=fill)


def _name(row: CostRow, x: float, y: float) -> SafeHtml:
    anchor, offset = ("end", -9) if x > _WIDE / 2 else ("start", 9)
    return tag("text", row.label, x=f"{x + offset:.1f}", y=f"{y - 7:.1f}", text_anchor=anchor)
