"""Counts what one question of five steps does, so that its own time does not creep up. Seconds decide nothing here."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CoroutineType, FrameType
from typing import Any

import pytest
from pydantic import BaseModel

import podium
from podium import Team

SOURCES = str(Path(podium.__file__).parent)
STDLIB = str(Path(asyncio.__file__).parents[1])
PLAN = """
model_id = [0, 1, 2, 3, 4]
subtasks = ["Find an algorithm.", "Find its faults.", "Find a proof.", "Find an example.", "Write the answer."]
access_list = [[], [], [], [], ["all"]]
"""
MOST = {
    "tasks of Podium's coroutines": 3,  # The four steps that start together need three; the fifth needs none.
    "timers": 5,
    "SQL statements": 32,  # Of a trace, a row for each worker in three tables, so that no page has to search or sum.
    "pydantic objects": 23,
    "messages": 5,
    "JSON encodes": 6,
    "JSON characters": 2_400,
    # Each try of a call is measured, reserved, let pass and settled in functions of its own, which end in one way
    # whatever becomes of it; thoughts, tool calls and provider state are told
    # from the answer. A plan is read item by item; a request is built anew for what its endpoint was seen to refuse.
    # A round asks whether its steps may start before its plan is whole.
    # The row of a trace is made where the trace is added, since the queue is bounded by its length.
    "Podium's function calls": 1_800,
    # Where copies by `dataclasses.replace` and checks of runtime protocols are seen.
    "other calls of Podium and the standard library": 3_240,
}
"""With a database for traces and one for the day's budget. Raise a bound only for work that a user wants."""


@pytest.fixture
def pool() -> Iterator[str]:
    """The file of a pool. Its workers are an endpoint in a process of its own, whose work does not count."""
    words = [sys.executable, "-m", "podium_testing", "answer=Answer: 42"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)
        url = re.findall(r"http://[^\s)]+", line)[0]
        Path("five.toml").write_text(
            "".join(
                f'[[worker]]\nname = "w{i}"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
                "price = { input = 1.0, output = 2.0 }\n"
                for i in range(5)
            )
        )
        yield "five.toml"
        process.terminate()


async def test_question_of_five_steps_stays_within_its_recorded_work(
    pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Counter[str]()
    _count_sql(monkeypatch, work)
    async with Team.open(pool, planner="single:w0", store="t.sqlite", budget={"day_usd": 1.0}) as team:
        await team.run(PLAN, "What is 6 times 7?")  # Opens connections and files.
        _count(monkeypatch, work)
        work.clear()
        sys.setprofile(lambda frame, event, value: _count_call(work, frame, event))
        try:
            trace = await team.run(PLAN, "What is 6 times 7?")
        finally:
            sys.setprofile(None)
        done = dict(work)
    assert (trace.status, trace.answer, trace.calls) == ("ok", "Answer: 42", 5)
    assert {name: done[name] for name in MOST if done[name] > MOST[name]} == {}
    assert {name: done[name] for name in MOST if 2 * done[name] <= MOST[name]} == {}, "too loose to guard"


def _count_sql(monkeypatch: pytest.MonkeyPatch, work: Counter[str]) -> None:
    connect = sqlite3.connect

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(lambda statement: work.update({"SQL statements": 1}))
        return connection

    monkeypatch.setattr(sqlite3, "connect", counted)


def _count(monkeypatch: pytest.MonkeyPatch, work: Counter[str]) -> None:
    """Count on the running loop what can be counted there."""
    loop = asyncio.get_running_loop()
    make_object, encode, call_at = BaseModel.__init__, json.JSONEncoder.encode, loop.call_at

    def make_task(
        loop: asyncio.AbstractEventLoop, coroutine: CoroutineType[Any, Any, Any], **options: Any
    ) -> Any:
        work["tasks of Podium's coroutines"] += coroutine.cr_code.co_filename.startswith(SOURCES)
        return asyncio.Task(coroutine, loop=loop, **options)

    def counted_object(self: BaseModel, /, **fields: Any) -> None:
        work["pydantic objects"] += 1
        work["messages"] += type(self).__name__ == "Message"
        make_object(self, **fields)

    def counted_encode(self: json.JSONEncoder, value: object) -> str:
        written = encode(self, value)
        work["JSON encodes"] += 1
        work["JSON characters"] += len(written)
        return written

    def counted_call_at(*args: Any, **options: Any) -> asyncio.TimerHandle:
        work["timers"] += 1
        return call_at(*args, **options)

    loop.set_task_factory(make_task)
    monkeypatch.setattr(loop, "call_at", counted_call_at)
    monkeypatch.setattr(BaseModel, "__init__", counted_object)
    monkeypatch.setattr(json.JSONEncoder, "encode", counted_encode)


def _count_call(work: Counter[str], frame: FrameType, event: str) -> None:
    file = frame.f_code.co_filename
    is_ours = file.startswith(SOURCES)
    if is_ours and event == "call":
        work["Podium's function calls"] += 1
    elif event == "c_call" or (event == "call" and not is_ours):
        is_stdlib = file.startswith(STDLIB) and "site-packages" not in file
        work["other calls of Podium and the standard library"] += is_ours or is_stdlib
