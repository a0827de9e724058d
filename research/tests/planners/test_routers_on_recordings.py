"""A router that counts dollars does in the executor what was computed from recorded answers."""

from pathlib import Path

import numpy as np
import pytest

from evals.recorded_world import SAMPLES, pool_of, tasks_of, world, write_recording
from podium.evals import evaluate
from podium.evals.rating import measurable_workers, read_answers
from podium.planners import open_baseline
from podium.planners.answer_matrix import committee_accuracy, committee_cost
from podium.team import Runner
from podium_research.planners.learned_routers import PricedRouter


async def test_committee_router_run_matches_its_computed_accuracy_and_cost(
    tmp_path: Path,
) -> None:
    recording = write_recording(tmp_path / "made.parquet", world())
    pool = pool_of(recording)
    tuning, tasks = tasks_of(recording, "train"), tasks_of(recording, "test")
    workers = measurable_workers(pool, tuning)
    scored = await read_answers(tuning, workers)
    router = open_baseline("committee-router:ridge:0", pool.profiles, scored=scored)
    assert isinstance(router, PricedRouter)
    answers = await read_answers(tasks, workers)
    chosen = router.choose(answers.texts)
    assert max(len(committee.workers) for committee in chosen) > 1
    members = [tuple(map(answers.workers.index, committee.workers)) for committee in chosen]
    right = np.mean([committee_accuracy(answers, own)[q] for q, own in enumerate(members)])
    dollars = np.mean([committee_cost(answers, own)[q] for q, own in enumerate(members)])
    found = await evaluate(Runner(router, pool), tasks, repeats=SAMPLES)
    assert (found.accuracy.mean, found.cost_usd) == pytest.approx((right, dollars))
