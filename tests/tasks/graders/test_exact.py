"""Short answers as they are written."""

import pytest

from podium.tasks.graders.exact import Exact


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ("Answer: 42", "42", 1),
        ("Let me see.\n**Answer: forty two.**", "Forty  Two", 1),
        ("<answer>Lima</answer> is my answer", "lima", 1),
        ("It is \\boxed{x + 1}.", "x + 1", 1),
        ("First this.\nLima", "Lima", 1),
        ("Answer: Oslo\nNo.\nAnswer: Lima", "Lima", 1),
        ("Answer: Oslo", "Lima", 0),
        ("Answer: 42.0", "42", 0),
        ("Answer: Lima or Oslo", "Lima", 0),
        ("Answer: Oslo, Lima, Rome", "Lima", 0),
        ("Answer: Lima is not it, Oslo is", "Lima", 0),
        ("Lima\nAnswer: Oslo", "Lima", 0),
        ("", "Lima", 0),
        (" \n ", "Lima", 0),
    ],
)
def test_the_answer_is_the_gold_one_or_it_is_wrong(response: str, gold: str, score: float) -> None:
    assert Exact().judge(response, gold).score == score


@pytest.mark.parametrize(
    ("place", "found"),
    [("final", "b"), ("tag", "a"), ("boxed", "c"), ("line", "Answer: b"), ("code", "d")],
)
def test_the_place_decides_where_the_answer_is_looked_for(place: str, found: str) -> None:
    response = "<answer>a</answer>\n\\boxed{c}\n```\nd\n```\nAnswer: b"
    grader = Exact.model_validate({"answer": place})
    assert grader.judge(response, found).score == 1
    assert grader.judge(response, found).found == found


def test_what_was_found_is_in_the_grade() -> None:
    assert Exact().judge("So.\nAnswer: **Oslo**", "Lima").found == "Oslo"
    assert Exact(answer="tag").judge("Oslo", "Oslo").found is None


@pytest.mark.parametrize(("gold", "good"), [("42", True), ("", False), (" \n", False)])
def test_an_empty_gold_answer_is_refused(gold: str, good: bool) -> None:
    assert (Exact().complaint(gold) is None) is good
