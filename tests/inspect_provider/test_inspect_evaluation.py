"""Inspect's evaluations over an orchestrated pool, against Podium's own on the same questions."""

import asyncio
import json
from pathlib import Path

import pytest
from inspect_ai import eval

import podium.inspect_provider.registry  # noqa: F401 - as Inspect does, by this package's entry point
from podium.cli import run
from podium.tasks.sets.inspect_task import InspectTask
from podium.trace.store import TraceStore

QUESTIONS = Path(__file__).parent / "embedded_questions.py"


def inspect_eval(name, *, size=20, **settings):
    """The log of `inspect eval embedded_questions.py@embedded --model podium/<name>`."""
    (log,) = eval(
        f"{QUESTIONS}@embedded",
        model=f"podium/{name}",
        model_args=settings,
        task_args={"size": size},
        log_dir="logs",
        display="none",
    )
    return log


def test_an_inspect_evaluation_of_20_questions_is_as_right_as_podiums_own(capsys):
    """Seeds are named alike (`evaluation/<seed>/<question>/<repeat>`), so equality is exact, even of random plans."""
    command = ("eval", "--questions", "20", "eval.tuning=0", "--untrained", "none", "--json")
    assert run(command) == 0
    own = {row["label"]: row["accuracy"]["mean"] for row in json.loads(capsys.readouterr().out)["rows"]}
    for planner, label in [("conductor", "Conductor"), ("random", "Random plans")]:
        log = inspect_eval(planner, pool="embedded")
        assert log.status == "success", log.error
        assert log.results.scores[0].metrics["accuracy"].value == own[label]
    assert 0 < own["Random plans"] < own["Conductor"] < 1


def test_every_sample_in_inspects_log_names_its_trace():
    log = inspect_eval("embedded", size=3, **{"plan.planner": "single:egon"})
    with TraceStore("traces.sqlite", create=False) as store:
        for sample in log.samples:
            trace = store.get(sample.output.metadata["trace_id"])
            assert (trace.question.text, trace.answer) == (sample.input, sample.output.completion)
        assert len(store.list()) == 3
    usage = log.stats.model_usage["podium/embedded"]
    assert usage.total_cost == pytest.approx(sum(s.output.metadata["cost_usd"] for s in log.samples))
    assert usage.total_tokens > 0


def test_a_question_that_failed_is_an_error_of_its_sample_with_our_sentence():
    log = inspect_eval("embedded", size=2, **{"budget.calls": 0})
    assert log.status == "error"
    assert "The budget of 0 calls is used up." in log.error.message


def test_what_inspect_graded_is_graded_alike_where_its_task_is_a_set_of_ours():
    log = inspect_eval("embedded", **{"plan.planner": "single:egon"})
    tasks = {task.id: task for task in InspectTask(task=f"{QUESTIONS}@embedded").read("test").tasks}
    assert len(tasks) == len(log.samples)
    for sample in log.samples:
        task = tasks[f"inspect/embedded/{sample.id}"]
        grade = asyncio.run(task.grade(sample.output.completion))
        assert task.question.text == sample.input
        assert grade.correct == (sample.scores["answer"].value == "C")
