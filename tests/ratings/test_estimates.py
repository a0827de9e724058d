"""Estimates of each worker's accuracy on single questions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import numpy as np
import pytest

from podium.errors import ConfigError
from podium.ratings.answers import Answers, Floats, select
from podium.ratings.rating import estimate
from podium.types import Profile
from podium.workers.ratings import Ratings

CLUSTERS = {"water": {"river": 1.0, "lake": 1.0}, "stars": {"planet": 1.0, "comet": 1.0}}
WORDS = ("river", "lake", "planet", "comet")
FILLERS = ("large", "small", "old", "new", "famous", "strange", "quiet", "early")
CHANCE = {"ada": (0.95, 0.45, 0.45, 0.05), "bob": (0.3, 0.3, 0.8, 0.8)}
"""How often each worker is right where a question has each of the words: ada's differ within a cluster."""


def asked(seed: int, count: int) -> tuple[Answers, Floats]:
    """Answers of ada and bob, and how probable it was that they are right, [Q, W]."""
    random = Random(f"estimates/{seed}")
    texts, chances = [], []
    for number in range(count):
        word = random.randrange(len(WORDS))
        texts.append(f"{random.choice(FILLERS)} {WORDS[word]} {random.choice(FILLERS)} {number}")
        chances.append([chance[word] for chance in CHANCE.values()])
    chance_QW = np.array(chances)
    score_QW = (np.random.default_rng(seed).random(chance_QW.shape) < chance_QW).astype(float)
    same_QWR = np.repeat(score_QW[:, :, None], 5, axis=2)
    answers = Answers(
        tuple(CHANCE), (1 - same_QWR).astype(int), same_QWR, same_QWR, score_QW, np.ones_like(score_QW), 1,
        tuple(texts), ("",) * count,
    )  # fmt: skip
    return answers, chance_QW


def shown(ratings: Ratings, texts: tuple[str, ...]) -> Floats:
    """[N, W]: the accuracies that prompts show."""
    found = [[ratings.rated(Profile(name=worker), text).rating for worker in CHANCE] for text in texts]
    return np.array([[rating.accuracy for rating in row if rating is not None] for row in found])


def test_estimates_are_closer_than_tallies_to_how_probable_a_right_answer_is_and_are_calibrated() -> None:
    (answers, chance_QW), (others, other_chance_QW) = asked(0, 400), asked(1, 200)
    estimated = estimate(answers, CLUSTERS)
    tallies = Ratings(clusters=CLUSTERS, workers=estimated.ratings.workers)
    for found_QW, by_cluster_QW, true_QW in (
        (estimated.unseen_QW, shown(tallies, answers.texts), chance_QW),
        (shown(estimated.ratings, others.texts), shown(tallies, others.texts), other_chance_QW),
    ):
        error, of_tallies = (np.abs(figures - true_QW).mean() for figures in (found_QW, by_cluster_QW))
        assert error < 0.6 * of_tallies
    np.testing.assert_allclose(estimated.unseen_QW.mean(axis=0), answers.accuracy, atol=0.01)


def test_the_estimate_of_a_training_question_does_not_know_its_verdict() -> None:
    answers, _ = asked(2, 400)
    before = estimate(answers, CLUSTERS)
    for question in range(3):
        turned = answers.score_QW.copy()
        turned[question] = 1 - turned[question]
        after = estimate(dataclasses.replace(answers, score_QW=turned), CLUSTERS)
        own = np.abs(after.unseen_QW - before.unseen_QW)[question].max()
        known = np.abs(shown(after.ratings, answers.texts) - shown(before.ratings, answers.texts))
        assert own < 0.02, "only the two weights and the bias of the calibration may have moved"
        assert known[question].max() > 2 * own


def test_a_file_keeps_estimates_and_workers_that_they_do_not_know_have_their_tallies(tmp_path: Path) -> None:
    answers, _ = asked(3, 100)
    estimated = estimate(answers, CLUSTERS).ratings
    tallies = Ratings(clusters=CLUSTERS, workers=estimated.workers)
    cy = tallies.model_copy(update={"workers": {"cy": estimated.workers["ada"]}})
    path = tmp_path / "ratings.json"
    joined = cy.joined(estimated, estimates=True)
    path.write_text(joined.model_dump_json(by_alias=True, exclude_none=True))
    np.testing.assert_array_equal(shown(Ratings.open(path), answers.texts), shown(estimated, answers.texts))
    by_cluster, of_cy = (
        found.rated(Profile(name=name), answers.texts[0]).rating
        for found, name in ((tallies, "ada"), (Ratings.open(path), "cy"))
    )
    assert by_cluster == of_cy
    assert cy.joined(estimated).calibration is None


def test_estimates_need_enough_questions_and_words() -> None:
    answers, _ = asked(4, 60)
    with pytest.raises(ConfigError, match="50 questions or more, and there are 49"):
        estimate(select(answers, np.arange(49)), CLUSTERS)
    with pytest.raises(ConfigError, match="no question has any"):
        estimate(dataclasses.replace(answers, texts=tuple(map(str, range(60)))), CLUSTERS)
