"""The examples in the docstrings of the interfaces are implementations of them, and run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from podium.planners.planner import Planner, PlanRequest
from podium.tasks.task import Grade, Grader, Task
from podium.team import Runner
from podium.trace import Plan, Reply
from podium.types import NO_USAGE, Price, Profile, Question
from podium.workers import Pool, Request, ScriptedWorker, Worker
from podium.workflow import Step, Workflow

NAMES = (
    dataclass,
    Profile,
    Worker,
    Request,
    Reply,
    Planner,
    PlanRequest,
    Plan,
    Step,
    Workflow,
    Grade,
)


def example(protocol: type) -> Any:
    """What the example in the docstring of `protocol` defines."""
    text = inspect.getdoc(protocol) or ""
    namespace: dict[str, Any] = {name.__name__: name for name in NAMES} | {"NO_USAGE": NO_USAGE}
    known = set(namespace)
    exec(dedent(text.partition("::\n")[2]), namespace)
    (name,) = set(namespace) - known - {"__builtins__"}
    return namespace[name]


async def test_the_worker_of_the_docstring_answers() -> None:
    trace = await Runner(example(Planner)(), Pool([example(Worker)()])).answer(Question(text="Hm?"))
    assert "Hm?" in (trace.answer or "")


async def test_the_planner_of_the_docstring_plans_with_the_cheapest() -> None:
    prices = {"dear": 9.0, "cheap": 1.0}
    workers = [
        ScriptedWorker(name, {"": name}, profile=Profile(name=name, price=Price(output=price)))
        for name, price in prices.items()
    ]
    assert (await Runner(example(Planner)(), Pool(workers)).answer(Question(text="Who?"))).answer == "cheap"


async def test_the_grader_of_the_docstring_grades_the_last_line() -> None:
    task = Task("t", Question(text="2 + 2?"), "4", example(Grader))
    assert [(await task.grade(text)).score for text in ("So:\n4", "4, or 5")] == [1.0, 0.0]
