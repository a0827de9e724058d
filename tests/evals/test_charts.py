"""Charts are well-formed, stay inside their frame, and leave out what is not a number."""

import math
import re
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from podium.evals.charts import (
    HEIGHT,
    WIDTH,
    line_chart,
    moving_mean,
    nice_ticks,
    share_chart,
    whisker,
)
from podium.evals.markup import SafeHtml, fragment, tag
from podium.evals.stats import Interval

FINITE = st.floats(-1e6, 1e6)
POINTS = st.lists(st.floats(allow_infinity=True, allow_nan=True, width=32), min_size=1, max_size=50).map(
    lambda values: [
        (float(x), y if abs(y) < 1e9 or not math.isfinite(y) else 0.0) for x, y in enumerate(values)
    ]
)


def places(svg: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    drawn = [*root.iter("polyline"), *root.iter("polygon")]
    texts = " ".join(element.attrib["points"] for element in drawn)
    return [(float(x), float(y)) for x, y in re.findall(r"([^ ,]+),([^ ,]+)", texts)]


@given(POINTS)
@example([(0.0, 7.9e-22), (1.0, 1.2e-38)])
def test_a_curve_stays_in_its_frame(points):
    drawn = places(line_chart(points, show=str))
    assert len(drawn) == 2 * sum(math.isfinite(y) for _, y in points)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in drawn)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(0, 10)), min_size=1, max_size=20))
def test_shares_fill_the_frame_and_no_more(rows):
    drawn = places(share_chart([(float(x), row) for x, row in enumerate(rows)], ["a", "b", "c"]))
    assert all(0 <= x <= 3 * WIDTH and 0 <= y <= HEIGHT for x, y in drawn)


@given(FINITE, FINITE)
@example(0.0, 5e-324)
@example(0.0, 0.0)
def test_ticks_are_few_round_and_enclose(first, second):
    low, high = sorted((first, second))
    ticks = nice_ticks(low, high)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert 2 <= len(ticks) <= 8
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert ticks == sorted(set(ticks))


def test_ticks_of_shares():
    assert nice_ticks(0.3, 0.9) == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(0.0, 0.0) == [0.0, 0.25, 0.5, 0.75, 1.0]


@given(st.lists(FINITE, min_size=1, max_size=200))
def test_a_moving_mean_stays_within_its_values(values):
    means = [y for _, y in moving_mean([(float(x), y) for x, y in enumerate(values)])]
    assert len(means) == len(values)
    assert min(values) - 1e-6 <= min(means)
    assert max(means) <= max(values) + 1e-6


def test_a_moving_mean_of_a_constant_is_that_constant():
    assert moving_mean([(float(x), 2.0) for x in range(100)])[37] == (37.0, 2.0)


def test_a_whisker_spans_its_interval():
    line = ElementTree.fromstring(whisker(Interval(mean=0.5, low=0.25, high=0.75), 0)).find("line")
    assert (line.attrib["x1"], line.attrib["x2"]) == ("25.0", "75.0")


def test_chart_without_values_shows_a_note():
    assert line_chart([(0.0, math.nan)], show=str) == '<p class="none">No values.</p>'


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_text_never_becomes_markup(text):
    element = ElementTree.fromstring(tag("p", text, [text], title=text, class_="x"))
    assert element.text in (text * 2, None if not text else text * 2)
    assert element.attrib == {"title": text, "class": "x"}
    assert len(element) == 0


def test_safe_html_is_not_escaped():
    assert fragment(tag("b", "1 < 2"), " & ", [SafeHtml("<hr>")]) == "<b>1 &lt; 2</b> &amp; <hr>"
