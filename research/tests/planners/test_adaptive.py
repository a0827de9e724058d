"""Adaptive-consistency: it asks as many samples as the paper's criterion asks for."""

from itertools import product
from pathlib import Path
from random import Random

import pytest
from scipy.special import betainc

from evals.suite.suites import data, run
from planners.planner_teams import answered, called, team
from podium.team.team_file import open_pool
from podium_research.planners.adaptive import AdaptiveConsistency, is_stable


def test_the_criterion_is_the_papers_integral_over_a_beta_distribution():
    for leading, second in product(range(30), range(12)):
        if leading >= second:
            assert is_stable(leading, second) == (1 - betainc(leading + 1, second + 1, 0.5) >= 0.95)


@pytest.mark.parametrize("seed", range(8))
async def test_adaptive_rounds_draw_as_many_samples_as_sequential_draws(seed):
    random = Random(f"adaptive/{seed}")
    drawn = random.choices("456", (6, 3, 1), k=20)
    counts: dict[str, int] = {}
    alone = 0
    while alone < 20:
        most, *others = sorted(counts.values(), reverse=True) or [0]
        if is_stable(most, max(others, default=0)):
            break
        counts[drawn[alone]] = counts.get(drawn[alone], 0) + 1
        alone += 1
    trace = await answered(AdaptiveConsistency("ada", 20), team(ada=[f"Answer: {one}" for one in drawn]))
    assert sum(map(len, called(trace))) == alone
    assert trace.answer == f"Answer: {max(counts, key=lambda one: counts[one])}"
    assert seed != 0 or len(called(trace)) < alone


def test_the_most_frequent_plan_is_of_a_question_with_all_rounds_left(tmp_path: Path) -> None:
    _, pool = data()
    worker = open_pool(pool).answering[0]
    planner = {"planner": f"adaptive-consistency:{worker}:9", "controls": ["most-frequent-plan"]}
    found = run(tmp_path, questions=3, processes=1, planner=[planner])
    first_plans = {
        len(answer["trace"]["rounds"][0]["plan"]["decision"]["steps"])
        for key, answers in found.items()
        for answer in answers
        if key.startswith("adaptive-consistency")
    }
    assert first_plans == {4 + 1}  # Four answers, which may agree, and the vote; also of the control.
