"""Numbers: what counts as one, how close is close, and that several are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.tasks.graders.numeric import Numeric

RIGHT = [
    ("7", "Answer: 7"),
    ("7", "Answer: 7."),
    ("7", "Answer: **7**"),
    ("7", 'Answer: "7"'),
    ("7", '{\n  "reasoning": "3 + 4",\n  "answer": "7",\n}'),
    ("7", "<answer>7</answer>"),
    ("7", "So it is \\boxed{7}"),
    ("7", "Answer: 7.0"),
    ("7", "Answer: $7"),
    ("7", "Answer: \\$7.00"),
    ("7", "Answer: 7 %"),
    ("7", "Answer: 7\\%"),
    ("7", "Answer: 7 pages a day"),
    ("7", "Answer: 7 km/h"),
    ("7", "Answer: 3 + 4 = 7"),
    ("7", "Answer: x = 7"),
    ("-7", "Answer: -7"),
    ("-7", "Answer: \N{MINUS SIGN}7"),
    ("-7", "Answer: -$7"),
    ("1234.5", "Answer: 1,234.5"),
    ("1234567", "Answer: 1 234 567"),
    ("0.5", "Answer: .5"),
    ("30000", "Answer: 3e4"),
    ("1,200", "Answer: 1200"),
]
WRONG = [
    ("7", ""),
    ("7", "Answer:"),
    ("7", "Answer: seven"),
    ("7", "Answer: -7"),
    ("7", "Answer: 7 or 8"),
    ("8", "Answer: 7 or 8"),
    ("8", "Answer: 7, 8"),
    ("8", "Answer: x = 7 or x = 8"),
    ("8", "Answer: x = 7, x = 8"),
    ("7", "Answer: 7 dozen"),
    ("7", "Answer: 7 million"),
    ("7", "Answer: 7 and a half"),
    ("7", "Answer: 7x"),
    ("7", "Answer: 7 plus x"),
    ("7", "Answer: about 7"),
    ("7", "Answer: 7/1"),
    ("7", "Answer: 7e9999"),
    ("7", "It is 7.\nAnswer: 8"),
]


@pytest.mark.parametrize(("gold", "response"), RIGHT)
def test_a_number_is_right_however_it_is_dressed(gold: str, response: str) -> None:
    assert Numeric().judge(response, gold).score == 1


@pytest.mark.parametrize(("gold", "response"), WRONG)
def test_what_is_no_number_or_another_one_is_wrong(gold: str, response: str) -> None:
    assert Numeric().judge(response, gold).score == 0


def test_the_larger_tolerance_holds() -> None:
    assert Numeric(absolute=0.5).judge("Answer: 10.4", "10").correct
    assert not Numeric(absolute=0.5).judge("Answer: 10.6", "10").correct
    assert Numeric(absolute=0.5, relative=0.1).judge("Answer: 10.9", "10").correct
    assert not Numeric().judge("Answer: 10.0001", "10").correct


@pytest.mark.parametrize("gold", ["ten", "", "3 or 4", "1e9999"])
def test_a_gold_answer_that_is_no_number_is_refused(gold: str) -> None:
    assert Numeric().complaint(gold) is not None


@given(number=st.decimals(-(10**12), 10**12, places=3))
def test_a_number_is_right_against_itself(number: object) -> None:
    assert Numeric().judge(f"Answer: {number}", str(number)).correct
