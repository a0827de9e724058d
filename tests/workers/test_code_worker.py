"""The tool that runs programs, with the isolation that is here and with none: what it runs, and what it replies."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.errors import WorkerError
from podium.executor.step_input import build_messages
from podium.types import AnswerOptions, Limits, Usage
from podium.workers import Request, tool
from podium.workers.code import NO_PROGRAM, CodeWorker, program_in
from podium.workers.spec import CodeSpec
from podium.workers.view import EarlierStep, WorkerView

pytestmark = pytest.mark.filterwarnings("ignore:Programs run")
ISOLATIONS = ["bubblewrap"] * (shutil.which("bwrap") is not None) + ["none"]


def code_worker(**keys: Any) -> CodeWorker:
    return CodeWorker(CodeSpec(name="code", **keys))


@pytest.fixture(params=ISOLATIONS)
async def worker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[CodeWorker]:
    if request.param == "none":
        monkeypatch.setenv("PATH", str(tmp_path))
    opened = code_worker(allow_weak_sandbox=True, seconds=20)
    yield opened
    await opened.close()


def asked(
    subtask: str = "Run it.",
    *responses: str,
    missing: tuple[int, ...] = (),
    options: AnswerOptions = AnswerOptions(),
) -> Request:
    earlier = tuple(EarlierStep(i, f"part {i}", response) for i, response in enumerate(responses))
    shown = WorkerView("What is it?", subtask, earlier)
    return Request(
        build_messages(shown, "packed", "0f"), seed="0", missing_responses=missing, options=options
    )


def fenced(program: str) -> str:
    return f"I would run this:\n```python\n{program}\n```\nIt should do."


async def said(worker: CodeWorker, *of: str) -> str:
    reply = await worker.answer(asked(*of))
    assert reply.usage == Usage()
    return reply.text


async def test_one_printed_line_becomes_an_answer_and_more_lines_stay_unchanged(worker: CodeWorker) -> None:
    assert await said(worker, "print(sum(range(10)))") == "Answer: 45"
    assert await said(worker, fenced("print('a')\nprint('Answer: b')")) == "a\nAnswer: b"
    assert await said(worker, "print('Answer: 7')") == "Answer: 7"
    assert await said(worker, "def f(x: int): pass\nprint(f.__annotations__['x'] is int)") == "Answer: True"
    assert await said(worker, "print(42)\nexit()\nprint(43)") == "Answer: 42"
    assert await said(worker, "print(42)\nquit()\nprint(43)") == "Answer: 42"
    assert await said(worker, "import math") == NO_PROGRAM
    assert await said(worker, "abs(-1)") == "There is no result: the program printed nothing."


async def test_code_worker_prefers_its_subtask_then_the_latest_response(
    worker: CodeWorker,
) -> None:
    shown = (fenced("print(1)"), fenced("print(2)"), "Answer: three")
    assert await said(worker, "print(0)", *shown) == "Answer: 0"
    assert await said(worker, "Run it.", *shown) == "Answer: 2"
    assert await said(worker, "Run it.", "Answer: three") == NO_PROGRAM


async def test_a_program_gets_the_responses_that_are_shown(worker: CodeWorker) -> None:
    program = "import json, sys\nprint(json.load(sys.stdin))"
    told = await said(worker, fenced(program), "It is\nAnswer: 4", "\ud800 5")
    assert told == (
        "Answer: [{'response': 'It is\\nAnswer: 4', 'answer': '4'}, "
        "{'response': '\\ud800 5', 'answer': '\\ud800 5'}]"
    )


async def test_program_exception_is_reported_and_not_counted_by_votes(worker: CodeWorker) -> None:
    for program, reason in (
        ("print(1 / 0)", "ZeroDivisionError: division by zero"),
        ("print(", "SyntaxError: '(' was never closed (program.py, line 1)"),
        ("class Own(Exception): pass\nraise Own('a\\nb')", "Own: a b"),
        ("raise KeyError", "KeyError"),
    ):
        text = await said(worker, fenced(program))
        assert text == f"There is no result: the program failed with {reason}."
        assert not tool.is_result(text)
    text = await said(worker, fenced("print('begun')\nassert False, 'No.'"))
    assert text == (
        "There is no result: the program failed with AssertionError: No.\nBefore that it printed:\nbegun"
    )
    text = await said(worker, "import os\nprint('begun', flush=True)\nos._exit(3)")
    assert text.startswith("There is no result: the program ended with an exit status that is not 0.")


async def test_code_worker_reports_an_exit_status_that_is_not_0(worker: CodeWorker) -> None:
    for ending in ("import sys\nsys.exit({})", "exit({})", "raise SystemExit({})"):
        for status in ("", "0", "None"):
            assert await said(worker, f"print('done')\n{ending.format(status)}") == "Answer: done"
        for status, shown in (("3", "3"), ("'bad input'", "bad input")):
            text = await said(worker, f"print('begun')\n{ending.format(status)}")
            assert not tool.is_result(text)
            assert shown in text.split("\n")[0]
            assert text.endswith("\nbegun")


async def test_code_worker_shows_what_was_printed_before_any_end(worker: CodeWorker) -> None:
    wrap = "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\n"
    for before in ("", wrap):
        for end in ("raise KeyboardInterrupt", "raise GeneratorExit", "1 / 0", "raise SystemExit(1)"):
            text = await said(worker, f"{before}print('begun')\n{end}")
            assert not tool.is_result(text)
            assert text.endswith("\nbegun")


async def test_exceeded_sandbox_limit_is_reported() -> None:
    worker = code_worker(allow_weak_sandbox=True, seconds=0.3, memory_mb=256)
    try:
        endless = await worker.answer(asked(fenced("while True: pass")))
        large = await worker.answer(asked(fenced("print(len(bytearray(2**30)))")))
    finally:
        await worker.close()
    assert endless.text.startswith(
        "There is no result: the program had not ended after 0.3 s of processor time"
    )
    assert large.text.startswith("There is no result: the program ")
    assert "MemoryError" in large.text or "256 MB of memory" in large.text


async def test_program_output_beyond_max_tokens_is_cut_off() -> None:
    worker = code_worker(allow_weak_sandbox=True, limits=Limits(max_tokens=100))
    try:
        reply = await worker.answer(asked("print('x' * 1000)"))
        shorter = await worker.answer(asked("print('x' * 1000)", options=AnswerOptions(max_tokens=5)))
        flood = await worker.answer(asked("while True: print('x' * 100_000)"))
    finally:
        await worker.close()
    assert (reply.text[:9], reply.text[400:], reply.finish) == (
        "Answer: x",
        "\n[608 more characters are cut off]",
        "length",
    )
    assert len(shorter.text) < 60
    assert flood.text.startswith("There is no result: the program printed more than 8 MiB.")
    assert len(flood.text) < 500


async def test_sandboxed_program_cannot_read_files_of_the_machine(tmp_path: Path) -> None:
    if ISOLATIONS == ["none"]:
        pytest.skip("there is no bwrap here")
    secret = tmp_path / "secret"
    secret.write_text("hush")
    worker = code_worker()
    try:
        text = (await worker.answer(asked(f"print(open({str(secret)!r}).read())"))).text
    finally:
        await worker.close()
    assert "FileNotFoundError" in text


async def test_code_worker_without_isolation_is_unready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    worker = code_worker()
    for request in (asked("print(1)"), asked()):
        with pytest.raises(WorkerError, match="set allow_weak_sandbox = true") as refused:
            await worker.answer(request)
        assert (refused.value.kind, refused.value.retryable) == ("unready", False)
    await worker.close()


async def test_without_the_responses_it_was_to_see_it_fails_for_good(worker: CodeWorker) -> None:
    with pytest.raises(WorkerError) as failed:
        await worker.answer(asked(missing=(0,)))
    assert (failed.value.kind, failed.value.retryable) == ("missing", False)
    assert (await worker.answer(asked("print(1)", missing=(0,)))).text == "Answer: 1"


def test_one_worker_serves_one_event_loop_after_the_other() -> None:
    worker = code_worker(allow_weak_sandbox=True)

    async def once() -> str:
        try:
            return (await worker.answer(asked("print(1)"))).text
        finally:
            await worker.close()

    assert [asyncio.run(once()) for _ in range(2)] == ["Answer: 1"] * 2


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("print(1)", "print(1)"),
        ("```\na\n```\n```py\nb\n```", "b\n"),
        ("```python\nprint(1)", "print(1)"),
        ("```\n```", None),
        ("Check", None),
        ("Run the program that you see.", None),
        ("x = 1", None),
        ("-" * 8000 + "f()", None),
        ("\0", None),
        (json.dumps({"a": 1}), None),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_a_program_is_the_last_block_or_python_that_calls_something(text: str, program: str | None) -> None:
    assert program_in(text) == program
