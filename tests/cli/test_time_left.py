"""How long the rest takes comes from the calls that ended, and is said without a terminal too."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.found_team import find_team
from podium.cli.progress import TimeLeft, show_progress
from podium.cli.team_options import RunOptions
from podium.evals.study.questions import load_study_questions
from podium.evals.study.study_inputs import StudySettings
from podium.evals.study.study_run import StudyRun
from podium.team.team_file import open_pool
from podium_testing import FaultServer, Rule, SlowFirstByte

SLOW_S = 0.05


@given(pace=st.floats(0.1, 100), kept=st.integers(0, 50), ended=st.integers(1, 50), more=st.integers(0, 50))
def test_time_left_is_estimated_from_the_pace_so_far(pace: float, kept: int, ended: int, more: int) -> None:
    now = 0.0
    left = TimeLeft(lambda: now)
    left.update(kept, kept + ended + more)
    assert left.seconds is None
    now = pace * ended
    left.update(kept + ended, kept + ended + more)
    assert left.seconds == pytest.approx(pace * more)


def test_time_estimate_restarts_for_other_work() -> None:
    left = TimeLeft()
    left.update(0, 4)
    left.update(3, 4)
    assert str(left) == "about 0 s left"
    left.update(1, 9)
    assert str(left) == "no estimate yet"


def test_time_left_is_printed_as_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(every_s=0.01) as show:
        show("Asking ada", 3, 1200)
        said, until = "", time.monotonic() + 30
        while "\n" not in said and time.monotonic() < until:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.splitlines()[0] == "Asking ada: 3 of 1,200, no estimate yet"


def test_a_study_of_slow_workers_is_estimated_from_their_answers(tmp_path: Path) -> None:
    questions = "".join(f"What is {n} plus 1000?,{n + 1000}\n" for n in range(6))
    (tmp_path / "mine.csv").write_text("question,answer\n" + questions)
    with FaultServer("Answer: 1003", rules=[Rule(fault=SlowFirstByte(seconds=SLOW_S))]).in_thread() as server:
        worker = (
            '[[worker]]\nname = "{0}"\nkind = "openai"\nmodel = "{0}"\nbase_url = "{1}"\n'
            "price = {{ input = 1, output = 1 }}\n"
        )
        pool_file = tmp_path / "my.toml"
        pool_file.write_text("".join(worker.format(name, server.url) for name in ("ada", "bob")))
        team = find_team(RunOptions(pool=str(pool_file), run_budget_usd=1)).read()
        pool, shown = open_pool(team), list[tuple[str, int, int]]()
        run = StudyRun(
            team,
            pool,
            load_study_questions(str(tmp_path / "mine.csv")),
            StudySettings(concurrency=1),
            tmp_path / "out",
        )
        expected = run.estimate()
        assert expected.seconds is None
        left, estimates = TimeLeft(), list[tuple[float | None, int]]()

        def on_progress(what: str, done: int, total: int) -> None:
            shown.append((what, done, total))
            left.update(done, total)
            estimates.append((left.seconds, total - done))

        async def measure() -> None:
            run.open_folder({})
            try:
                await run.measure(expected, on_progress=on_progress)
            finally:
                await pool.close()

        asyncio.run(measure())
    asked = [0, *(index for index, (what, _, _) in enumerate(shown) if what.startswith(("ada: ", "bob: ")))]
    assert shown[0] == ("Asking", 0, 14)
    assert {shown[index][0].split(":")[0] for index in asked[1:]} == {"ada", "bob"}
    assert all(shown[index][0].endswith("so far") for index in asked[1:])
    assert [shown[index][1] for index in asked] == list(range(15))
    assert estimates[0][0] is None
    for index in asked[1:]:
        seconds, missing = estimates[index]
        assert seconds is not None
        assert seconds >= 0.9 * SLOW_S * missing
