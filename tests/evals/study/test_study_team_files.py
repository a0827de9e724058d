"""What a study computes is what its planners do, and what it writes can be opened."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from random import Random

import numpy as np
import pytest

from podium.cli import run
from podium.evals.evaluation import evaluate
from podium.evals.rating import read_answers
from podium.evals.study.methods import MethodResult, clustered_ratings, methods_for
from podium.evals.study.result import Study
from podium.evals.study.team_files import write_team_file
from podium.executor import ExecutionSettings
from podium.planners import open_baseline
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter
from podium.tasks.recorded import RecordedTasks
from podium.team import Runner
from podium.team.opened_planner import open_planner
from podium.team.team_file import TeamReference, open_pool
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium_testing import Answer, FaultServer
from scripted_team import open_team
from tiny_policy import write_policy

KNOWS = {"ada": "rivers", "bob": "planets", "cy": "metals"}
POOL = """
[[worker]]
name = "ada"
kind = "replay"
recording = "made/r.parquet"
price = { output = 4.0 }

[[worker]]
name = "bob"
kind = "replay"
recording = "made/r.parquet"
price = { output = 1.0 }

[[worker]]
name = "cy"
kind = "replay"
recording = "made/r.parquet"
price = { output = 2.0 }
"""


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Three workers, each of which knows its own subject and errs on half of the others."""
    monkeypatch.chdir(tmp_path)
    Path("made").mkdir()
    random = Random("study-serving")
    with RecordingWriter() as writer:
        for n in range(90):
            subject = list(KNOWS.values())[n % 3]
            writer.add_question(
                RecordedQuestion(f"q{n}", f"Tell about {subject}, number {n}.", "1", None, "train")
            )
            for name, known in KNOWS.items():
                answer = 1 if known == subject or random.random() < 0.5 else random.randint(2, 4)
                text = f"Answer: {answer}"
                response = RecordedResponse(
                    name, 0, text, f"{answer}", float(answer == 1), 10, random.randint(5, 50)
                )
                writer.add(f"q{n}", response)
        writer.write(Path("made/r.parquet"), name="made")
    Path("my.toml").write_text(POOL)
    return Recording.open(Path("made/r.parquet"))


async def test_computed_score_and_cost_of_a_choice_match_a_real_run(
    recording: Recording,
) -> None:
    pool = open_pool("my.toml")
    workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    tasks = list(RecordedTasks(recording, "train", pool=pool))
    answers = await read_answers(tasks, workers)
    chosen = [method.choose(answers) for method in methods_for(answers)]
    names = set()
    for one in filter(None, chosen):
        rated = Pool(
            [*open_pool("my.toml"), *(w for w in open_team() if w.profile.name == "vote")],
            one.ratings,
        )
        runner = Runner(
            open_baseline(one.planner.name, rated.profiles),
            rated,
            budget=Budget(rounds=one.planner.rounds),
            settings=ExecutionSettings(early_stop=True),
        )
        ran = await evaluate(runner, tasks)
        score_Q, cost_Q = one.figures(answers)
        assert list(ran.right.values()) == score_Q.tolist(), one.planner
        assert ran.cost_usd == pytest.approx(cost_Q.mean()), one.planner
        names.add(one.planner.name.partition(":")[0])
    assert names >= {"single", "committee", "cascade", "by-ratings"}


def test_written_settings_open_with_all_that_the_planner_needs(
    recording: Recording,
) -> None:
    pool = open_pool("my.toml")
    tasks = list(RecordedTasks(recording, "train", pool=pool))
    workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    answers = asyncio.run(read_answers(tasks, workers))
    Path("found").mkdir()
    for method in methods_for(answers):
        chosen = method.choose(answers)
        if chosen is None:
            continue
        result = MethodResult(method.name, np.zeros(90), np.zeros(90), chosen)
        file = Path("found/team.toml")
        write_team_file(file, result, pool, pool_name="./my.toml", ratings=clustered_ratings(answers))
        written = tomllib.loads(file.read_text())
        settings = TeamReference(str(file)).read()
        served = open_pool(settings)
        planner = open_planner(settings, served, seed="0").planner
        assert planner.name == chosen.planner.name
        assert served.names[:3] == ("ada", "bob", "cy")
        assert written.get("budget", {}).get("rounds", 1) == chosen.planner.rounds
        needs = chosen.planner.name.startswith(("committee", "cascade"))
        assert ("vote" in served.names, served.ratings is not None) == (needs, chosen.ratings is not None)


def test_a_recorded_worker_with_one_answer_is_not_asked_twice(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    study = ("study", "--pool", "my.toml", "--tasks", "made/r.parquet", "--questions", "30", "--run", "found")
    assert run([*study, "--json"]) == 0
    result = Study.model_validate_json(capsys.readouterr().out)
    assert (result.questions, result.recorded, result.bounds.repeated, result.bounds.again) == (
        30,
        True,
        0,
        None,
    )
    assert run([*study, "--repeats", "2"]) == 2
    assert "--repeats 2" in capsys.readouterr().err


def test_dollars_of_a_live_worker_beside_recorded_ones_were_paid(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultServer(Answer("Answer: 1", input_tokens=10, output_tokens=1000)).in_thread() as server:
        Path("mixed.toml").write_text(
            f'{POOL}\n[[worker]]\nname = "dan"\nkind = "openai"\nmodel = "d"\nbase_url = "{server.url}"\n'
            "price = { input = 0, output = 1.0 }\n"
        )
        study = ("study", "--pool", "mixed.toml", "--tasks", "made/r.parquet", "--questions", "10")
        assert run([*study, "--run-budget-usd", "1", "--run", "found", "--json", "--yes"]) == 0
    result = Study.model_validate_json(capsys.readouterr().out)
    assert (result.recorded, result.replayed) == (False, ("ada", "bob", "cy"))
    assert result.spent_usd > 0.01
    assert "no worker was paid" not in Path("found/study.md").read_text()


def test_a_trained_conductor_is_run_over_the_recorded_answers(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    # The vote comes first, then ada.
    write_policy(
        Path("policy"), 'model_id = [1]\nsubtasks = ["Answer the whole question."]\naccess_list = [[]]\n'
    )
    study = ("study", "--pool", "my.toml", "--tasks", "made/r.parquet", "--run", "found", "--json")
    assert run([*study, "--conductor", "policy"]) == 0
    rows = {row.label: row for row in Study.model_validate_json(capsys.readouterr().out).rows}
    trained = rows["trained Conductor that reads ratings"]
    assert trained.planner is None
    assert trained.accuracy == rows["ada alone"].accuracy
    assert trained.cost_usd == pytest.approx(rows["ada alone"].cost_usd)
