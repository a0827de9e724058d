"""Inspect's evaluations over an orchestrated pool, against Podium's own on the same questions."""

import asyncio
import json
from pathlib import Path

import pytest
from inspect_ai import eval

import podium.inspect_provider.registry  # noqa: F401 - as Inspect does, by this package's entry point
from podium.cli import run
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.tasks.sets.inspect_task import InspectTask
from scripted_team import write_calculators, write_sums
from tiny_policy import write_policy

QUESTIONS = Path(__file__).parent / "sum_questions.py"
GUS = 'model_id = [4]\nsubtasks = ["Answer the question."]\naccess_list = [[]]\n'
"""The worker who is fair at everything gets the question."""


@pytest.fixture
def table(tmp_path):
    """The questions, whose workers and Conductor stand in calculators.toml."""
    table = write_sums(tmp_path / "sums.jsonl", 40)
    team = write_calculators(
        tmp_path / "calculators.toml", list(open_tasks(str(table), "test", size=20, seed=0))
    )
    policy = write_policy(tmp_path / "policy", GUS)
    team.write_text(f'conductor.checkpoint = "{policy}"\n{team.read_text()}')
    return str(table)


def inspect_eval(name, table, *, size=20, **settings):
    """The log of `inspect eval sum_questions.py@sums --model podium/<name>`."""
    (log,) = eval(
        f"{QUESTIONS}@sums",
        model=f"podium/{name}",
        model_args=settings,
        task_args={"table": table, "size": size},
        log_dir="logs",
        display="none",
    )
    return log


def test_an_inspect_evaluation_of_20_questions_is_as_right_as_podiums_own(table, capsys):
    """Seeds are named alike (`evaluation/<seed>/<question>/<repeat>`), so equality is exact, even of random plans."""
    command = (
        "eval",
        "--team",
        "calculators.toml",
        "--tasks",
        table,
        "--questions",
        "20",
        "eval.tuning=0",
        "--json",
    )
    assert run(command) == 0
    own = {row["label"]: row["accuracy"]["mean"] for row in json.loads(capsys.readouterr().out)["rows"]}
    for planner, label in [("conductor", "Conductor"), ("random", "Random plans")]:
        log = inspect_eval(planner, table, pool="calculators.toml")
        assert log.status == "success", log.error
        assert log.results.scores[0].metrics["accuracy"].value == own[label]
    assert 0 < own["Random plans"] != own["Conductor"] < 1


def test_every_sample_in_inspects_log_names_its_trace(table):
    log = inspect_eval("calculators.toml", table, size=3, **{"plan.planner": "single:egon"})
    with TraceStore("kept/traces.sqlite", create=False) as store:
        for sample in log.samples:
            trace = store.get(sample.output.metadata["trace_id"])
            assert (trace.question.text, trace.answer) == (sample.input, sample.output.completion)
        assert len(store.list()) == 3
    usage = log.stats.model_usage["podium/calculators.toml"]
    assert usage.total_cost == pytest.approx(sum(s.output.metadata["cost_usd"] for s in log.samples))
    assert usage.total_tokens > 0


def test_a_question_that_failed_is_an_error_of_its_sample(table):
    log = inspect_eval("calculators.toml", table, size=2, **{"budget.calls": 0})
    assert log.status == "error"
    assert "The budget of 0 calls is used up." in log.error.message


def test_podium_grades_inspect_answers_as_inspect_does(table):
    log = inspect_eval("calculators.toml", table, **{"plan.planner": "single:egon"})
    of_ours = InspectTask(task=f"{QUESTIONS}@sums", args={"table": table, "size": 20})
    tasks = {task.id: task for task in of_ours.read_splits(("test",))["test"].tasks}
    assert len(tasks) == len(log.samples)
    for sample in log.samples:
        task = tasks[f"inspect/sums/{sample.id}"]
        grade = asyncio.run(task.grade(sample.output.completion))
        assert task.question.text == sample.input
        assert grade.correct == (sample.scores["answer"].value == "C")
