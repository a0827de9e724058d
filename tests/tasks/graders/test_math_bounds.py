"""No text makes the grader of mathematics fail or hang."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from podium.errors import GraderError
from podium.tasks.graders.math_graders import Math
from podium.tasks.task import Grade

QUICK = Math(limit_s=0.3)
Judge = Callable[[str, str], Grade]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Grades on one event loop, so that processes are started once."""
    with asyncio.Runner() as runner:
        yield lambda response, gold: runner.run(QUICK(response, gold))


HOSTILE = (
    "9^{9^{9^{9}}}",
    "1000000!",
    "(x + y + z)^{3000}",
    "\\binom{10^9}{10^8}",
    "{" * 18 + "1" + "}" * 18,
    "(" * 30_000,
    "\\frac{1}{" * 3000 + "2" + "}" * 3000,
    "\\sqrt{" * 19 + "2" + "}" * 19,
    "\\boxed{" * 5000,
    "9" * 100_000,
    "1," * 900 + "1",
    "\\int_0^1 e^{x^x} dx",
    "0/0",
)


def test_hostile_answers_are_wrong_in_bounded_time(judge: Judge) -> None:
    started = time.monotonic()
    for response in HOSTILE:
        assert judge(f"\\boxed{{{response}}}", "x^2 + 7").score == 0, response[:40]
    assert time.monotonic() - started < 120


def test_gold_answer_too_slow_to_compare_is_a_grader_failure(judge: Judge) -> None:
    endless = "{" * 18 + "1" + "}" * 18
    with pytest.raises(GraderError, match="cannot be compared"):
        judge("41 + x", endless)
