"""Worth: who is drawn for a kind follows the verdicts on that kind, the price, and who is there."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from podium.rollout.answers import Answers
from podium.train.warmstart.worth import Worth

WORKERS = ("ada", "bob", "cy")
KINDS = ("sums", "words")
EACH = 30
"""Questions of a kind."""
SAMPLES = 2


@pytest.fixture
def answers() -> Answers:
    """ada is right on sums and bob on words, four times in five; cy, who is dear, three times in five on both."""
    rng = np.random.default_rng(5)
    size = (len(KINDS) * EACH, len(WORKERS), 5)
    sums = np.arange(size[0]) < EACH
    chance = np.stack([np.where(sums, 0.8, 0.2), np.where(sums, 0.2, 0.8), np.full(size[0], 0.6)], axis=1)
    right = (rng.random(size) < chance[:, :, None]).astype(float)
    right[:, :, SAMPLES:] = right[:, :, : size[2] - SAMPLES]  # after the last sample the first comes again
    wrong_answers = rng.integers(1, 6, size)
    return Answers(
        workers=WORKERS,
        answer_QWR=np.where(right > 0, 0, wrong_answers),
        alone_QWR=right,
        voted_QWR=right,
        score_QW=right[:, :, :SAMPLES].mean(axis=2),
        cost_QW=np.broadcast_to([0.001, 0.001, 0.05], size[:2]).copy(),
        samples=SAMPLES,
        texts=tuple(f"question {number}" for number in range(size[0])),
        families=("",) * size[0],
    )


def worth(answers: Answers, thrift: tuple[float, ...] = (0.0,)) -> Worth:
    return Worth(
        answers,
        {text: KINDS[number // EACH] for number, text in enumerate(answers.texts)},
        thrift,
    )


def members(made: Worth, kind: str, team: tuple[str, ...] = WORKERS, **options: int) -> Counter[str]:
    """Who is named how often in 60 draws."""
    draws = [made.draw(Random(f"{seed}"), kind, team, **options) for seed in range(60)]
    return Counter(name for drawn in draws for name in drawn)


def test_who_knows_a_kind_is_drawn_for_it(answers: Answers) -> None:
    made = worth(answers)
    sums, words = members(made, "sums", most=1), members(made, "words", most=1)
    assert sums["ada"] > 50
    assert words["bob"] > 50


def test_a_kind_that_was_never_seen_gets_what_is_best_on_all(answers: Answers) -> None:
    best = WORKERS[int(answers.accuracy.argmax())]
    assert members(worth(answers), "unheard of", most=1)[best] > 20


def test_only_who_is_in_the_team_is_drawn(answers: Answers) -> None:
    assert set(members(worth(answers), "sums", ("cy", "bob", "a stranger"))) <= {"cy", "bob"}
    assert set(members(worth(answers), "sums", ("cy",))) == {"cy"}


def test_nobody_answers_more_often_than_there_are_samples(answers: Answers) -> None:
    for seed in range(60):
        drawn = worth(answers).draw(Random(f"{seed}"), "sums", WORKERS)
        assert max(Counter(drawn).values()) <= SAMPLES


def test_a_committee_is_no_larger_than_asked(answers: Answers) -> None:
    assert {len(worth(answers).draw(Random(f"{seed}"), "sums", WORKERS, most=1)) for seed in range(30)} == {1}


def test_thrift_keeps_to_the_cheap(answers: Answers) -> None:
    made = worth(answers, (0.0, 1000.0))
    thrifty = members(made, "sums", level=1)
    assert thrifty["cy"] == 0
    assert thrifty.total() == 60, "a thrifty committee asks once"
    assert members(made, "sums", level=0).total() > 60


def test_the_same_randomness_draws_the_same(answers: Answers) -> None:
    made = worth(answers)
    assert made.draw(Random("a"), "sums", WORKERS) == made.draw(Random("a"), "sums", WORKERS)


def test_samples_in_another_order_are_other_answers_of_equal_worth(answers: Answers) -> None:
    turned = answers.turned(1)
    assert (turned.alone_QWR[:, :, 0] == answers.alone_QWR[:, :, 1]).all()
    assert (turned.alone_QWR[:, :, 1] == answers.alone_QWR[:, :, 0]).all()
    assert (turned.score_QW == answers.score_QW).all()
    assert answers.turned(0) is answers
