"""Python functions as workers: real ones, in modules of their own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from podium.errors import ConfigError, WorkerError
from podium.team.team_file import open_pool
from podium.types import AnswerOptions, Message, Profile, Receipt, Spent, Usage
from podium.workers import Reply, Request, Worker
from podium.workers.function import FunctionWorker

HELLO = Request((Message(role="user", content="2 + 2?"),), seed="s", earlier_calls=1, sample=2)
SECRET = "hush-hush-1234567890"


def worker(function: Callable[..., Any], **settings: Any) -> FunctionWorker:
    return FunctionWorker(Profile(name="func"), function, **settings)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for modules and a team file; the interpreter is as before afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def loaded(place: Path, named: str, module: str = "", keys: str = "path = '.'") -> Worker:
    (place / "my_answers.py").write_text(module)
    path = place / "pool.toml"
    path.write_text(f"[[worker]]\nname = 'func'\nkind = 'python'\ncallable = '{named}'\n{keys}\n")
    return open_pool(path)[0]


async def failed(function: Callable[..., Any], **settings: Any) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        await worker(function, **settings).answer(HELLO)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("form", ["def", "async def"])
async def test_a_function_of_a_file_is_called_with_the_messages(place: Path, form: str) -> None:
    module = f"import json\n{form} answer(messages):\n    return json.dumps(messages)\n"
    reply = await loaded(place, "my_answers:answer", module).answer(HELLO)
    assert json.loads(reply.text) == [{"role": "user", "content": "2 + 2?"}]
    assert (reply.usage.estimated, reply.usage.input_tokens) == (True, 2)


async def test_an_installed_function_needs_no_path(place: Path) -> None:
    assert "2 + 2?" in (await loaded(place, "pprint:pformat", keys="").answer(HELLO)).text


async def test_a_function_gets_the_arguments_that_it_has_parameters_for() -> None:
    told = {"seed": "s", "repeat": 1, "sample": 2, "max_tokens": 4096}

    def none(messages):
        return "{}"

    def some(messages, sample, *, seed="other"):
        return json.dumps({"sample": sample, "seed": seed})

    def all_(messages, **told):
        return json.dumps(told)

    class Object:
        async def __call__(self, messages, repeat):
            return json.dumps({"repeat": repeat})

    def first(seed):
        return json.dumps({"messages": len(seed)})

    for function, expected in [
        (none, {}),
        (some, {"sample": 2, "seed": "s"}),
        (all_, told),
        (Object(), {"repeat": 1}),
        (first, {"messages": 1}),
    ]:
        assert json.loads((await worker(function).answer(HELLO)).text) == expected
    short = Request(HELLO.messages, seed="s", options=AnswerOptions(max_tokens=7))
    assert json.loads((await worker(all_).answer(short)).text)["max_tokens"] == 7


async def test_function_can_report_usage_and_cost() -> None:
    said = {"text": "Four.", "usage": {"input_tokens": 9, "output_tokens": 2}, "cost_usd": 0.25}
    reply = await worker(lambda messages: said).answer(HELLO)
    assert reply == Reply("Four.", Usage(input_tokens=9, output_tokens=2), cost_usd=0.25)
    whole = Reply("Four.", Usage(input_tokens=1), finish="length", model="mine")
    assert await worker(lambda messages: whole).answer(HELLO) == whole


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "returned NoneType; it should return a text, a dict with one, or a Reply."),
        (4, "returned int; it should return"),
        (b"Four.", "returned bytes; it should return"),
        (" ", "returned no answer (there is no text)."),
        (
            "half \ud800",
            "returned no answer (the text holds half a character and cannot be written as UTF-8).",
        ),
        ({}, "returned no answer (text: Field required)."),
        ({"text": "Four.", "cost": 1}, "returned no answer (cost: Extra inputs are not permitted)."),
        ({1: 2}, "returned no answer (text: Field required)."),
        (Reply("", Usage()), "returned no answer (there is no text)."),
        (Reply(None, Usage()), "returned Reply; it should return"),  # type: ignore[arg-type]
    ],
)
async def test_function_result_without_an_answer_is_a_failed_call(said: Any, why: str) -> None:
    error = await failed(lambda messages: said)
    assert (
        f"The function test_function_result_without_an_answer_is_a_failed_call.<locals>.<lambda> {why}"
        in str(error)
    )
    assert (error.kind, error.retryable) == ("protocol", False)


class OddError(Exception):
    pass


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "sentence"),
    [
        (OddError("It is odd.\nVery odd."), "protocol", False, "raised OddError: It is odd. Very odd."),
        (OddError(), "protocol", False, "raised OddError."),
        (StopIteration("s"), "protocol", False, "raised "),
        (SystemExit(3), "protocol", False, "raised SystemExit: 3."),
        (asyncio.CancelledError(), "protocol", False, "raised CancelledError."),
        (TimeoutError("slow"), "timeout", True, "raised TimeoutError: slow."),
        (ConnectionResetError(104, "reset"), "connection", True, "raised ConnectionResetError: "),
        (OSError("disk"), "protocol", False, "raised OSError: disk."),
        (
            WorkerError("Busy.", kind="rate_limited", retryable=True, retry_after_s=3.0),
            "rate_limited",
            True,
            "Busy.",
        ),
    ],
)
async def test_function_exception_is_a_failed_call(
    raised: BaseException, kind: str, retryable: bool, sentence: str, is_async: bool
) -> None:
    def sync(messages: Any) -> str:
        raise raised

    async def not_sync(messages: Any) -> str:
        raise raised

    error = await failed(not_sync if is_async else sync)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert sentence in str(error)
    if isinstance(raised, WorkerError):
        assert error.retry_after_s == 3.0


async def test_interrupt_in_a_function_of_a_thread_is_a_failed_call() -> None:
    def interrupted(messages: Any) -> str:
        raise KeyboardInterrupt

    assert "raised KeyboardInterrupt." in str(await failed(interrupted))


async def test_function_books_cost_of_a_failed_call_in_its_receipt() -> None:
    def named(messages: Any, receipt: Receipt) -> str:
        receipt.add(Spent(cost_usd=0.5))
        raise WorkerError("Busy.", kind="rate_limited")

    def unnamed(messages: Any, **more: Any) -> str:
        raise WorkerError(json.dumps(more), kind="protocol")

    for function, usd in ((named, 0.5), (unnamed, 0.0)):
        request = Request((Message(role="user", content="?"),), seed="0")
        with pytest.raises(WorkerError):
            await FunctionWorker(Profile(name="f"), function).answer(request)
        assert request.receipt.spent.cost_usd == usd


async def test_a_long_message_is_cut() -> None:
    def long(messages: Any) -> str:
        raise OddError("x" * 100_000)

    assert len(str(await failed(long))) < 500


async def test_secrets_are_redacted_from_function_results(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    module = """
import os
from podium.errors import WorkerError
from podium.workers import Reply
from podium.types import Usage
def answer(messages):
    key, form = os.environ["MY_KEY"], messages[0]["content"]
    if form == "raise":
        raise ValueError("x" * 290 + key)
    if form == "fail":
        raise WorkerError(f"Key {key}.", kind="status")
    hidden = Reply("fine", Usage(), reasoning=key, provider_state=key, parameters={"key": key})
    return {"text": key, "dict": {"text": key}, "Reply": Reply(key, Usage()), "hidden": hidden}[form]
