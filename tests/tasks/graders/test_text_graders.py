"""Graders of short texts: exact, normalised, set and regex."""

from __future__ import annotations

import pytest

from podium.errors import GraderError
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf, matches
from podium.text.same_answer import normalised_words


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
        ("Answer:\n- Lima\n- Oslo", "- Lima", 0),
        ("Answer: Lima,\nOslo", "Lima,", 0),
        ("Answer: Lima\nor Oslo", "Lima", 0),
        ("Answer: Lima\nIt is large.", "Lima", 1),
        ("Answer: Lima\nAnd that is all.", "Lima", 1),
        ("Answer: Lima,\nbecause it is large.", "Lima,", 1),
        ("So:\n```python\nreturn 4\n```", "return 4", 1),
        ("Answer:\n```\nfoo\n```", "foo", 1),
        ("It is\n\\[\nx = 5\n\\]", "x = 5", 1),
        ("Answer: **63** apples", "**63** apples", 1),
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


def test_grade_includes_the_answer_found() -> None:
    assert Exact().judge("So.\nAnswer: **Oslo**", "Lima").found == "Oslo"
    assert Exact(answer="tag").judge("Oslo", "Oslo").found is None


@pytest.mark.parametrize(("gold", "good"), [("42", True), ("", False), (" \n", False)])
def test_an_empty_gold_answer_is_refused(gold: str, good: bool) -> None:
    assert (Exact().gold_problem(gold) is None) is good


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("Answer: The Beatles", "beatles"),
        ("Answer: U.S.A.", "USA"),
        ("Answer: twenty-one", "Twenty one"),
        ("Answer: Sao Paulo", "São Paulo"),
        ("Answer: Straße", "STRASSE"),
        ("Ｐａｒｉｓ", "paris"),
        ('"Paris".', "Paris"),
        ("O'Neill", "O’Neill"),
        ("Answer: 1,000", "1000"),
        ("Answer: −5", "-5"),
        ("Answer: $5", "$5"),
        ("Answer: a", "A"),
        ("Answer: the", "The"),
        ("rock & roll", "Rock & Roll"),
        ("Answer: snow,  white", "Snow White"),
    ],
)
def test_normalised_grader_ignores_case_articles_and_punctuation(response: str, gold: str) -> None:
    assert Normalised().judge(response, gold).score == 1


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("3.5", "35"),
        ("-5", "5"),
        ("1/2", "12"),
        ("3:2", "32"),
        ("10-20", "1020"),
        (".5", "5"),
        ("10²", "102"),
        ("5½", "51/2"),
        ("45 %", "45"),
        ("2*3", "23"),
        ("C#", "C"),
        ("C++", "C"),
        ("vitamin", "vitamin A"),
        ("ab", "a b"),
    ],
)
def test_normalised_grader_keeps_meaningful_punctuation(response: str, gold: str) -> None:
    assert Normalised().judge(response, gold).score == 0
    assert Normalised().judge(gold, response).score == 0


@pytest.mark.parametrize(
    "response",
    ["", "!!!", "Paris, France", "Paris or Lyon", "Lyon, Paris, Nice", "not Paris", "Paris?\nAnswer: Lyon"],
)
def test_containing_the_answer_earns_nothing(response: str) -> None:
    assert Normalised().judge(response, "Paris").score == 0


def test_one_of_several_accepted_answers_is_enough_and_two_are_too_many() -> None:
    listed, parted = '["New York City", "NYC"]', "New York City|NYC"
    for grader, gold in ((Normalised(), listed), (Normalised(separator="|"), parted)):
        assert grader.gold_problem(gold) is None
        assert grader.judge("Answer: nyc", gold).score == 1
        assert grader.judge("Answer: New York City", gold).score == 1
        assert grader.judge("Answer: New York City, NYC", gold).score == 0
    assert Normalised().judge("Answer: NYC", parted).score == 0


def test_a_text_that_begins_like_a_list_is_a_text() -> None:
    assert Normalised().judge("Answer: [sic]", "[sic]").score == 1
    assert Normalised().judge("Answer: [1, 2]", "[1, 2]").score == 1


def test_accents_count_where_that_is_set() -> None:
    assert Normalised(accents=True).judge("Sao Paulo", "São Paulo").score == 0
    assert Normalised(accents=True).judge("Sa\u0303o Paulo", "S\u00e3o Paulo").score == 1


@pytest.mark.parametrize("gold", ["", " ", "...", "[]", '["a", ""]', "?!"])
def test_a_gold_answer_without_words_is_refused(gold: str) -> None:
    assert "without words" in str(Normalised().gold_problem(gold))
    assert Normalised().judge("...", gold).score == 0


def test_an_empty_part_of_a_gold_answer_is_refused() -> None:
    assert Normalised(separator="|").gold_problem("a||b") is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  The  End. ", "end"),
        ("a-b_c", "a b c"),
        ("“The” End", "the end"),
        ("(the end)", "end"),
        ("f(x)", "f x"),
        ("-.5", "-.5"),
        ("v1.2", "v1.2"),
    ],
)
def test_the_plain_form_is_words_with_spaces_between(text: str, expected: str) -> None:
    assert normalised_words(text) == expected


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


def test_set_grader_counts_repeated_items_if_configured() -> None:
    bag = SetOf(repeats=True)
    assert bag.judge("1, 2, 1", "1, 1, 2").score == 1
    assert bag.judge("1, 2", "1, 1, 2").score == 0
    assert bag.judge("1, 1, 2", "1, 2").score == 0


def test_another_separator_keeps_commas_inside_items() -> None:
    assert SetOf(separator=";").judge("Oslo, Norway; 1,000", "1,000; Oslo, Norway").score == 1


@pytest.mark.parametrize("gold", ["", "{}", "[]", ",", " , ", "(1, 2), (3, 4)", "[1, 2)"])
def test_a_gold_answer_that_is_no_list_of_items_is_refused(gold: str) -> None:
    assert "no list of items" in str(SetOf().gold_problem(gold))
    assert SetOf().judge(gold, gold).score == 0


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
    assert reason in str(Regex().gold_problem(gold))


@pytest.mark.parametrize("gold", ["a", DATE, "(?i)x", "[^0-9]+"])
def test_regex_grader_accepts_usable_patterns(gold: str) -> None:
    assert Regex().gold_problem(gold) is None


async def test_a_pattern_that_takes_too_long_is_a_failure_not_a_wrong_answer() -> None:
    slow = r"(?:a|aa)+(?:a|aa)+(?:a|aa)+$b"
    with pytest.raises(GraderError, match=r"takes more than 1 s"):
        await Regex()("Answer: " + "a" * 3000, slow)
    assert (await Regex()("Answer: b", slow)).score == 0


def test_invalid_gold_pattern_is_a_grader_failure() -> None:
    with pytest.raises(GraderError, match="is no pattern"):
        matches("(", "a")
