"""Planners that ask for several answers: who is asked, when they stop, and which answer wins."""

from itertools import product

import numpy as np
import pytest

from known_answers import known_answers
from planner_teams import answered, called, team
from podium.errors import ConfigError
from podium.planners import open_baseline
from podium.planners.cascade import Escalation
from podium.planners.judged import BEST, MOST_CONSISTENT, JudgedPlanner, read_verdict
from podium.planners.voting import vote_weight
from podium.types import Profile

ANSWERS = ["Because.\nAnswer: 4", "Answer: 5", "Answer: 4."]


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("Step 0 errs.\nBest: 1\nAnswer: 5", "Answer: 5"),
        ("**Best response: step 2**", "Answer: 4."),
        ("Best: 7", "Because.\nAnswer: 4"),
        ("They are all fine.", "Because.\nAnswer: 4"),
    ],
)
async def test_the_judge_names_the_answer_or_the_vote_decides_if_unreadable(verdict, answer):
    judge = {BEST: verdict}
    trace = await answered(JudgedPlanner("best-of-n", ("ada",) * 3, "bo", BEST), team(ada=ANSWERS, bo=judge))
    assert trace.answer == answer
    assert called(trace) == [["ada", "ada", "ada", "bo"]]


async def test_universal_self_consistency_may_choose_by_the_worker_itself():
    planner = JudgedPlanner("universal-self-consistency", ("ada", "ada"), "ada", MOST_CONSISTENT)
    trace = await answered(planner, team(ada=["A poem.", "An ode.", "Best: 1\nAnswer: An ode."]))
    assert (trace.answer, called(trace)) == ("An ode.", [["ada"] * 3])


def test_a_second_judge_is_refused():
    workers = [Profile(name=name) for name in ("ada", "bo", "cy")]
    with pytest.raises(ConfigError, match="with one JUDGE"):
        open_baseline("best-of-n:2xada>bo+cy", workers)


def test_a_verdict_may_not_name_a_response_that_is_missing():
    assert read_verdict("Best: 1", ["a", None]) is None
    assert read_verdict("Best: 0\nNo.\nbest: 1", ["a", "b"]) == 1


@pytest.mark.parametrize(
    ("answers", "rounds", "answer"),
    [
        ("44--", [["a", "b"]], "4"),
        ("454-", [["a", "b"], ["c"]], "4"),
        ("4567", [["a", "b"], ["c"], ["d"]], "7"),
        ("4565", [["a", "b"], ["c"], ["d"]], "5"),
        (" 44-", [["a", "b"], ["c"]], "4"),
    ],
)
async def test_the_next_worker_is_asked_while_there_is_no_majority(answers, rounds, answer):
    pool = team(
        **{
            name: [f"Answer: {given}"] if given != " " else []
            for name, given in zip("abcd", answers, strict=True)
        }
    )
    trace = await answered(Escalation(("a", "b", "c", "d")), pool)
    assert (called(trace), trace.answer) == (rounds, f"Answer: {answer}")


async def test_equal_json_in_another_order_is_a_majority():
    pool = team(a=['{"x": 1, "y": 2}'], b=['{\n "y": 2,\n "x": 1\n}'], c=["Answer: 5"])
    trace = await answered(Escalation(("a", "b", "c")), pool)
    assert called(trace) == [["a", "b"]]


@pytest.mark.parametrize("wrong", [1, 2, 9])
def test_the_weights_of_a_vote_give_the_likeliest_answer(wrong):
    score_QW = np.zeros((8, 3))
    for worker, right in enumerate((8, 5, 3)):
        score_QW[:right, worker] = 1
    scored = known_answers(("a", "b", "c"), ("?",) * 8, score_QW, score_QW)
    weights = [vote_weight(scored, name, wrong_answers=wrong) for name in "abc"]
    shares = (0.9, 0.6, 0.4)
    for votes in product(range(min(wrong + 1, 3)), repeat=3):
        likelihood = {
            answer: np.prod(
                [p if vote == answer else (1 - p) / wrong for p, vote in zip(shares, votes, strict=True)]
            )
            for answer in votes
        }
        weight = {
            answer: sum(w for w, vote in zip(weights, votes, strict=True) if vote == answer)
            for answer in votes
        }
        winner = max(votes, key=weight.__getitem__)
        assert likelihood[winner] == pytest.approx(max(likelihood.values()), rel=1e-3)


def test_a_vote_has_no_weight_for_a_worker_without_scored_answers():
    scored = known_answers(("a",), ("?",), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(ConfigError, match=r"no scored answers of 'b'.*there are answers of a"):
        open_baseline("weighted-vote:a+b", [Profile(name="a"), Profile(name="b")], scored=scored)
