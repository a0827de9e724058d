"""A suite of routers: of recorded workers they know which answers are equal, and what cannot run is refused first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from evals.recorded_world import Row, write_recording
from podium.config import build
from podium.errors import UsageError
from podium.evals.suite.comparisons import evaluations_of
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import run_suite
from podium.evals.suite.suite_settings import SuiteSettings
from podium.recordings import RecordedQuestion, RecordedResponse

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
                RecordedResponse(
                    name, 0, "Answer: yes" if w in right else f"Answer: no, {name}", score=float(w in right)
                )
                for w, name in enumerate(NAMES)
            ],
        )


def over(pool: Path, planner: str, recording: Path) -> SuiteSettings:
    settings = {
        "processes": 1,
        "max_steps": 6,
        "planner": [{"planner": planner}],
        "tasks": [{"name": str(recording)}],
        "pool": [{"name": str(pool)}],
    }
    return build(settings, SuiteSettings)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A pool of recorded workers, and their recording."""
    recording = tmp_path / "made.parquet"
    write_recording(recording, two_of_five())
    replay = 'kind = "replay"\nrecording = "made.parquet"\n'
    pool = tmp_path / "pool.toml"
    pool.write_text("\n".join(f'[[worker]]\nname = "{name}"\n{replay}' for name in NAMES))
    return pool, recording


def test_two_equal_answers_of_five_are_known_to_win_a_vote(
    tmp_path: Path, recorded: tuple[Path, Path]
) -> None:
    """Each worker alone is right on 40 %, and no vote has a majority of right answers; yet two equal ones win."""
    pool, recording = recorded
    checked = asyncio.run(check_suite(over(pool, ROUTER, recording), tmp_path / "run"))
    results = asyncio.run(run_suite(checked, tmp_path / "run"))
    (table,) = checked.tables
    evaluation = evaluations_of(table, results)[ROUTER]
    assert len(evaluation.rollouts) == 20
    assert evaluation.accuracy.mean > 0.7


@pytest.mark.parametrize(
    ("planner", "said"),
    [
        ("router:rigde:0", "did you mean 'ridge'?"),
        ("threshold:worker-0>worker-1:rigde:0.3", "did you mean 'ridge'?"),
        ("threshold:worker-0>worker-1:ridge:30", "a number from 0 to 1"),
        ("masrouter-scored:much", "a number from 0 on"),
    ],
)
def test_suite_refuses_an_unknown_router_name_before_running(
    recorded: tuple[Path, Path], planner: str, said: str
) -> None:
    pool, recording = recorded
    with pytest.raises(UsageError) as refused:
        asyncio.run(check_suite(over(pool, planner, recording), pool.parent / "run"))
    assert said in str(refused.value)
