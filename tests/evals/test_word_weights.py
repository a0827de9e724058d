"""Accuracies that are predicted from a question's words."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from podium.evals.rating import fit_words, rate
from podium.planners.answer_matrix import AnswerMatrix
from podium.types import Profile
from podium.workers.ratings import WORD, Ratings

SUBJECTS = ("river", "planet", "metal", "poet", "bridge", "engine", "flower", "comet")
FILLERS = ("large", "small", "old", "new", "famous", "strange", "quiet", "early")


def asked(seed: int, count: int) -> AnswerMatrix:
    """Ada is right on the first four subjects, Bob on the others. Each question has two words of no meaning."""
    random = Random(f"word-weights/{seed}")
    texts, right = [], []
    for number in range(count):
        subject = random.choice(SUBJECTS)
        texts.append(f"{random.choice(FILLERS)} {subject} {random.choice(FILLERS)} {number}")
        knows = SUBJECTS.index(subject) < 4
        right.append([float(knows), float(not knows)])
    score_QW = np.array(right)
    same_QWR = np.repeat(score_QW[:, :, None], 5, axis=2)
    return AnswerMatrix(
        ("ada", "bob"), (1 - same_QWR).astype(int), same_QWR, same_QWR, score_QW, np.ones_like(score_QW), 1,
        tuple(texts), ("",) * count,
    )  # fmt: skip


def predicted(ratings: Ratings, worker: str, text: str) -> float:
    found = ratings.rated(Profile(name=worker), text).rating
    assert found is not None
    return found.accuracy


def test_predictions_are_those_of_ridge_regression_on_tfidf_vectors() -> None:
    answers, others = asked(0, 60), asked(1, 20)
    ratings = rate(answers, {}).model_copy(update={"words": fit_words(answers)})
    vectorizer = TfidfVectorizer(
        token_pattern=WORD.pattern, sublinear_tf=True, stop_words="english", min_df=2
    )
    seen_QW = vectorizer.fit_transform(answers.texts).toarray()
    centred = answers.score_QW - answers.accuracy
    weights = np.linalg.solve(seen_QW.T @ seen_QW + 10 * np.eye(seen_QW.shape[1]), seen_QW.T @ centred)
    expected = (answers.accuracy + vectorizer.transform(others.texts) @ weights).clip(0, 1)
    found = [[predicted(ratings, worker, text) for worker in answers.workers] for text in others.texts]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_word_weights_learn_worker_subjects_from_60_questions() -> None:
    answers, others = asked(2, 60), asked(3, 200)
    ratings = rate(answers, {}).model_copy(update={"words": fit_words(answers)})
    chosen = [predicted(ratings, "bob", text) > predicted(ratings, "ada", text) for text in others.texts]
    assert others.score_QW[np.arange(200), np.array(chosen, dtype=int)].mean() > 0.9


def test_ratings_file_keeps_word_weights_and_joined_ratings_drop_them(tmp_path: Path) -> None:
    answers = asked(4, 40)
    plain = rate(answers, {})
    with_words = plain.model_copy(update={"words": fit_words(answers)})
    path = tmp_path / "ratings.json"
    path.write_text(with_words.model_dump_json(by_alias=True, exclude_none=True))
    text = answers.texts[0]
    assert predicted(Ratings.open(path), "ada", text) == predicted(with_words, "ada", text)
    assert "words" not in plain.model_dump_json(by_alias=True, exclude_none=True)
    # A worker that is added has no weights, and predictions must be comparable: all are rated by clusters again.
    assert with_words.joined(plain).words is None


def test_questions_without_words_have_no_weights() -> None:
    answers = asked(5, 40)
    ratings = rate(answers, {}).model_copy(update={"words": fit_words(answers)})
    assert predicted(ratings, "ada", "zebra 7") == pytest.approx(answers.accuracy[0], abs=1e-3)
    assert fit_words(dataclasses.replace(answers, texts=tuple(map(str, range(40))))) is None
