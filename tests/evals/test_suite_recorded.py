"""A suite over recorded workers: routers of votes know which answers are equal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

from recorded_world import Row, write_recording

from podium.config import build
from podium.evals.suite.manifest import Manifest
from podium.evals.suite.opening import check_suite
from podium.evals.suite.run import run_suite
from podium.evals.suite.settings import SuiteSettings
from podium.evals.suite.tables import evaluations_of
from podium.recordings import RecordedQuestion, Response

ROUTER = "committee-router:neighbours:0"
NAMES = [f"worker-{number}" for number in range(5)]


def two_of_five() -> Iterator[Row]:
    """Questions that two of five workers answer rightly, by chance, while three are wrong in different ways."""
    for number in range(60):
        question = RecordedQuestion(
            f"q{number}", f"Question {number}?", "yes", None, "train" if number < 40 else "test"
        )
        right = set(Random(number).sample(range(5), 2))
        yield (
            question,
            [
                Response(
                    name, 0, "Answer: yes" if w in right else f"Answer: no, {name}", score=float(w in right)
                )
                for w, name in enumerate(NAMES)
            ],
        )


def test_two_equal_answers_of_five_are_known_to_win_a_vote(tmp_path: Path) -> None:
    """Each worker alone is right on 40 %, and no vote has a majority of right answers; yet two equal ones win."""
    recording = tmp_path / "made.parquet"
    write_recording(recording, two_of_five())
    replay = 'kind = "replay"\nrecording = "made.parquet"\n'
    (tmp_path / "pool.toml").write_text("\n".join(f'[[worker]]\nname = "{name}"\n{replay}' for name in NAMES))
    settings = {
        "processes": 1,
        "max_steps": 6,
        "planner": [{"name": ROUTER}],
        "tasks": [{"name": str(recording)}],
        "pool": [{"name": str(tmp_path / "pool.toml")}],
    }
    checked = asyncio.run(check_suite(build(settings, SuiteSettings)))
    results = asyncio.run(run_suite(checked, tmp_path / "run"))
    (table,) = Manifest.of(checked, tmp_path / "run").tables
    evaluation = evaluations_of(table, results)[ROUTER]
    assert len(evaluation.rollouts) == 20
    assert evaluation.accuracy.mean > 0.7
