"""The phrase book: which subtasks ask the whole question."""

from __future__ import annotations

import pytest

from podium.baselines.phrases import CHECK, PARTS, WHOLE, asks_whole


@pytest.mark.parametrize(
    ("subtask", "question", "whole"),
    [
        (WHOLE, "What is 2 + 3?", True),
        (f"1. {WHOLE}", "What is 2 + 3?", True),
        (f"3. {WHOLE} ", "What is 2 + 3?", True),
        ("What is 2 + 3?", "What is 2 + 3?", True),
        ("2. What is 2 + 3?", " What is 2 + 3?\n", True),
        ("1. Which is it?", "1. Which is it?", True),
        ("2. 1. Which is it?", "1. Which is it?", True),
        (PARTS[0], "What is 2 + 3?", False),
        (f"1. {CHECK}", "What is 2 + 3?", False),
        (f"{WHOLE} Then check.", "What is 2 + 3?", False),
        ("What is 2 + 4?", "What is 2 + 3?", False),
        ("", "What is 2 + 3?", False),
    ],
)
def test_a_number_and_space_change_nothing_in_what_is_asked(subtask: str, question: str, whole: bool) -> None:
    assert asks_whole(subtask, question) is whole
