"""Who names two values, takes one back or leaves a list open has not answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import SetOf

UNSETTLED = (
    ('"11 seconds" or "95 minutes"', "95"),
    ("'11 seconds' or '95 minutes'", "95"),
    ("“11 seconds” or “95 minutes”", "11"),
    ("11 seconds - 95 minutes", "95"),
    ("11 seconds to 95 minutes", "95"),
    ("11 seconds | 95 minutes", "95"),
    ("11 seconds (or 95 minutes)", "95"),
    ("**5** or **6**", "6"),
    ("5 vs. 6", "6"),
    ("5 & 6", "6"),
    ("5? No.", "5"),
    ("Is it 5? No.", "5"),
    ('"11 seconds"\n"95 minutes"', "95"),
    ("5 No", "5"),
    ("Answer: 5 No.", "5"),
    ("5 kg No", "5"),
    ("5 (no)", "5"),
    ("5 (wrong)", "5"),
    ("5 False", "5"),
    ("5 not", "5"),
    ("5% nope.", "5"),
    ("11 seconds or\n95 minutes", "95"),
    ("11 seconds\nor\n95 minutes", "95"),
    ("11 seconds\nor 95 minutes", "95"),
    ("11 seconds\r\n95 minutes", "95"),
    ("11 seconds<br>95 minutes", "95"),
    ("11 seconds. Maybe 95 minutes.", "95"),
    ("11 seconds? 95 minutes", "95"),
    ("5 as well as 6", "6"),
    ("5 or else 6", "6"),
    ("5 kg versus 6", "6"),
    ("5?", "5"),
    ("5? Not sure.", "5"),
    ("5, no wait", "5"),
    ("5. Wrong.", "5"),
    ("5, which is wrong", "5"),
    ("The answer is 5. No, that is wrong.", "5"),
    ("Answer: 5\nNo, that is wrong.", "5"),
    ("Answer: 5. No, wait, 6", "5"),
    ("4=5", "5"),
    ("4 = 5", "4"),
    ("x = 4 = 5", "5"),
    ("4.5 = 5", "5"),
    ("not 4 = 5", "5"),
    ("more than 4 = 5", "5"),
    ("a total of 4 = 5", "5"),
    ("instead of 4 = 5", "5"),
    ('{"answer": 4, "answer": 5}', "5"),
    ('{"answer": "4", "other_answer": "5"}', "4"),
    ('{"answer1": 4, "answer2": 5}', "5"),
    ('[{"answer": 4}, {"answer": 5}]', "5"),
    ('{"answer": [4, 5]}', "5"),
    ("Answer: 5 or Answer: 6", "6"),
    ("<answer>5</answer> or <answer>6</answer>", "6"),
    ("<answer>5</answer>\n<answer>6</answer>", "6"),
    ("1, 2, ...", "1, 2"),
    ("1, 2, …", "1, 2"),
    ("\\boxed{1, 2, \\ldots}", "1, 2"),
    ("1, ..., 2", "1, 2"),
    ("1, 2, etc.", "1, 2"),
    ("1, 2 and so on", "1, 2"),
    ("1, 2, and others", "1, 2"),
)
SETTLED = (
    ("Is the answer 5? Yes, it is 5.", "5"),
    ("What is 2 + 3? It is 5.", "5"),
    ("5. No other value fits.", "5"),
    ("There are 1, 2, 3, ..., so 5 in all.", "5"),
    ("0.333333...", "1/3"),
    ("1.667 = 1.67", "1.67"),
    ("5 = 5.0", "5"),
    ("2 hours = 120 minutes", "120"),
    ("2 + 3 = 5", "5"),
    ("Half of the 10 = 5", "5"),
    ("The square root of 25 = 5", "5"),
    ("twice 5 = 10", "10"),
    ("Answer: 5. No, wait, 6", "6"),
    ("The answer is not 4, the answer is 5.", "5"),
    ('{"answer": "4"}\nI am sorry.\n{"answer": "5"}', "5"),
    ('{"answer": 5, "answer": 5}', "5"),
    ("<answer>4</answer> is wrong: <answer>5</answer>", "5"),
    ("1, 2, \\dots, n", "1, 2, \\ldots, n"),
    ("6 or -6", "\\pm 6"),
    ("1e-12", "10^{-12}"),
    ("2x-3", "-3+2x"),
    ("5, as nothing is wrong", "5"),
    ("5\n\n5", "5"),
    ("6 minus 1", "5"),
    ("Is it 4? No. It is 5.", "5"),
    ("4 of 9 are not even, so 5", "5"),
    ("I add 2 and 3.\n5", "5"),
    ("4 eggs\nAnswer: 5", "5"),
    ("5 no more", "5"),
)


@pytest.fixture(scope="module")
def graded() -> Iterator[Callable[[str, str], float]]:
    """Grades on one event loop, so that processes are started once."""
    grader = Math()
    with asyncio.Runner() as runner:
        yield lambda response, gold: runner.run(grader(response, gold)).score


@pytest.mark.parametrize(("response", "gold"), UNSETTLED)
def test_a_statement_that_does_not_settle_on_a_value_is_wrong(
    graded: Callable[[str, str], float], response: str, gold: str
) -> None:
    assert graded(response, gold) == 0


@pytest.mark.parametrize(("response", "gold"), SETTLED)
def test_a_statement_that_settles_on_its_value_is_right(
    graded: Callable[[str, str], float], response: str, gold: str
) -> None:
    assert graded(response, gold) == 1


@pytest.mark.parametrize(
    "response",
    [
        "1, 2, ...",
        "1, 2, …",
        "1, 2, \\ldots",
        "1, 2 ...",
        "1, ..., 2",
        "1, 2, etc.",
        '[1, 2, "..."]',
        "1, 2, ???",
        "1, 2, -",
        "1, 2?",
        "1, 2, and so on",
    ],
)
def test_an_open_list_is_not_the_set(response: str) -> None:
    assert SetOf().judge(response, "1, 2").score == 0
    assert SetOf().judge("2, 1,", "1, 2").score == 1


def test_an_open_list_is_no_gold_answer_of_a_set() -> None:
    assert SetOf().gold_problem("1, 2, ...") is not None


@pytest.mark.parametrize(
    "response",
    [
        "Answer: 4 = 5",
        "Answer: 5?",
        "Answer: 5 or 4",
        "Answer: x = 4 = 5",
        "5 No",
        "5 kg No",
        "4 kg\n5 kg",
        "4\nor 5",
    ],
)
def test_numeric_grader_rejects_a_hedged_number(response: str) -> None:
    assert Numeric().judge(response, "5").score == 0
