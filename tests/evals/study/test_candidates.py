"""The choice of a pool from tested candidates."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from podium.calls import CallState
from podium.errors import GraderError
from podium.evals.study.candidates import Candidate, QuestionKinds, ask_candidates, choose, value_threshold
from podium.evals.study.questions import StudyQuestions
from podium.tasks.task import Grade, Task
from podium.team.settings import TeamSettings
from podium.types import Price, Profile, Question
from podium.workers import Pool
from podium.workers.function import FunctionWorker
from podium.workers.ratings import Tally

WEIGHTS = {"sums": 1.0, "dates": 2.0, "code": 4.0}


def candidate(worker: str, passed: set[str], cost_usd: float) -> Candidate:
    tallies = {kind: Tally(right=float(kind in passed), questions=1, cost_usd=0.0) for kind in WEIGHTS}
    paid = Tally(right=0.0, questions=1, cost_usd=cost_usd)
    return Candidate(worker=worker, tallies={**tallies, "paid": paid})


def by_the_formula(
    candidates: list[Candidate], weights: dict[str, float], budget: float, most: int | None
) -> list[str]:
    """The rule once more, with the published formula written out and the kinds as a list."""
    useful = [c for c in candidates if c.passed and c.cost_usd]
    if not useful:
        low = high = 1.0
    else:
        low = 1 / max(c.cost_usd for c in useful)
        high = sum(weights.values()) / min(c.cost_usd for c in useful)
    open_kinds, names, z = list(weights), [], 0.0
    for cost, name in sorted((c.cost_usd, c.worker) for c in candidates):
        passed = next(c.passed for c in candidates if c.worker == name)
        value = sum(weights[kind] for kind in open_kinds if kind in passed)
        threshold = (high * math.e / low) ** z * (low / math.e)
        if value and (most is None or len(names) < most) and (not cost or value / cost >= threshold):
            open_kinds = [kind for kind in open_kinds if kind not in passed]
            names.append(name)
            z = min(1.0, z + cost / budget)
    return names


def test_candidate_choice_follows_the_published_rule() -> None:
    drawn = Random("compose")
    sizes = set()
    for _ in range(500):
        candidates = [
            candidate(
                f"m{number}",
                {kind for kind in WEIGHTS if drawn.random() < 0.4},
                drawn.choice([0.0, 0.01, 0.03, 0.2, 0.7]) * drawn.random(),
            )
            for number in range(drawn.randint(1, 8))
        ]
        budget, most = drawn.choice([0.05, 0.3, 5.0]), drawn.choice([None, 1, 2])
        found = [choice.worker for choice in choose(candidates, WEIGHTS, budget, most) if choice.chosen]
        assert found == by_the_formula(candidates, WEIGHTS, budget, most)
        sizes.add(len(found))
    assert sizes == {0, 1, 2, 3}


def test_value_threshold_rises_from_below_the_lowest_to_the_highest() -> None:
    assert value_threshold(0.0, 2.0, 50.0) == pytest.approx(2.0 / math.e)
    assert value_threshold(1.0, 2.0, 50.0) == pytest.approx(50.0)


def test_a_dear_worker_for_a_light_kind_is_chosen_only_by_a_large_budget() -> None:
    candidates = [
        candidate("cheap", {"code", "dates"}, 0.30),
        candidate("dear", {"sums"}, 0.50),
    ]
    assert [choice.chosen for choice in choose(candidates, WEIGHTS, 100.0)] == [True, True]
    cheap, dear = choose(candidates, WEIGHTS, 0.80)
    assert (cheap.chosen, dear.chosen) == (True, False)
    assert dear.reason.startswith("too dear for sums: worth 1, and ")


async def test_a_test_without_a_verdict_is_in_no_rating_but_was_paid(tmp_path: Path) -> None:
    async def judges_two_of_three(response: str, gold: str) -> Grade:
        if gold == "0":
            raise GraderError("down")
        return Grade(1.0)

    tasks = tuple(Task(f"t/{n}", Question(text=f"Add {n}."), str(n), judges_two_of_three) for n in range(3))
    pool = Pool([FunctionWorker(Profile(name="ada", price=Price(output=1e6)), lambda messages: "Answer: 3")])
    table = StudyQuestions("mine", tasks, "golds").table(tmp_path, TeamSettings(pool="mine"), pool)
    (ada,) = await ask_candidates(table, QuestionKinds.of(tasks, 1), CallState())
    (tally,) = ada.tallies.values()
    assert (tally.right, tally.questions) == (2, 2)
    assert tally.cost_usd == pytest.approx(ada.cost_usd * 2 / 3)
    assert ada.cost_usd > 0