"""
    worker = loaded(place, "my_answers:answer", module, "path = '.'\nenv = ['MY_KEY']")
    for form in ("text", "dict", "Reply"):
        reply = await worker.answer(Request((Message(role="user", content=form),), seed="s"))
        assert reply.text == "***"
    hidden = await worker.answer(Request((Message(role="user", content="hidden"),), seed="s"))
    assert (hidden.reasoning, hidden.provider_state, hidden.parameters) == ("***", "***", {"key": "***"})
    for form in ("raise", "fail"):
        with pytest.raises(WorkerError) as caught:
            await worker.answer(Request((Message(role="user", content=form),), seed="s"))
        assert SECRET[:8] not in str(caught.value)
        assert "***" in str(caught.value)


class Refusal(NamedTuple):
    """What is said of a worker's function, which `module` holds."""

    sentence: str
    named: str = "my_answers:answer"
    module: str = ""
    keys: str = "path = '.'"
    line: int = 4


REFUSALS = [
    Refusal("callable 'my_answers' is not of the form package.module:function.", named="my_answers"),
    Refusal("cannot be imported (ValueError: invalid format", named="my-answers:answer"),
    Refusal(
        "cannot be imported (ModuleNotFoundError: No module named 'no_such_module'); correct its name, mend or "
        "install the module, or give the module's folder as `path`.",
        named="no_such_module:answer",
        keys="",
    ),
    Refusal("has no attribute 'anser')", named="my_answers:anser", module="answer = len"),
    Refusal("is int, which cannot be called; name a function.", module="answer = 4"),
    Refusal("(ModuleNotFoundError: No module named 'no_such_library')", module="import no_such_library"),
    Refusal("cannot be imported (ZeroDivisionError: division by zero)", module="1 / 0"),
    Refusal("cannot be imported (SyntaxError: invalid syntax", module="def"),
    Refusal("cannot be imported (SystemExit: 3)", module="import sys; sys.exit(3)"),
    Refusal("the function cannot be called with messages and", module="def answer(): return ''"),
    Refusal(
        "(missing a required argument: 'temperature'); give its other parameters defaults.",
        module="def answer(messages, temperature): return ''",
    ),
    Refusal(
        "nowhere is not a folder; give the folder that contains the module", keys="path = 'nowhere'", line=5
    ),
    Refusal("variable NO_SUCH_KEY is not set", named="pprint:pformat", keys="env = ['NO_SUCH_KEY']", line=5),
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_uncallable_function_is_refused_when_the_pool_is_loaded(place: Path, refusal: Refusal) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(place, refusal.named, refusal.module, refusal.keys)
    assert refusal.sentence in str(refused.value)
    assert str(refused.value).startswith(f"{place}/pool.toml, line {refusal.line}: Worker 'func': ")
    assert "\n" not in str(refused.value)


async def test_the_folder_of_a_module_hides_nothing_that_is_installed(place: Path) -> None:
    (place / "pprint.py").write_text("def pformat(messages): return 'not this one'")
    assert (await loaded(place, "pprint:pformat").answer(HELLO)).text != "not this one"
    assert sys.path[-1] == str(place)


def test_a_functions_answers_are_cached_only_if_told_and_by_its_seed(
    place: Path,
) -> None:
    module = "def answer(messages): return 'a'\ndef other(messages, seed): return seed\n"
    assert loaded(place, "my_answers:answer", module).identity is None
    keys = "path = '.'\ncache = true"
    first = loaded(place, "my_answers:answer", module, keys).identity
    assert first == loaded(place, "my_answers:answer", module, keys).identity
    assert first is not None
    assert first["seed"] is False
    other = loaded(place, "my_answers:other", module, keys).identity
    assert other is not None
    assert other["seed"] is True
    changed = loaded(place, "my_answers:answer", module + "# changed", keys).identity
    assert changed != first


async def test_calls_of_a_function_that_is_not_async_run_side_by_side() -> None:
    together = threading.Barrier(8, timeout=60)

    def answer(messages: Any) -> str:
        together.wait()
        return "Four."

    replies = await asyncio.gather(*(worker(answer).answer(HELLO) for _ in range(8)))
    assert [reply.text for reply in replies] == ["Four."] * 8


async def test_an_async_function_is_cancelled_with_its_call() -> None:
    begun, cut = asyncio.Event(), asyncio.Event()

    async def answer(messages: Any) -> str:
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cut.set()
            raise
        return ""

    task = asyncio.create_task(worker(answer).answer(HELLO))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cut.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_call_waiting_for_a_thread_is_cancelled_and_its_result_dropped() -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def answer(messages: Any) -> str:
        begun.set()
        release.wait(60)
        ended.set()
        return "Too late."

    task = asyncio.create_task(worker(answer).answer(HELLO))
    assert await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    release.set()
    assert await asyncio.to_thread(ended.wait, 60)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_thread_that_never_ends_keeps_neither_loop_nor_interpreter() -> None:
    program = """
import asyncio, time
from podium.types import Message, Profile
from podium.workers import Request
from podium.workers.function import FunctionWorker

def answer(messages):
    time.sleep(600)

async def main():
    worker = FunctionWorker(Profile(name="func"), answer)
    try:
        async with asyncio.timeout(0.1):
            await worker.answer(Request((Message(role="user", content="?"),), seed="s"))
    except TimeoutError:
        print("given up", flush=True)

asyncio.run(main())
print("ended", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split("\n") == ["given up", "ended", ""]


async def test_awaitable_result_of_a_function_is_awaited() -> None:
    async def later(messages: Any) -> str:
        await asyncio.sleep(0)
        return "Four."

    def wrapped(messages: Any) -> Any:
        return later(messages)

    assert (await worker(wrapped).answer(HELLO)).text == "Four."
