"""Fuzzing of what reads texts of others: the parser of plans, the reader of JSON bodies, and the graders.

Some seconds in all, and an hour where PODIUM_NIGHTLY is set (`make nightly`). Every run has a new seed, and tries the
inputs of `fuzzing_seeds` first. What fails is printed, and kept in `.hypothesis` until it passes: add it to the seeds.
"""

from __future__ import annotations

import asyncio
import json
import os
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzing_seeds import ANSWERS, BODIES, PLANS, first
from plan_texts import plan_like
from podium.errors import GraderError
from podium.sandbox.inside.packing import pack
from podium.server.body_limits import JsonShape
from podium.tasks.graders.base import GraderSettings, PureGrader
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code_grader import same_output, same_value
from podium.tasks.graders.json_grader import Json
from podium.tasks.graders.latex import expression
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf
from podium.workflow import Acceptance, PlanError, PlanRules, Workflow, parse, render

TIMES = 60 if os.environ.get("PODIUM_NIGHTLY") else 1 / 12


def fuzz(examples: int) -> settings:
    """Settings for a test of a twelfth of so many examples, and of sixty times as many at night."""
    return settings(
        max_examples=int(examples * TIMES),
        deadline=None,
        derandomize=False,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


WITHOUT_SPACES = r"""
\boxed{ } { <answer> </answer> #### $ ** ``` \frac \text{ \begin{ ( ) [ ] 1 2 .5 - + = , ^ % / A B (C) x ≠ é ﷺ
" ' ` \ million answer : [[ e9 ₁
"""
WITH_SPACES = (
    'Answer: |answer is |final answer |not |half of | squared|negative | or | and |maybe |the |{"answer": '
)
ANSWER_PIECES = (
    *WITHOUT_SPACES.split(),
    *WITH_SPACES.split("|"),
    *(" ", "\n", "\u0338", "\ud800", "\x00", "\u2028"),
)
answers = st.lists(st.sampled_from(ANSWER_PIECES) | st.text(max_size=3), max_size=40).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@first("text", PLANS, later_round=False)
@first("text", PLANS, later_round=True)
@given(text=plan_like, later_round=st.booleans())
@fuzz(2000)
def test_any_text_is_a_plan_or_an_error_with_a_place(text: str, later_round: bool) -> None:
    plan = parse(text, PlanRules(workers=3, later_round=later_round))
    assert isinstance(plan, Workflow | Acceptance | PlanError)
    if isinstance(plan, Workflow):
        assert parse(render(plan), PlanRules(workers=3, later_round=later_round)) == plan


def containers(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [found for one in inner for found in containers(one)]
    return [value, *below] if isinstance(value, dict | list) else below


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def measured(pieces: list[bytes]) -> tuple[int, int, bool]:
    shape = JsonShape()
    for piece in pieces:
        shape.feed(piece)
    return shape.deepest, shape.values, shape.may_be_json


def cut(body: bytes, offsets: list[int]) -> list[bytes]:
    """The body, cut at these offsets."""
    ends = sorted(min(offset, len(body)) for offset in offsets)
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


@given(value=values, ascii_only=st.booleans(), offsets=st.lists(st.integers(0, 300), max_size=6))
@fuzz(1500)
def test_json_body_has_the_same_depth_and_values_however_split(
    value: Any, ascii_only: bool, offsets: list[int]
) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    counted = sum(max(1, len(one)) for one in containers(value))
    assert measured(cut(body, offsets)) == (depth(value), counted, True)


@first("body", BODIES)
@given(body=st.binary(max_size=200) | answers.map(lambda text: text.encode("utf-8", "surrogatepass")))
@fuzz(1500)
def test_any_bytes_are_measured(body: bytes) -> None:
    deepest, counted, _ = measured([body])
    assert 0 <= deepest <= len(body)
    assert 0 <= counted <= len(body)


OPTIONS = '{"letter": "B", "options": ["1", "x", "2 or x"]}'
PURE = (
    (Exact(), "x"),
    (Normalised(), "x"),
    (Normalised(), "≠"),
    (SetOf(), "1, x"),
    (Numeric(), "2"),
    (Choice(), "B"),
    (Choice(), OPTIONS),
)


@pytest.mark.parametrize(("grader", "gold"), PURE, ids=lambda value: getattr(value, "kind", None))
@first("response", ANSWERS, outer=" ")
@given(response=answers, outer=st.text(" \t\n", max_size=3))
@fuzz(600)
def test_grade_of_any_response_ignores_surrounding_text(
    grader: PureGrader, gold: str, response: str, outer: str
) -> None:
    grade = grader.judge(response, gold)
    assert grade.score in (0, 1)
    assert grader.judge(outer + response + outer, gold) == grade
    assert grader.judge(f"{response}\n\nAnswer: neither of them, I fear", gold).score == 0


@pytest.mark.parametrize("grader", [Regex(), Json(), Math()], ids=lambda grader: grader.kind)
@first("gold", ANSWERS)
@given(gold=answers)
@fuzz(400)
def test_any_gold_answer_is_refused_in_words_or_taken(grader: GraderSettings, gold: str) -> None:
    problem = grader.gold_problem(gold)
    assert problem is None or problem.strip()


@given(response=answers, gold=st.sampled_from(["x+", "(a|b)*", "[^x]+", "1{2,3}"]))
@fuzz(200)
def test_any_response_matches_a_pattern_or_does_not(response: str, gold: str) -> None:
    assert asyncio.run(Regex()(response, gold)).score in (0, 1)


@given(value=values)
@fuzz(600)
def test_a_json_value_equals_itself_and_no_other(value: Any) -> None:
    gold = json.dumps(value)
    if Json().gold_problem(gold) is None:
        assert asyncio.run(Json()(gold, gold)).score == 1
        assert asyncio.run(Json()(json.dumps([value]), gold)).score == 0


@first("statement", ANSWERS)
@given(statement=answers)
@fuzz(1500)
def test_expression_is_found_or_absent_in_any_statement(statement: str) -> None:
    found = expression(statement)
    assert found is None or found.text.strip()


CHANGING = (
    "not {}",
    "half of {}",
    "twice {}",
    "the root of {}",
    "{} tenths",
    "3 out of {}",
    "more than {}",
    "{} to 7",
)


@given(
    number=st.integers(0, 10**9), form=st.sampled_from(CHANGING), unit=st.sampled_from(["", " apples", " km"])
)
@fuzz(600)
def test_number_is_not_read_without_the_word_that_changes_its_value(
    number: int, form: str, unit: str
) -> None:
    found = expression(form.format(number) + unit)
    assert found is None or found.text != str(number)


def same_slowly(printed: str, wanted: str) -> bool:
    """As LiveCodeBench compares: everything is divided and read."""
    given, right = ([line.strip() for line in text.strip().split("\n")] for text in (printed, wanted))
    return len(given) == len(right) and all(map(same_line_slowly, given, right))


def same_line_slowly(given: str, right: str) -> bool:
    try:
        return given == right or [*map(Decimal, given.split())] == [*map(Decimal, right.split())]
    except InvalidOperation:
        return False


outputs = st.lists(
    st.sampled_from(["1", "1.0", "01", "1e0", "2", "x", " ", "\n", "-", "nan", "é"]), max_size=12
).map("".join)


@given(printed=outputs, wanted=outputs)
@fuzz(2000)
def test_output_comparison_equals_a_full_comparison(printed: str, wanted: str) -> None:
    assert same_output(printed, wanted) == same_slowly(printed, wanted)


@given(value=values)
@fuzz(600)
def test_a_returned_value_equals_itself(value: Any) -> None:
    reply = json.dumps({"value": pack(value)}).encode()
    assert same_value(reply, value)
    assert not same_value(reply, [value])


@given(
    reply=st.binary(max_size=100)
    | answers.map(lambda text: f'{{"value": {text}}}'.encode("utf-8", "replace"))
)
@fuzz(600)
def test_any_reply_of_a_program_is_compared(reply: bytes) -> None:
    assert same_value(reply, 7) in (True, False)


def test_pattern_with_huge_repeats_is_refused_without_compiling() -> None:
    for pattern in ("a{1000000000}", "(a{1000}){1000}", "((a{99}){99}){99}", "x" * 900 + "{1000}"):
        assert "repeats too often" in str(Regex().gold_problem(pattern))
        with pytest.raises(GraderError, match="repeats too often"):
            asyncio.run(Regex()("a", pattern))
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    assert Regex().gold_problem(uuid) is None
