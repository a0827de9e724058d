"""A second round is worth its price where it mends what the first one left wrong, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from given_answers import NONE, RIGHT, given_answers, pair_and_third, pair_and_two_more

from podium.warmstart.committee_value import CommitteeValues

WORKERS, MENDED = pair_and_third(mends=True)
_, HOPELESS = pair_and_third(mends=False)
PAIR = ("ada", "bob")
TRIO = (*PAIR, "cy")
KIND = "#sums"
LEVELS = (0.05, 0.6, 1.1)
"""At the first an answer must bring a twentieth, so that no answer is asked for that adds nothing."""


def worth(rows: list[list[int]], rounds: int = 2) -> CommitteeValues:
    """Of one kind; everybody costs the same."""
    answers = given_answers(WORKERS, rows, [1] * len(WORKERS))
    return CommitteeValues(answers, dict.fromkeys(answers.texts, KIND), LEVELS, rounds)


def drawn(
    made: CommitteeValues, cluster: str = KIND, team: tuple[str, ...] = WORKERS, level: int = 0
) -> set[frozenset[str]]:
    """Committees of first rounds, in no order."""
    return {frozenset(made.draw(Random(f"{seed}"), cluster, team, level=level)) for seed in range(40)}


def following(  # noqa: PLR0917
    made: CommitteeValues,
    asked: tuple[str, ...] = PAIR,
    agree: int = 1,
    team: tuple[str, ...] = WORKERS,
    level: int = 0,
    cluster: str = KIND,
) -> tuple[str, ...]:
    """The one committee that follows, whatever the randomness."""
    (found,) = {
        made.draw_next(Random(f"{seed}"), cluster, team, asked, agree, level=level) for seed in range(40)
    }
    return found


def test_a_pair_that_disagrees_is_followed_by_who_is_right_then() -> None:
    assert following(worth(MENDED)) == ("cy",)
    assert following(worth(MENDED), asked=PAIR[::-1]) == ("cy",)


def test_a_pair_that_agrees_is_accepted() -> None:
    assert following(worth(MENDED), agree=2) == ()


def test_a_pair_that_disagrees_is_accepted_if_no_worker_is_right_then() -> None:
    assert following(worth(HOPELESS)) == ()


def test_a_second_round_that_costs_more_than_it_mends_is_not_drawn() -> None:
    # cy is right on all questions that are left, so it mends 1: more than 0.6 and less than 1.1.
    assert following(worth(MENDED), level=1) == ("cy",)
    assert following(worth(MENDED), level=2) == ()


def test_a_committee_that_a_second_round_may_mend_is_preferred() -> None:
    # One alone is right on half of the questions, and so is every vote; who is asked next mends the rest.
    assert drawn(worth(MENDED), team=TRIO) == {frozenset(PAIR)}
    assert all(len(team) == 1 for team in drawn(worth(MENDED, rounds=1), team=TRIO))


def test_no_committee_is_preferred_for_a_second_round_that_mends_nothing() -> None:
    assert drawn(worth(HOPELESS)) == drawn(worth(HOPELESS, rounds=1))
    assert all(len(team) == 1 for team in drawn(worth(HOPELESS)))


def test_where_answers_are_expensive_one_worker_answers_alone() -> None:
    # Mending brings 1 - 0.6 on half of the questions, which is less than the price of the pair's second answer.
    assert all(len(team) == 1 for team in drawn(worth(MENDED), level=1))


def test_a_kind_that_was_never_seen_is_mended_as_all_questions_are() -> None:
    assert drawn(worth(MENDED), cluster="#unheard-of") == {frozenset(PAIR)}
    assert following(worth(MENDED), cluster="#unheard-of") == ("cy",)
    assert following(worth(MENDED), cluster="#unheard-of", agree=2) == ()


def test_a_second_round_calls_no_worker_outside_the_team() -> None:
    team = ("a stranger", *PAIR, "dee")
    assert following(worth(MENDED), team=team) == ("dee",)
    assert following(worth(MENDED), team=PAIR) == ()


def test_a_pair_is_not_preferred_if_no_worker_of_the_team_could_correct_it() -> None:
    assert drawn(worth(MENDED), team=(*PAIR, "dee")) == {frozenset(PAIR)}
    assert all(len(team) == 1 for team in drawn(worth(MENDED), team=PAIR))


@pytest.mark.parametrize(
    ("asked", "agree"),
    [
        pytest.param(("ada",), 1, id="one alone"),
        pytest.param(WORKERS, 2, id="four"),
        pytest.param(("ada", "ada"), 2, id="one twice"),
        pytest.param(PAIR, 3, id="more than there are"),
    ],
)
def test_what_no_second_round_may_follow_is_accepted(asked: tuple[str, ...], agree: int) -> None:
    assert following(worth(MENDED), asked=asked, agree=agree) == ()


def test_kinds_whose_pairs_disagree_for_other_reasons_are_followed_by_others() -> None:
    # ada and bob differ on half of either kind; then cy is right on sums, and dee on words.
    rows, clusters = [], []
    for number in range(80):
        knows = "#sums" if number < 40 else "#words"
        left = [RIGHT, 4] if knows == "#sums" else [3, RIGHT]
        rows.append([RIGHT, RIGHT, 3, 4] if number % 2 else [1, 2, *left])
        clusters.append(knows)
    answers = given_answers(WORKERS, rows, [1] * 4)
    made = CommitteeValues(answers, dict(zip(answers.texts, clusters, strict=True)), LEVELS, 2)
    assert following(made, cluster="#sums") == ("cy",)
    assert following(made, cluster="#words") == ("dee",)


def test_as_many_agree_as_gave_the_answer_that_most_gave_of_those_who_answered() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 1, 4], [2, 2, 2, 1], [NONE, NONE, 3, NONE], [NONE] * 4]
    made = worth(rows)
    counts = [made.agreeing(WORKERS, f"question {number}") for number in range(len(rows))]
    assert counts == [(1, 4), (2, 4), (3, 4), (1, 1), (0, 0)]
    assert made.agreeing(("dee", "bob"), "question 2") == (1, 2)
    assert made.agreeing(("cy", "bob"), "question 2") == (2, 2)


def test_a_worker_called_again_agrees_with_itself_only_if_its_next_sample_is_equal() -> None:
    answers = given_answers(("ada", "bob"), [[1, 2], [1, 2], [1, 2]], [1] * 2)
    answers.answer_QWR[:, 0, 1::2] = [[1, 1], [3, 3], [NONE, NONE]]
    made = CommitteeValues(replace(answers, samples=2), dict.fromkeys(answers.texts, KIND), LEVELS)
    counts = [made.agreeing(("ada", "ada"), text) for text in answers.texts]
    assert counts == [(2, 2), (1, 2), (1, 1)]


def test_the_answer_that_there_is_has_a_vote_in_the_second_round() -> None:
    # cy and dee alone are right on two such questions in three; with what ada said they are always.
    made = worth(pair_and_two_more()[1])
    second = {frozenset(made.draw_next(Random(f"{seed}"), KIND, WORKERS, PAIR, 1)) for seed in range(40)}
    assert second == {frozenset(("cy", "dee"))}
    assert following(made, agree=2) == ()


def test_what_a_committee_answered_is_one_voter_more() -> None:
    rows = [[RIGHT, 1, 2], [1, 1, RIGHT], [NONE, 2, RIGHT], [NONE, NONE, RIGHT]]
    answers = given_answers(("ada", "bob", "cy"), rows, [1] * 3)
    after = answers.after((0, 1))
    assert after.answer_QWR[:, 3, 0].tolist() == [RIGHT, 1, 2, NONE]
    assert after.voted((3,)).tolist() == [1, 0, 0, 0]
    # Of equal votes the one that there is wins; where there is none, the new one.
    assert after.voted((3, 2)).tolist() == [1, 0, 0, 1]
    assert after.voted((3, 2, 2)).tolist() == [0, 1, 1, 1]


def test_what_a_committee_answered_goes_with_the_sample_that_is_first() -> None:
    answers = given_answers(("ada", "bob"), [[RIGHT, 1]], [1] * 2)
    answers.answer_QWR[0, 0, 1::2] = 2
    answers.voted_QWR[0, 0, 1::2] = answers.alone_QWR[0, 0, 1::2] = 0
    after = replace(answers, samples=2).after((0, 1))
    assert after.answer_QWR[0, 2].tolist() == [RIGHT, 2, RIGHT, 2, RIGHT]
    assert after.rotated(1).voted((2, 1)).tolist() == [0]


def test_a_second_round_costs_all_its_workers_even_if_votes_of_the_first_stop_early() -> None:
    """Its vote sees the answer of the first round, too, of which the prices of first rounds know nothing."""
    names, rows = pair_and_two_more()
    answers = given_answers(names, rows, [1] * len(names))
    for level in range(len(LEVELS)):
        made = [
            CommitteeValues(answers, dict.fromkeys(answers.texts, KIND), LEVELS, 2, early_stop=early_stop)
            for early_stop in (False, True)
        ]
        later = [
            [one.draw_next(Random(f"{seed}"), KIND, names, PAIR, 1, level=level) for seed in range(20)]
            for one in made
        ]
        assert later[0] == later[1]
        assert level > 0 or all(later[0])


def test_a_first_round_costs_all_its_workers_if_a_second_may_follow() -> None:
    """How many agree is what the second round looks at, so the votes of the first do not stop."""
    names, rows = pair_and_two_more()
    answers = given_answers(names, rows, [1] * len(names))
    cluster_of = dict.fromkeys(answers.texts, KIND)
    made = [
        CommitteeValues(answers, cluster_of, (0.1,), 2, early_stop=early_stop) for early_stop in (False, True)
    ]

    def drawn_by(rounds: int | None) -> list[list[tuple[str, ...]]]:
        return [
            [one.draw(Random(f"{seed}"), KIND, names, rounds=rounds) for seed in range(20)] for one in made
        ]

    everybody, stopped = drawn_by(None)
    assert everybody == stopped
    everybody, stopped = drawn_by(1)
    assert everybody != stopped
