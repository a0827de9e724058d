"""The phrase book: which subtasks ask the whole question."""

from __future__ import annotations

import pytest

from podium.planners.controls import CHECK, PARTS
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.view import requests_whole_question


@pytest.mark.parametrize(
    ("subtask", "question", "whole"),
    [
        (ANSWER_WHOLE_QUESTION, "What is 2 + 3?", True),
        (f"1. {ANSWER_WHOLE_QUESTION}", "What is 2 + 3?", True),
        (f"3. {ANSWER_WHOLE_QUESTION} ", "What is 2 + 3?", True),
        ("What is 2 + 3?", "What is 2 + 3?", True),
        ("2. What is 2 + 3?", " What is 2 + 3?\n", True),
        ("1. Which is it?", "1. Which is it?", True),
        ("2. 1. Which is it?", "1. Which is it?", True),
        (PARTS[0], "What is 2 + 3?", False),
        (f"1. {CHECK}", "What is 2 + 3?", False),
        (f"{ANSWER_WHOLE_QUESTION} Then check.", "What is 2 + 3?", False),
        ("What is 2 + 4?", "What is 2 + 3?", False),
        ("", "What is 2 + 3?", False),
    ],
)
def test_leading_number_and_space_do_not_change_the_request_of_a_subtask(
    subtask: str, question: str, whole: bool
) -> None:
    assert requests_whole_question(subtask, question) is whole
