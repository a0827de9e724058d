"""Lists whose order does not count: all of them, and nothing else."""

import pytest

from podium.tasks.graders.set import SetOf


@pytest.mark.parametrize(
    "response",
    [
        "3, 1, 2",
        "Answer: 1,2,3",
        "{3, 1, 2}",
        "[3, 1, 2]",
        "(1, 2, 3).",
        "\\{1, 2, 3\\}",
        "$\\{1, 2, 3\\}$",
        "1, 2 and 3",
        "1, 2, and 3",
        "1.0, 2, 3e0",
        "1, 1, 2, 3",
        "<answer>\n- 1\n- 2\n- 3\n</answer>",
        "<answer>1. 3\n2. 2\n3. 1</answer>",
    ],
)
def test_the_same_items_in_any_order_and_dress_are_right(response: str) -> None:
    assert SetOf().judge(response, "1, 2, 3").score == 1


@pytest.mark.parametrize(
    "response",
    ["", "1, 2", "1, 2, 3, 4", "1, 2, 4", "1 2 3", "1 or 2 or 3", "1,2,3 and more", "They are 1, 2, 3", "{}"],
)
def test_an_item_missing_or_too_many_is_wrong(response: str) -> None:
    assert SetOf().judge(response, "1, 2, 3").score == 0


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ('["red", "blue"]', "blue, red", 1),
        ("The Nile and Amazon", "amazon, nile", 1),
        ("salt and pepper, bread", "bread, salt and pepper", 1),
        ("salt, pepper, bread", "bread, salt and pepper", 0),
        ("Red; Blue", "red, blue", 0),
        ("red or blue", "red, blue", 0),
        ("-1, −2", "-2, -1", 1),
        (".5", "0.5", 1),
        ("5", ".5", 0),
        ("0", "0", 1),
        ("12345678901234567891", "12345678901234567890", 0),
        ("1e999999999", "1", 0),
        ("(4, 2), (3, 1)", "1, 2, 3, 4", 0),
    ],
)
def test_items_are_numbers_or_words(response: str, gold: str, score: float) -> None:
    assert SetOf().judge(response, gold).score == score


def test_how_often_an_item_stands_counts_where_that_is_set() -> None:
    bag = SetOf(repeats=True)
    assert bag.judge("1, 2, 1", "1, 1, 2").score == 1
    assert bag.judge("1, 2", "1, 1, 2").score == 0
    assert bag.judge("1, 1, 2", "1, 2").score == 0


def test_another_separator_keeps_commas_inside_items() -> None:
    assert SetOf(separator=";").judge("Oslo, Norway; 1,000", "1,000; Oslo, Norway").score == 1


@pytest.mark.parametrize("gold", ["", "{}", "[]", ",", " , ", "(1, 2), (3, 4)", "[1, 2)"])
def test_a_gold_answer_that_is_no_list_of_items_is_refused(gold: str) -> None:
    assert "no list of items" in str(SetOf().complaint(gold))
    assert SetOf().judge(gold, gold).score == 0
