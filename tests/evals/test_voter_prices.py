"""What a vote costs in numbers is what it costs when it is run, also where not everybody of the pool was measured."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from podium.evals.plan_selection import voter_prices
from podium.evals.rating import read_answers
from podium.executor import ExecutionSettings
from podium.planners import Committee
from podium.planners.answer_matrix import committee_cost
from podium.recordings import RecordedQuestion, RecordedResponse
from podium.team import Runner
from podium.types import Price, Profile, Rating
from podium.workers import Pool, VoteWorker
from podium.workers.ratings import Ratings, Tally
from recorded_world import TOKENS, replayed, tasks_of, write_recording

LISTED = {"ada": 1.0, "bob": 2.0, "cy": 4.0, "dan": 8.0}
MEASURED = {"ada": 3.0, "bob": 2.0, "cy": 1.0}
"""Dollars an answer, in the other order; dan was not measured."""


def profiles() -> list[Profile]:
    made = []
    for name, price in LISTED.items():
        cost = MEASURED.get(name)
        rating = None if cost is None else Rating(cluster="", accuracy=0.5, cost_usd=cost, questions=9)
        made.append(Profile(name=name, price=Price(output=price), rating=rating))
    return made


def test_a_vote_compares_its_voters_as_measured_or_all_as_listed() -> None:
    prices = voter_prices([profiles()])
    measured, listed = prices((0, 2))[0], prices((0, 3))[0]
    assert measured[[0, 1, 2]].tolist() == [3.0, 2.0, 1.0]
    assert listed.tolist() == sorted(listed)
    assert (prices((3,)) == prices((0, 1, 2, 3))).all()


@pytest.mark.parametrize("members", [(0, 1, 2), (2, 0, 1), (0, 1, 3), (0, 3, 2), (0, 0, 2), (0, 1, 2, 3)])
async def test_computed_cost_equals_the_paid_cost_beside_an_unmeasured_worker(
    tmp_path: Path, members: tuple[int, ...]
) -> None:
    random = Random("prices")
    rows = [
        (
            RecordedQuestion(f"q{n}", f"Question {n}?", None, None, "train"),
            [
                RecordedResponse(name, 0, f"Answer: {random.choice('ab')}", score=1.0, output_tokens=TOKENS)
                for name in LISTED
            ],
        )
        for n in range(10)
    ]
    recording = write_recording(tmp_path / "r.parquet", rows)
    workers, tasks = replayed(recording, LISTED), tasks_of(recording, "train")
    tallies = {
        name: {"": Tally(right=5, questions=10, cost_usd=10 * cost)} for name, cost in MEASURED.items()
    }
    pool = Pool([*workers, VoteWorker()], Ratings(clusters={}, workers=tallies))
    told = voter_prices([pool.profiles_for(task.question.text)[:4] for task in tasks])
    answers = await read_answers(tasks, workers)
    counted = committee_cost(answers, members, early_stop=True, price_QW=told(members))
    names = tuple(answers.workers[member] for member in members)
    runner = Runner(Committee(names), pool, settings=ExecutionSettings(early_stop=True))
    paid = [(await runner.answer(task.question, seed="0")).cost_usd for task in tasks]
    assert counted.tolist() == pytest.approx(paid)
