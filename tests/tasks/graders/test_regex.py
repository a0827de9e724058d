"""Answers of a form: all of the answer matches, and no pattern hangs."""

import pytest

from podium.errors import GraderError
from podium.tasks.graders.regex import Regex, matches

DATE = r"\d{4}-\d\d-\d\d"


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ("Answer: 2024-01-02", DATE, 1),
        ("It was then.\n<answer>2024-01-02</answer>", DATE, 1),
        ("Answer: on 2024-01-02", DATE, 0),
        ("Answer: 2024-01-02, 2025-01-02", DATE, 0),
        ("2024-01-02\nAnswer: never", DATE, 0),
        ("", DATE, 0),
        ("Answer: PARIS", "paris", 0),
        ("Answer: PARIS", "(?i)paris", 1),
        ("Answer: a", "a|b", 1),
        ("Answer: a or b", "a|b", 0),
    ],
)
async def test_the_pattern_matches_all_of_the_answer_or_nothing(
    response: str, gold: str, score: float
) -> None:
    assert (await Regex()(response, gold)).score == score


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("", "empty"),
        ("(", "no pattern"),
        ("a{2,1}", "no pattern"),
        (r"\p{Foo}", "no pattern"),
        ("(" * 480 + ")" * 480, "no pattern"),
        ("a" * 1001, "1001 characters"),
        (".*", "matches anything"),
        (r"[\s\S]+", "matches anything"),
    ],
)
async def test_a_pattern_that_cannot_be_used_is_refused(gold: str, reason: str) -> None:
    assert reason in str(Regex().complaint(gold))


@pytest.mark.parametrize("gold", ["a", DATE, "(?i)x", "[^0-9]+"])
def test_other_patterns_are_not(gold: str) -> None:
    assert Regex().complaint(gold) is None


async def test_a_pattern_that_takes_too_long_is_the_graders_failure_and_not_a_wrong_answer() -> None:
    slow = r"(?:a|aa)+(?:a|aa)+(?:a|aa)+$b"
    with pytest.raises(GraderError, match=r"takes more than 1 s"):
        await Regex()("Answer: " + "a" * 3000, slow)
    assert (await Regex()("Answer: b", slow)).score == 0


def test_a_search_is_content_with_a_part() -> None:
    assert matches("b", "abc", whole=False)
    assert not matches("b", "abc")


def test_a_gold_answer_that_is_no_pattern_is_the_graders_failure() -> None:
    with pytest.raises(GraderError, match="is no pattern"):
        matches("(", "a")
