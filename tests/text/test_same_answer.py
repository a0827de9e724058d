"""Which answers are the same: classes of equal answers, and pairs that are not."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.executor.step_input import build_messages
from podium.tasks.graders.math_graders import Numeric
from podium.text.numerals import read_number
from podium.text.same_answer import answer_key
from podium.workers import Request, VoteWorker
from podium.workers.view import EarlierStep, WorkerView
from podium.workers.vote import winner_is_certain

SAME = (
    (
        "1,000",
        "1000",
        "1 000",
        "1\u00a0000",
        "1'000",
        "$1000.00",
        "1.000,00",
        "1{,}000",
        "1000 dollars",
        "\\$1{,}000",
        "１０００",
        "1e3",
        "= 1000",
        "USD 1,000",
        "1 000 €",
    ),
    ("1234567", "1,234,567", "1.234.567", "12,34,567", "1 234 567"),
    ("1234.5", "1,234.50", "1.234,50", "€1.234,5", "1 234,5", "1\\,234.5"),
    (
        "18",
        "18.0",
        "18.00",
        "x = 18",
        "3 * 6 = 18",
        "18 (eighteen)",
        "+18",
        "\\text{18}",
        "18\\text{ apples}",
    ),
    ("1/2", "0.5", ".5", "0,5", "$\\frac{1}{2}$", "\\dfrac12", "½", "2/4", "0.50"),
    ("3.5", "3 1/2", "3½", "3\\frac{1}{2}", "3,5 kg", "7/2", "3 ½ hours"),
    ("1/3", "0.(3)", "0.\\overline{3}", "0.\\dot{3}", "\\frac{1}{3}"),
    ("-3", "−3", "-3°C", "-3^\\circ", "- 3", "-3 degrees"),
    ("60", "60%", "60 \\%", "60 percent"),
    (
        "12",
        "12 km/h",
        "12 \\mathrm{~m/s}",
        "12 cm^2",
        "12\\text{ cm}^2",
        "12 km²",
        "12 m",
        "12kg",
        "12\\,\\Omega",
    ),
    ("3.2e7", "32000000", "3.2 \\times 10^7", "3.2 × 10^{7}", "3.2 x 10^7"),
    (
        "B",
        "b",
        "(B)",
        "B.",
        "[B]",
        "B) Lima",
        "(B) Lima",
        "B. Lima",
        "B: Lima",
        "B - Lima",
        "Option B",
        "Choice (B)",
        "\\text{B}",
        "$B$",
        "Ｂ",
        "B. the largest of them all",
    ),
    ("Paris", "paris.", "**Paris**", "`Paris`", "“Paris”", "Paris!", "the  PARIS", "Ｐａｒｉｓ"),
    ("São Tomé", "Sao Tome"),
    ("x + 1", "x+1", "$x+1$"),
    ("[1, 2)", "[1,2)", "$[1, 2)$"),
    ('{"x": 1, "y": ["Lima"]}', '{"y":["Lima"],"x":1}', '{\n  "y": ["lima"],\n  "x": 1\n}'),
)
DIFFERENT = (
    ("N - 2", "N - 1"),
    ("N - 2", "N"),
    ("(x) + 1", "(x) - 1"),
    ("(n) = 3", "(n) = 4"),
    ("**63** apples", "**64** apples"),
    ("1.234", "1,234"),
    ("5!", "5"),
    ("-x", "x"),
    ("3 PM", "3 AM"),
    ("3 PM", "3"),
    ("5 May", "5 June"),
    ("44 BC", "44 AD"),
    ("3 dozen", "3"),
    ("2.5 million", "2.5"),
    ("12:30", "12"),
    ("3 or 4", "3"),
    ("1, 2", "12"),
    ("100, 200", "100200"),
    ("(1, 2]", "[1, 2)"),
    ("10²", "102"),
    ("10⁴", "104"),
    ("10^4", "104"),
    ("x^2", "x2"),
    ("CO₂", "CO^2"),
    ("3-4", "-1"),
    ("E. coli", "E. faecalis"),
    ("J. R. R. Tolkien", "J. K. Rowling"),
    ("A, C", "A"),
    ("B or C", "B"),
    ("A. Lima, C. Rome", "A"),
    ("B) Lima or C) Rome", "B"),
    ("C#", "C"),
    ("C++", "C"),
    ("4 of hearts", "4 of spades"),
    ("not 5", "5"),
    ("0.333", "1/3"),
    ("2x", "2"),
    ("5 squared", "5"),
    ("2, 1", "1, 2"),
    ("yes", "no"),
    ('{"x": 1}', '{"x": 2}'),
    ("[1, 2]", "[2, 1]"),
)


@pytest.mark.parametrize("answers", SAME, ids=lambda answers: answers[0])
def test_forms_of_one_answer_have_one_key(answers: tuple[str, ...]) -> None:
    assert {answer: answer_key(answer) for answer in answers} == dict.fromkeys(
        answers, answer_key(answers[0])
    )


def test_different_answers_have_different_keys() -> None:
    keys = [answer_key(answers[0]) for answers in SAME]
    assert len(set(keys)) == len(keys)
    assert [pair for pair in DIFFERENT if answer_key(pair[0]) == answer_key(pair[1])] == []


@given(answer=st.text(max_size=60))
def test_any_answer_has_a_key_of_one_line(answer: str) -> None:
    assert "\n" not in answer_key(answer)
    assert answer_key(f" {answer} ") == answer_key(answer)


@given(value=st.fractions(max_denominator=10**6))
def test_a_fraction_is_read_as_it_is_written(value: Fraction) -> None:
    assert read_number(str(value)) == value


@given(value=st.decimals(-(10**12), 10**12, places=3))
def test_vote_and_numeric_grader_agree_on_equal_numbers(value: object) -> None:
    for form in (f"{value:,}", f"{value:,}".replace(",", " "), f"${value}", f"{value} km", f"x = {value}"):
        assert answer_key(form) == answer_key(str(value)), form
        assert Numeric().judge(f"Answer: {form}", str(value)).correct, form


def test_a_long_answer_has_its_key_in_bounded_time() -> None:
    started = time.process_time()
    for piece in ("9", "1,", "\\frac", "$", " ", "a", "A) ", "\u0301", "(", "1 ", "-", "ﷺ", "1/"):
        for length in (190, 990, 10_000):
            answer_key(piece * (length // len(piece)))
            answer_key("1" + piece * (length // len(piece)) + "x")
    assert time.process_time() - started < 5


def _vote(*answers: str, weights: str = "") -> Request:
    earlier = tuple(EarlierStep(i, f"part {i}", f"Answer: {answer}") for i, answer in enumerate(answers))
    shown = WorkerView("What?", f"Vote{weights}.", earlier, None)
    return Request(build_messages(shown, "packed", "0f"), seed="0")


@pytest.mark.parametrize(
    ("answers", "weights", "said"),
    [
        (("7", "1,000", "7", "1000", "1000"), "", "3 of 5 responses agree.\nAnswer: 1000"),
        (("B) Lima", "C", "B", "C) Rome", "(B)"), "", "3 of 5 responses agree.\nAnswer: B) Lima"),
        (("1/2", "0.3", "0.5"), " with the weights 1, 3, 1", "1 of 3 responses agree.\nAnswer: 0.3"),
        (("1/2", "0.3", "0.5"), " with the weights 1, 3, 2.5", "2 of 3 responses agree.\nAnswer: 0.5"),
    ],
)
async def test_the_vote_answers_in_the_form_that_most_wrote(
    answers: tuple[str, ...], weights: str, said: str
) -> None:
    assert (await VoteWorker().answer(_vote(*answers, weights=weights))).text == said


def test_a_vote_is_certain_across_forms_of_one_answer() -> None:
    for one, other in combinations(SAME[0], 2):
        assert winner_is_certain("Vote.", [f"Answer: {one}", f"Answer: {other}", None])
    assert not winner_is_certain("Vote.", ["Answer: 1.234", "Answer: 1,234", None])
