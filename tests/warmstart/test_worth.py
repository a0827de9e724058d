"""Worth: who is drawn for a kind follows the verdicts on that kind, the price, and who is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import median

import numpy as np
import pytest
from given_answers import NONE, RIGHT, given_answers

from podium.ratings.answers import Answers
from podium.warmstart.committee_value import CommitteeValues, committees

WORKERS = ("ada", "bob", "cy")
KINDS = ("#sums", "#words")
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


def worth(answers: Answers, cost_weights: tuple[float, ...] = (0.0,)) -> CommitteeValues:
    return CommitteeValues(
        answers,
        {text: KINDS[number // EACH] for number, text in enumerate(answers.texts)},
        cost_weights,
    )


def members(
    made: CommitteeValues, cluster: str, team: tuple[str, ...] = WORKERS, **options: int
) -> Counter[str]:
    """Who is named how often in 60 draws."""
    draws = [made.draw(Random(f"{seed}"), cluster, team, **options) for seed in range(60)]
    return Counter(name for drawn in draws for name in drawn)


def test_who_knows_a_kind_is_drawn_for_it(answers: Answers) -> None:
    made = worth(answers)
    sums, words = members(made, "#sums", most=1), members(made, "#words", most=1)
    assert sums["ada"] > 50
    assert words["bob"] > 50


def test_a_kind_that_was_never_seen_gets_what_is_best_on_all(answers: Answers) -> None:
    best = WORKERS[int(answers.accuracy.argmax())]
    assert members(worth(answers), "#unheard-of", most=1)[best] > 20


def test_only_who_is_in_the_team_is_drawn(answers: Answers) -> None:
    assert set(members(worth(answers), "#sums", ("cy", "bob", "a stranger"))) <= {"cy", "bob"}
    assert set(members(worth(answers), "#sums", ("cy",))) == {"cy"}


def test_estimates_tell_questions_of_one_cluster_apart(answers: Answers) -> None:
    """bob is estimated to know the first half of the sums; ada, who has the better tally there, the others."""
    bob_knows_Q = np.arange(len(answers.texts)) < EACH // 2
    unseen_QW = np.stack(
        [np.where(bob_knows_Q, 0.02, 0.98), np.where(bob_knows_Q, 0.98, 0.02), 0.02 + 0 * bob_knows_Q], 1
    )
    made = CommitteeValues(
        answers, {text: KINDS[n // EACH] for n, text in enumerate(answers.texts)}, (0.0,), unseen_QW=unseen_QW
    )

    def drawn(question: str | None) -> set[tuple[str, ...]]:
        team, rng = ("ada", "bob"), Random("0")
        return {made.draw(rng, "#sums", team, most=1, question=question) for _ in range(40)}

    assert drawn("question 0") == {("bob",)}
    assert drawn(f"question {EACH - 1}") == {("ada",)} == drawn(None)


def test_no_worker_answers_more_often_than_it_has_samples(answers: Answers) -> None:
    made = worth(answers)
    for seed in range(60):
        drawn = made.draw(Random(f"{seed}"), "#sums", WORKERS)
        assert max(Counter(drawn).values()) <= SAMPLES


def test_a_committee_is_no_larger_than_its_limit(answers: Answers) -> None:
    made = worth(answers)
    assert {len(made.draw(Random(f"{seed}"), "#sums", WORKERS, most=1)) for seed in range(30)} == {1}
    assert min(len(made.draw(Random(f"{seed}"), "#sums", WORKERS, most=5)) for seed in range(30)) > 1


def test_thrift_keeps_to_the_cheap(answers: Answers) -> None:
    made = worth(answers, (0.0, 10.0))
    thrifty = members(made, "#sums", level=1)
    assert thrifty["cy"] == 0
    assert thrifty.total() == 60, "a thrifty committee asks once"
    assert members(made, "#sums", level=0).total() > 60


def test_the_same_randomness_draws_the_same(answers: Answers) -> None:
    drawn = [
        [made.draw(Random(f"{seed}"), "#unheard-of", WORKERS) for seed in range(60)]
        for made in (worth(answers), worth(answers))
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 1


def test_four_different_workers_are_tried_together_only_if_no_worker_has_a_second_sample() -> None:
    once = given_answers([f"worker {number}" for number in range(5)], [[RIGHT] * 5] * 4, [1] * 5)
    for answers, different in ((once, 5), (replace(once, samples=2), 3)):
        tried = list(committees(answers))
        assert max(len(set(plan)) for plan in tried) == different
        assert max(len(plan) for plan in tried) == 5
        assert max(max(Counter(plan).values()) for plan in tried) == answers.samples


def test_samples_in_another_order_are_other_answers_of_equal_worth(answers: Answers) -> None:
    turned = answers.rotated(1)
    assert (turned.alone_QWR[:, :, 0] == answers.alone_QWR[:, :, 1]).all()
    assert (turned.alone_QWR[:, :, 1] == answers.alone_QWR[:, :, 0]).all()
    assert (turned.score_QW == answers.score_QW).all()
    assert answers.rotated(0) is answers


def test_an_answer_that_adds_nothing_is_seldom_drawn_even_where_nothing_is_saved() -> None:
    always_right = [[RIGHT, RIGHT, RIGHT]] * 20
    made = CommitteeValues(
        given_answers(WORKERS, always_right, [1, 1, 1]), dict.fromkeys(texts(20), "#sums"), (0.0,)
    )
    sizes = Counter(len(made.draw(Random(f"{seed}"), "#sums", WORKERS)) for seed in range(400))
    # Three committees of one, six pairs, one of three; each answer makes one rarer by a factor of e^-1/2.
    assert sizes[1] / 3 > sizes[2] / 6 > sizes[3] > 0


def test_of_two_who_differ_the_first_wins_so_he_who_seldom_answers_but_rightly_stands_first() -> None:
    # bob is right more often, but where ada answers at all she is right.
    rows = [[RIGHT if number % 2 else NONE, RIGHT if number % 10 < 6 else 1] for number in range(40)]
    made = CommitteeValues(
        given_answers(("ada", "bob"), rows, [1, 1]), dict.fromkeys(texts(40), "#sums"), (0.02,)
    )
    assert made.draw(Random("0"), "#sums", ("ada", "bob")) == ("ada", "bob")
    assert made.draw(Random("0"), "#sums", ("bob", "ada")) == ("ada", "bob")


# --- prices ------------------------------------------------------------------------------------------------


def texts(count: int) -> list[str]:
    return [f"question {number}" for number in range(count)]


def alone(made: CommitteeValues, cluster: str, team: Sequence[str], level: int = 0) -> str:
    """The one who is drawn alone, whatever the randomness."""
    ((name,),) = {made.draw(Random(f"{seed}"), cluster, team, level=level, most=1) for seed in range(20)}
    return name


def test_a_price_is_counted_in_what_an_answer_of_the_team_costs_and_not_in_dollars(answers: Answers) -> None:
    levels = (0.0, 0.02, 0.05)
    cheap, dear = (worth(replace(answers, cost_QW=answers.cost_QW * factor), levels) for factor in (1.0, 1e4))
    for level in range(len(levels)):
        for seed in range(20):
            drawn = [made.draw(Random(f"{seed}"), "#sums", WORKERS, level=level) for made in (cheap, dear)]
            assert drawn[0] == drawn[1]


def test_who_is_dear_among_the_cheap_is_cheap_among_the_dear() -> None:
    # Right 6, 8 and 1 times of 10, for 1, 3 and 20 dollars.
    rows = [[int(n % 10 >= 6), int(n % 10 >= 8), int(n % 10 >= 1)] for n in range(40)]
    made = CommitteeValues(
        given_answers(WORKERS, rows, [1, 3, 20]), dict.fromkeys(texts(40), "#sums"), (0.0, 0.3)
    )
    assert alone(made, "#sums", ("ada", "bob")) == "bob"
    # An answer at the mean price, 2 dollars, must bring 0.3: the 2 dollars more do not bring so much.
    assert alone(made, "#sums", ("ada", "bob"), level=1) == "ada"
    # The mean is 8 dollars: 2 dollars more need not bring a tenth.
    assert alone(made, "#sums", WORKERS, level=1) == "bob"
    # Who is not of the recording has no price and moves no mean.
    assert alone(made, "#sums", ("ada", "bob", "a stranger"), level=1) == "ada"


def test_a_worker_is_dear_where_its_answers_are_long() -> None:
    dollars = [[9, 1] if number < 20 else [1, 9] for number in range(40)]
    cluster_of = {text: KINDS[number // 20] for number, text in enumerate(texts(40))}
    rows = [[RIGHT, RIGHT]] * 40
    made = CommitteeValues(given_answers(("ada", "bob"), rows, dollars), cluster_of, (0.1,))
    assert alone(made, "#sums", ("ada", "bob")) == "bob"
    assert alone(made, "#words", ("ada", "bob")) == "ada"


# --- trust -------------------------------------------------------------------------------------------------


def pseudo_count(chance: Sequence[Sequence[float]], questions: Sequence[int], seed: int) -> float:
    """Of workers who are right on each kind by chance, with so many questions of each."""
    rng = Random(f"trust/{seed}")
    rows, clusters = [], []
    for cluster, (chances, count) in enumerate(zip(chance, questions, strict=True)):
        for _ in range(count):
            rows.append([RIGHT if rng.random() < share else 1 + who for who, share in enumerate(chances)])
            clusters.append(f"#{cluster}")
    names = [f"worker {number}" for number in range(len(chance[0]))]
    return CommitteeValues(
        given_answers(names, rows, [1] * len(names)), dict(zip(texts(len(rows)), clusters, strict=True)), ()
    ).pseudo_count


def test_kinds_that_say_nothing_are_trusted_little_against_what_holds_for_all() -> None:
    chance = [[0.6, 0.5, 0.5]] * 200
    assert median(pseudo_count(chance, [6] * 200, seed) for seed in range(7)) >= 12


def test_kinds_that_decide_are_trusted_although_they_have_few_questions() -> None:
    # Nine tenths of all questions are of one kind, and the other kinds need somebody else.
    chance = [[0.95, 0.05, 0.05], *[[0.05, 0.95, 0.05], [0.05, 0.05, 0.95]] * 3]
    assert median(pseudo_count(chance, [270, *[5] * 6], seed) for seed in range(7)) <= 3


def test_a_pseudo_count_is_chosen_even_if_all_do_equally_well() -> None:
    assert pseudo_count([[1.0, 1.0]], [1], 0) > 0


# --- votes that stop early ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("early_stop", "drawn"), [(False, ("cy",)), (True, ("cy", "ada", "bob"))])
def test_an_expensive_worker_is_called_last_where_votes_stop_early(
    early_stop: bool, drawn: tuple[str, ...]
) -> None:
    """ada and bob are both right on six questions of ten, and cy, who costs nine times as much, on all.

    Asked in turn, all three cost 2 dollars and in four cases of ten 9 more: less than cy alone.
    """
    wrong = ([1, RIGHT, RIGHT], [RIGHT, 1, RIGHT])
    rows = [[RIGHT] * 3 if number % 10 > 3 else wrong[number % 2] for number in range(40)]
    answers = given_answers(WORKERS, rows, [1, 1, 9])
    made = CommitteeValues(answers, dict.fromkeys(texts(40), "#sums"), (0.08,), early_stop=early_stop)
    assert {made.draw(Random(f"{seed}"), "#sums", WORKERS) for seed in range(20)} == {drawn}
