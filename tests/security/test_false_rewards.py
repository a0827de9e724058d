"""No grader rewards a wrong answer of the tables, and none refuses its harmless neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from false_rewards import HARMLESS, LETTERS, NUMBERS, ONE_LETTER, READ, SIGNS, WORDS
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import Normalised, SetOf

Score = Callable[[GraderSettings, str, str], float]
MATH = Math()


@pytest.fixture(scope="module")
def score() -> Iterator[Score]:
    """Grades on one event loop, so that processes are started once."""
    with asyncio.Runner() as runner:

        def scored(grader: GraderSettings, response: str, gold: str) -> float:
            return runner.run(grader(response, gold)).score

        yield scored


@pytest.mark.parametrize(("gold", "response"), WORDS)
def test_a_word_that_changes_the_value_is_not_dropped(score: Score, gold: str, response: str) -> None:
    assert score(MATH, response, gold) == 0


@pytest.mark.parametrize(("gold", "response"), READ)
def test_a_word_that_has_one_meaning_is_read(score: Score, gold: str, response: str) -> None:
    assert score(MATH, response, gold) == 1


@pytest.mark.parametrize("response", HARMLESS)
def test_units_and_the_words_of_a_sentence_change_nothing(score: Score, response: str) -> None:
    assert score(MATH, response, "5") == 1


@pytest.mark.parametrize(("gold", "response"), NUMBERS)
def test_grader_does_not_take_another_word_for_a_unit(score: Score, gold: str, response: str) -> None:
    assert score(Numeric(), response, gold) == 0


@pytest.mark.parametrize(("gold", "response"), SIGNS)
def test_grader_distinguishes_opposite_signs(gold: str, response: str) -> None:
    for grader in (Normalised(), SetOf()):
        assert grader.judge(response, gold).score == 0
        assert grader.judge(response, response).score == 1


@pytest.mark.parametrize("response", LETTERS)
def test_choice_grader_rejects_several_letters(response: str) -> None:
    assert Choice().judge(response, "B").score == 0


@pytest.mark.parametrize("response", ONE_LETTER)
def test_letters_in_a_reason_or_in_the_options_text_are_no_second_choice(response: str) -> None:
    options = '{"letter": "B", "options": ["Oslo", "Points A and C"]}'
    assert Choice().judge(response, options).score == 1
