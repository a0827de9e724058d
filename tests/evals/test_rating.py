"""Workers are rated by what a recording holds: questions, right answers and dollars are counted kind by kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.evals.rating import rate
from podium.planners.answer_matrix import AnswerMatrix
from podium.types import Profile
from podium.workers.ratings import ClusterWords, Tally

KINDS: ClusterWords = {"sums": {"add": 1.0}, "words": {"spell": 1.0}, "rivers": {"river": 1.0}}


def answers_of(
    texts: Sequence[str], score_QW: Sequence[Sequence[float]], cost_QW: Sequence[Sequence[float]]
) -> AnswerMatrix:
    """Answers of ada and bob; only what they are rated by differs from question to question."""
    scores = np.asarray(score_QW, dtype=float).reshape(len(texts), 2)
    right_QWR = np.repeat((scores > 0.5)[:, :, None], 5, axis=2).astype(float)
    return AnswerMatrix(
        workers=("ada", "bob"),
        answer_QWR=np.zeros(right_QWR.shape, dtype=np.int64),
        alone_QWR=right_QWR,
        voted_QWR=right_QWR,
        score_QW=scores,
        cost_QW=np.asarray(cost_QW, dtype=float).reshape(len(texts), 2),
        samples=2,
        texts=tuple(texts),
    )


def test_each_worker_has_a_tally_of_every_cluster_that_it_answered() -> None:
    texts = ("Add 1.", "Spell it.", "Add 2.", "Add 3.", "Who?")
    scores = [[1.0, 0.0], [0.0, 0.5], [1.0, 1.0], [0.5, 0.0], [1.0, 0.0]]
    costs = [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0], [0.4, 4.0], [0.5, 5.0]]
    ratings = rate(answers_of(texts, scores, costs), KINDS)
    assert ratings.clusters == KINDS
    assert ratings.workers == {
        "ada": {
            "sums": Tally(right=2.5, questions=3, cost_usd=0.8),
            "words": Tally(right=0, questions=1, cost_usd=0.2),
            "": Tally(right=1, questions=1, cost_usd=0.5),
        },
        "bob": {
            "sums": Tally(right=1, questions=3, cost_usd=8),
            "words": Tally(right=0.5, questions=1, cost_usd=2),
            "": Tally(right=0, questions=1, cost_usd=5),
        },
    }


def test_samples_of_one_question_count_as_one_question_and_their_share() -> None:
    (tally,) = rate(answers_of(["Add."], [[1 / 3, 0]], [[0, 0]]), KINDS).workers["ada"].values()
    assert (tally.right, tally.questions) == (0.333, 1)


def test_dollars_keep_five_figures_however_small_they_are() -> None:
    ratings = rate(answers_of(["Add 1.", "Add 2."], [[1, 1]] * 2, [[1.23456e-7, 123.456]] * 2), KINDS)
    tallies = [ratings.workers[worker]["sums"] for worker in ("ada", "bob")]
    assert [tally.cost_usd for tally in tallies] == [2.4691e-7, 246.91]


def test_rating_without_clusters_uses_one_unnamed_cluster() -> None:
    ratings = rate(answers_of(["Add.", "Spell."], [[1, 0], [1, 1]], [[1, 1], [1, 1]]), {})
    assert {worker: list(tallies) for worker, tallies in ratings.workers.items()} == {
        "ada": [""],
        "bob": [""],
    }
    assert ratings.workers["ada"][""] == Tally(right=2, questions=2, cost_usd=2)


def test_worker_right_on_a_cluster_is_rated_higher_there() -> None:
    texts = [f"Add {number}." for number in range(9)] + [f"Spell {number}." for number in range(9)]
    scores = [[1.0, 0.0]] * 9 + [[0.0, 1.0]] * 9
    ratings = rate(answers_of(texts, scores, [[0.1, 0.2]] * 18), KINDS)
    ada, bob = (ratings.rated(Profile(name=name), "Add 77.").rating for name in ("ada", "bob"))
    assert ada is not None
    assert bob is not None
    assert (ada.cluster, ada.questions) == ("sums", 9)
    assert ada.accuracy > 0.8
    assert bob.accuracy < 0.2
    assert [ada.cost_usd, bob.cost_usd] == pytest.approx([0.1, 0.2])


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[str], list[list[float]], list[list[float]]]:
    texts = draw(
        st.lists(st.sampled_from(["Add.", "Spell.", "Spell and spell.", "River?", "Who?"]), min_size=1)
    )

    def table(figure: st.SearchStrategy[float]) -> list[list[float]]:
        row = st.lists(figure, min_size=2, max_size=2)
        return draw(st.lists(row, min_size=len(texts), max_size=len(texts)))

    return texts, table(st.sampled_from([0.0, 0.25, 0.5, 1.0])), table(st.floats(1e-6, 1))


@given(asked())
def test_rating_tallies_add_up_to_all_answers(
    given_answers: tuple[list[str], list[list[float]], list[list[float]]],
) -> None:
    answers = answers_of(*given_answers)
    ratings = rate(answers, KINDS)
    for number, worker in enumerate(answers.workers):
        tallies = ratings.workers[worker].values()
        assert sum(tally.questions for tally in tallies) == len(answers.texts)
        assert sum(tally.right for tally in tallies) == pytest.approx(answers.score_QW[:, number].sum())
        assert sum(tally.cost_usd for tally in tallies) == pytest.approx(
            answers.cost_QW[:, number].sum(), rel=1e-4
        )
        assert all(tally.questions and tally.right <= tally.questions for tally in tallies)
