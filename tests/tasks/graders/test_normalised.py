"""Names and phrases: what counts in them and what does not."""

import pytest

from podium.tasks.graders.normalised import Normalised, plain


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
def test_dress_does_not_count(response: str, gold: str) -> None:
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
def test_marks_that_mean_something_count(response: str, gold: str) -> None:
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
        assert grader.complaint(gold) is None
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
    assert "without words" in str(Normalised().complaint(gold))
    assert Normalised().judge("...", gold).score == 0


def test_an_empty_part_of_a_gold_answer_is_refused() -> None:
    assert Normalised(separator="|").complaint("a||b") is not None


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
    assert plain(text) == expected
