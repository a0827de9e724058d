"""Which responses an early-stopping vote gets next, and how fast it chooses them."""

import time
from collections.abc import Sequence
from random import Random

from podium.workers.vote import responses_to_get_next, vote_key, winner_is_certain


def test_a_vote_of_many_long_responses_chooses_the_next_steps_quickly() -> None:
    numbers = Random("responses")
    given = [f"{'I compute the sum. ' * 200}It is {n}.\nAnswer: {numbers.randint(1, 5)}" for n in range(64)]
    responses: list[str | None] = [None] * len(given)
    began, order = time.process_time(), range(len(given))
    while turn := responses_to_get_next(winner_is_certain, "Vote.", responses, order, vote_key):
        for place in turn:
            responses[place] = given[place]
    assert time.process_time() - began < 2.0


def test_equal_answers_in_other_words_are_tried_once_as_the_next_answer() -> None:
    tried: set[str] = set()

    def note(subtask: str, responses: Sequence[str | None]) -> bool:
        tried.update(text for text in responses[-2:] if text is not None)
        return False

    said = [f"So it is {n}.\nAnswer: 7" for n in range(5)]
    assert responses_to_get_next(note, "Vote.", [*said, None, None], [5, 6], vote_key) == (5, 6)
    assert len(tried) == 2, "one of the five, and an answer that none of them gives"
