"""Programs as workers: real ones, started, fed, killed and counted."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path

import pytest

from podium.errors import ConfigError, WorkerError
from podium.team.team_file import open_pool
from podium.types import AnswerOptions, Message, Price, Usage
from podium.workers import Reply, Request, Worker

HELLO = Request(
    (Message(role="system", content="Be brief."), Message(role="user", content="2 + 2?")),
    seed="s",
    earlier_calls=1,
    sample=2,
)
HEAD = "import json, os, signal, subprocess, sys, time\n"
SECRET = "hush-hush-1234567890"


def pool_of(folder: Path, program: str, keys: str = "") -> Path:
    (folder / "answer.py").write_text(HEAD + program)
    path = folder / "pool.toml"
    path.write_text(
        f"[[worker]]\nname = 'prog'\nkind = 'command'\ncommand = ['{sys.executable}', 'answer.py']\n{keys}"
    )
    return path


def worker_of(folder: Path, program: str, keys: str = "") -> Worker:
    return open_pool(pool_of(folder, program, keys))[0]


async def answered(folder: Path, program: str, keys: str = "", request: Request = HELLO) -> Reply:
    async with asyncio.timeout(60):
        return await worker_of(folder, program, keys).answer(request)


async def failed(folder: Path, program: str, keys: str = "") -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        await answered(folder, program, keys)
    assert str(caught.value).startswith(f"The program {sys.executable} ")
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    return caught.value


async def test_command_reads_one_json_object_and_writes_the_answer(tmp_path: Path) -> None:
    reply = await answered(tmp_path, "asked = json.load(sys.stdin)\nprint(json.dumps(asked))\n")
    assert json.loads(reply.text) == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "2 + 2?"},
        ],
        "seed": "s",
        "repeat": 1,
        "sample": 2,
        "max_tokens": 4096,
    }
    assert not reply.text.endswith("\n")
    assert reply.usage.estimated
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (5, -(-len(reply.text) // 4))


async def test_a_callers_lower_limit_is_passed_on(tmp_path: Path) -> None:
    short = Request(HELLO.messages, seed="s", options=AnswerOptions(max_tokens=7))
    reply = await answered(tmp_path, "print(json.load(sys.stdin)['max_tokens'])", request=short)
    assert reply.text == "7"


async def test_command_json_output_reports_usage_and_cost(tmp_path: Path) -> None:
    said = {"text": "Four.", "usage": {"input_tokens": 9, "output_tokens": 2}, "cost_usd": 0.25}
    worker = worker_of(
        tmp_path, f"print(json.dumps({said!r}))", "output = 'json'\nprice = { input = 1.0, output = 2.0 }"
    )
    reply = await worker.answer(HELLO)
    assert (reply.text, reply.usage) == ("Four.", Usage(input_tokens=9, output_tokens=2))
    assert reply.cost(worker.profile) == 0.25
    del said["cost_usd"]
    reply = await answered(tmp_path, f"print(json.dumps({said!r}))", "output = 'json'")
    assert reply.cost(worker.profile) == Price(input=1.0, output=2.0).cost(reply.usage) == 13e-6


async def test_command_text_output_that_looks_like_json_stays_text(tmp_path: Path) -> None:
    said = '{"text": "Four."}'
    assert (await answered(tmp_path, f"print('{said}')")).text == said


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("Four.", "the whole: Invalid JSON"),
        ("[1]", "the whole: Input should be an object"),
        ('{"text": "Four."} {}', "the whole: Invalid JSON"),
        ('{"txt": "Four."}', "text: Field required"),
        ('{"text": 4}', "text: Input should be a valid string"),
        ('{"text": " "}', "there is no text"),
        ('{"text": "Four.", "price": 1}', "price: Extra inputs are not permitted"),
        ('{"text": "Four.", "cost_usd": -1}', "cost_usd: Input should be greater than or equal to 0"),
        ('{"text": "Four.", "cost_usd": NaN}', "cost_usd: Input should be a finite number"),
        ('{"text": "Four.", "usage": {"input_tokens": 1}}', "usage.output_tokens: Field required"),
        (
            '{"text": "Four.", "usage": {"input_tokens": -1, "output_tokens": 1}}',
            "usage.input_tokens: Input should be greater than or equal to 0",
        ),
        (
            '{"text": "Four.", "usage": {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 2}}',
            "usage: Value error, cached_tokens and cache_write_tokens are parts of input_tokens",
        ),
        ('{"text": "half \\\\ud800"}', "the whole: Invalid JSON"),
        ("[" * 100_000, "the whole: Invalid JSON: recursion limit exceeded"),
    ],
)
async def test_json_of_another_form_is_no_answer(tmp_path: Path, written: str, why: str) -> None:
    (tmp_path / "said").write_text(written.replace("\\\\", "\\"))
    error = await failed(tmp_path, "print(open('said').read())", "output = 'json'")
    assert (error.kind, error.retryable) == ("protocol", False)
    assert f'wrote no answer of the form {{"text": "..."}} ({why}' in str(error)


@pytest.mark.parametrize(
    ("program", "sentence", "kind", "retryable"),
    [
        ("print('no', file=sys.stderr); sys.exit(3)", "ended with the status 3: no.", "status", False),
        (
            "print('Four.'); sys.exit(1)",
            "ended with the status 1: (nothing on its standard error).",
            "status",
            False,
        ),
        ("print('later', file=sys.stderr); sys.exit(75)", "ended with the status 75: later.", "status", True),
        ("raise ValueError('odd')", "ValueError: odd.", "status", False),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "was killed by SIGSEGV: (nothing on its standard error).",
            "status",
            False,
        ),
        ("", "wrote no answer (there is no text).", "protocol", False),
        ("print(' ')", "wrote no answer (there is no text).", "protocol", False),
        ("sys.stdout.buffer.write(b'Four \\xff')", "wrote an answer that is not UTF-8.", "protocol", False),
    ],
)
async def test_failed_command_is_reported_in_one_sentence(
    tmp_path: Path, program: str, sentence: str, kind: str, retryable: bool
) -> None:
    error = await failed(tmp_path, program)
    assert str(error).endswith(sentence)
    assert (error.kind, error.retryable) == (kind, retryable)


async def test_the_last_lines_of_a_long_error_are_repeated(tmp_path: Path) -> None:
    error = await failed(
        tmp_path, "[print(f'line {i}', file=sys.stderr) for i in range(100_000)]; sys.exit(1)"
    )
    assert "line 99997 / line 99998 / line 99999" in str(error)
    error = await failed(tmp_path, "print('x' * 100_000, file=sys.stderr); sys.exit(1)")
    assert len(str(error)) < 500


async def test_command_output_above_the_size_limit_stops_the_program(tmp_path: Path) -> None:
    error = await failed(tmp_path, "while True: sys.stdout.buffer.write(b'x' * 2**16)")
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "wrote more than 16 MiB" in str(error)
    reply = await answered(tmp_path, "sys.stdout.buffer.write(b'x' * 16 * 2**20)")
    assert len(reply.text) == 16 * 2**20


async def test_command_may_ignore_or_read_large_input(tmp_path: Path) -> None:
    long = Request((Message(role="user", content="x" * 5_000_000),), seed="s")
    assert (await answered(tmp_path, "print('Four.')", request=long)).text == "Four."
    assert (await answered(tmp_path, "sys.stdin.close(); print('Four.')", request=long)).text == "Four."
    counted = "print(len(json.load(sys.stdin)['messages'][0]['content']))"
    assert (await answered(tmp_path, counted, request=long)).text == "5000000"


async def test_half_a_character_in_a_message_reaches_the_program(tmp_path: Path) -> None:
    half = Request((Message(role="user", content="a\ud800b"),), seed="s")
    program = "print(len(json.load(sys.stdin)['messages'][0]['content']))"
    assert (await answered(tmp_path, program, request=half)).text == "3"


async def test_command_sees_only_named_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MY_KEY", "OTHER_KEY", "LC_TIME", "TMPDIR"):
        monkeypatch.setenv(name, f"{name} of ours")
    reply = await answered(tmp_path, "print(json.dumps(sorted(os.environ)))", "env = ['MY_KEY']")
    seen = set(json.loads(reply.text)) - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}  # Python's and macOS's own.
    assert {"MY_KEY", "LC_TIME", "TMPDIR", "PATH"} <= seen
    assert seen <= {"MY_KEY", "PATH", "HOME", "LANG", "TMPDIR"} | {n for n in seen if n.startswith("LC_")}


@pytest.mark.parametrize("output", ["text", "json"])
async def test_secret_in_command_output_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    keys = f"env = ['MY_KEY']\noutput = '{output}'"
    said = "os.environ['MY_KEY']"
    if output == "json":
        said = f"json.dumps({{'text': {said}}})"
    assert (await answered(tmp_path, f"print({said})", keys)).text == "***"
    error = await failed(tmp_path, "print(os.environ['MY_KEY'], file=sys.stderr); sys.exit(1)", keys)
    assert SECRET not in str(error)
    assert "***" in str(error)
    error = await failed(
        tmp_path, "print('x' * 8180 + os.environ['MY_KEY'], file=sys.stderr); sys.exit(1)", keys
    )
    assert SECRET[8:] not in str(error)


async def test_command_runs_in_its_configured_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "word").write_text("from inside")
    keys = "folder = 'inner'"
    path = pool_of(tmp_path, "", keys)
    path.write_text(path.read_text().replace("'answer.py'", "'../answer.py'"))
    (tmp_path / "answer.py").write_text("print(open('word').read())")
    assert (await open_pool(path)[0].answer(HELLO)).text == "from inside"


async def test_a_script_beside_the_pool_file_is_run_by_its_path(tmp_path: Path) -> None:
    script = tmp_path / "answer.sh"
    script.write_text("#!/bin/sh\ncat > /dev/null\necho Four.\n")
    script.chmod(0o755)
    path = tmp_path / "pool.toml"
    path.write_text("[[worker]]\nname = 'prog'\nkind = 'command'\ncommand = ['./answer.sh']\n")
    assert (await open_pool(path)[0].answer(HELLO)).text == "Four."


@pytest.mark.parametrize(
    ("command", "keys", "sentence", "line"),
    [
        (
            ["no-such-program"],
            "",
            "there is no program 'no-such-program' in PATH; install it, or give its path.",
            4,
        ),
        (["answer.sh"], "", "; for the one in {folder} write ./answer.sh.", 4),
        (
            ["./none.sh"],
            "",
            "there is no program {folder}/none.sh; check the path, which is relative to `folder`.",
            4,
        ),
        (
            ["./answer.sh"],
            "",
            "{folder}/answer.sh may not be run; make it executable, or name its interpreter first.",
            4,
        ),
        (["sh"], "folder = 'nowhere'", "{folder}/nowhere is not a folder; correct `folder`.", 5),
        (
            ["sh"],
            "env = ['NO_SUCH_KEY']",
            "variable NO_SUCH_KEY is not set; set it, or leave it out of env.",
            5,
        ),
        (["sh"], "env = ['sk-hush']", "env contains an item that is no name of an environment variable", 5),
        ([], "", "worker.prog.command is [], but it should be", 4),
        (["sh"], "foldr = 'x'", "unknown key 'worker.prog.foldr'; did you mean 'folder'?", 5),
        (["sh", 1], "", "worker.prog.command.1 is 1, but it should be text in quotes.", 4),
        (["sh"], "output = 'yaml'", 'worker.prog.output is "yaml"', 5),
    ],
)
def test_unrunnable_command_is_refused_when_the_pool_is_loaded(
    tmp_path: Path, command: list[str], keys: str, sentence: str, line: int
) -> None:
    (tmp_path / "answer.sh").write_text("#!/bin/sh\n")
    path = tmp_path / "pool.toml"
    path.write_text(f"[[worker]]\nname = 'prog'\nkind = 'command'\ncommand = {command}\n{keys}\n")
    with pytest.raises(ConfigError) as refused:
        open_pool(path)
    assert sentence.format(folder=tmp_path) in str(refused.value)
    assert str(refused.value).startswith(f"{path}, line {line}: ")
    assert "sk-hush" not in str(refused.value)


async def test_a_program_that_is_gone_when_it_is_called_is_a_failed_call(tmp_path: Path) -> None:
    script = tmp_path / "answer.sh"
    script.write_text("#!/bin/sh\necho Four.\n")
    script.chmod(0o755)
    path = tmp_path / "pool.toml"
    path.write_text("[[worker]]\nname = 'prog'\nkind = 'command'\ncommand = ['./answer.sh']\n")
    worker = open_pool(path)[0]
    script.unlink()
    with pytest.raises(WorkerError, match="cannot be started") as caught:
        await worker.answer(HELLO)
    assert (caught.value.kind, caught.value.retryable) == ("connection", False)


def test_a_programs_answers_are_cached_by_program_and_only_if_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    assert worker_of(tmp_path, "print(1)").identity is None
    first = worker_of(tmp_path, "print(1)", "cache = true\nenv = ['MY_KEY']").identity
    again = worker_of(tmp_path, "print(1)", "cache = true\nenv = ['MY_KEY']").identity
    other = worker_of(tmp_path, "print(2)", "cache = true\nenv = ['MY_KEY']").identity
    assert first == again != other
    assert SECRET not in json.dumps(first)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that is dead and not yet waited for by its new parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(") ")[2][0] != "Z"


async def gone(*pids: int) -> None:
    async with asyncio.timeout(20):
        while any(alive(pid) for pid in pids):  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.01)


def children() -> set[int]:
    """Of this process, those that were not waited for among them."""
    return {
        int(pid)
        for task in Path("/proc/self/task").glob("*")
        for pid in (task / "children").read_text().split()
    }


def descriptors() -> int:
    """Open ones of this process, without what earlier tests left to the garbage collector."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


