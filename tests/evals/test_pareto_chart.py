"""The front: who is beaten at a lower price is not on it, and the drawing shows every point."""

from __future__ import annotations

import re

from podium.evals.charts import pareto_chart, pareto_front
from podium.evals.comparison import ComparisonRow, PlannerKind
from podium.evals.stats import Interval


def shown(label: str, accuracy: float, cost: float, kind: PlannerKind = "single") -> ComparisonRow:
    return ComparisonRow(
        kind=kind,
        label=label,
        accuracy=Interval(mean=accuracy, low=accuracy, high=accuracy),
        steps=1,
        calls=1,
        cost_usd=cost,
        latency_s=0,
        validity=1,
        failures=0,
    )


ROWS = (
    shown("dear", 0.8, 0.03),
    shown("cheap", 0.5, 0.001),
    shown("beaten", 0.45, 0.01),
    shown("as good and dearer", 0.8, 0.05),
    shown("conducted", 0.7, 0.004, "conductor"),
    shown("oracle", 0.99, 0.001, "oracle"),
)


def test_the_front_leaves_out_whatever_is_beaten_at_a_lower_price() -> None:
    assert [row.label for row in pareto_front(ROWS)] == ["cheap", "conducted", "dear"]


def test_pareto_front_keeps_the_better_of_two_methods_at_one_price() -> None:
    assert pareto_front([shown("worse", 0.5, 0.01), shown("better", 0.6, 0.01)])[0].label == "better"


def test_the_drawing_has_a_point_for_each_method_that_can_be_run() -> None:
    drawn = str(pareto_chart(ROWS))
    assert drawn.count("<circle") == len(ROWS) - 1
    assert "oracle" not in drawn
    assert drawn.count(",") >= 3


def test_higher_is_better_and_further_right_is_dearer() -> None:
    drawn = str(pareto_chart(ROWS))
    line = drawn.split('points="')[1].split('"', maxsplit=1)[0]
    places = [tuple(map(float, point.split(","))) for point in line.split()]
    assert places == sorted(places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)


def test_a_free_method_stands_left_of_the_others_and_on_the_front() -> None:
    drawn = str(pareto_chart((*ROWS, shown("free", 0.75, 0.0))))
    across = {name: float(x) for x, name in re.findall(r'cx="([\d.]+)".*?<title>(.*?):', drawn)}
    assert min(across, key=across.__getitem__) == "free"
    (line,) = re.findall(r'points="(.*?)"', drawn)
    assert [float(point.split(",")[0]) for point in line.split()] == [across["free"], across["dear"]]
    assert ">$0<" in drawn


def test_pareto_chart_of_free_methods_is_replaced_by_a_note() -> None:
    assert "Too few" in str(pareto_chart((shown("free", 0.5, 0.0), shown("also", 0.4, 0.0))))
