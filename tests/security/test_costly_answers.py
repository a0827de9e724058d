"""Answers that would be dear to compare, a table that grows; what is counted is work, and not time."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable

import pytest

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code_grader import same_output, same_value
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.text_graders import Exact, Normalised, SetOf

LENGTH = 300_000
COSTLY = {
    "brackets": "[" * LENGTH,
    "braces in a tag": f"<answer>{'{' * LENGTH}</answer>",
    "quotes": "Answer: " + "'" * LENGTH,
    "lists": "[]," * (LENGTH // 3),
    "items": "a, " * (LENGTH // 3),
    "letters": "A\n" * (LENGTH // 3),
    "claims": "answer is " * (LENGTH // 10),
    "options": "A) " * (LENGTH // 3),
    "spaces": "Answer:" + " " * LENGTH,
}
GRADERS = (
    (Exact(), "Paris"),
    (Normalised(), "Paris"),
    (Normalised(answer="whole"), "Paris"),
    (SetOf(answer="whole"), "a, b"),
    (Numeric(answer="whole"), "5"),
    (Choice(), '{"letter": "B", "options": ["a", "b"]}'),
)
MOST_CALLS = LENGTH // 5
"""Calls of functions, Python's and C's; a call for each character would be five times as many."""


@pytest.mark.parametrize("name", COSTLY)
@pytest.mark.parametrize(("grader", "gold"), GRADERS, ids=lambda value: getattr(value, "kind", None))
def test_a_long_answer_is_wrong_at_little_work(grader: PureGrader, gold: str, name: str) -> None:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        grade = grader.judge(COSTLY[name], gold)
    finally:
        sys.setprofile(before)
    assert grade.score == 0
    assert calls < MOST_CALLS


EIGHT_MIB = 8 * 2**20
LONG: dict[str, Callable[[], bool]] = {
    # Each of these characters stands for eighteen: written out, a million of them are 36 MB.
    "choice": lambda: Choice().judge("\ufdfa" * 10**6, "B").score > 0,
    "a printed line": lambda: same_output("1 " * (EIGHT_MIB // 2), "1 2"),
    "printed lines": lambda: same_output("1\n" * (EIGHT_MIB // 2), "1\n2"),
    "a returned value": lambda: same_value(b'{"value": [' + b"1," * (EIGHT_MIB // 2) + b"1]}", [1, 2]),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_answer_is_wrong_before_it_is_divided_or_written_out(name: str) -> None:
    Choice().judge("B", "B")  # What is built once is not counted.
    tracemalloc.start()
    try:
        right = LONG[name]()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not right
    assert peak < 40 * 2**20