FAMILY = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids.part", "w").write(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
"""


async def family(folder: Path) -> list[int]:
    async with asyncio.timeout(60):
        while not (folder / "pids").exists():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.01)
    return [int(pid) for pid in (folder / "pids").read_text().split()]


@pytest.mark.parametrize("end", ["cancelled", "cancelled at its start", "timed out"])
async def test_cancelled_command_is_killed_with_all_its_children(tmp_path: Path, end: str) -> None:
    worker = worker_of(tmp_path, FAMILY + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)")
    before, open_before = children(), descriptors()

    async def ask() -> Reply:
        if end != "timed out":
            return await worker.answer(HELLO)
        async with asyncio.timeout(600) as limit:
            limits.append(limit)
            return await worker.answer(HELLO)

    limits: list[asyncio.Timeout] = []
    task = asyncio.create_task(ask())
    if end == "cancelled at its start":
        while children() == before:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0)
        while not (tmp_path / "pids").exists():
            time.sleep(0.01)  # noqa: ASYNC251 - the event loop has not yet opened the program's pipes
    pids = await family(tmp_path)
    assert all(alive(pid) for pid in pids)
    if end != "timed out":
        task.cancel()
    else:
        limits[0].reschedule(asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError if end == "timed out" else asyncio.CancelledError):
        await task
    assert children() == before  # The program itself was waited for: no zombie.
    await gone(*pids)
    assert descriptors() == open_before


async def test_leftover_child_processes_are_killed_without_waiting(tmp_path: Path) -> None:
    reply = await answered(tmp_path, FAMILY + "print('Four.')")
    assert reply.text == "Four."
    await gone(*await family(tmp_path))


async def test_a_process_that_escapes_with_the_output_open_keeps_no_call_waiting(tmp_path: Path) -> None:
    escape = (
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    )
    reply = await answered(tmp_path, f"child = {escape}\nprint(child.pid)")
    os.kill(int(reply.text), 9)
    await gone(int(reply.text))


async def test_many_programs_run_side_by_side_and_leave_nothing(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, "time.sleep(0.3); print('Four.')")
    before, open_before = children(), descriptors()
    started = time.monotonic()
    replies = await asyncio.gather(*(worker.answer(HELLO) for _ in range(20)))
    assert [reply.text for reply in replies] == ["Four."] * 20
    assert (
        time.monotonic() - started < 20 * 0.3 + 60
    )  # Nothing hangs; two cores start them one after the other.
    assert (children(), descriptors()) == (before, open_before)
    assert asyncio.all_tasks() == {asyncio.current_task()}
