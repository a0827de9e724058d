"""Child processes: what they answer, how they end, and what is left of them."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from podium.concurrency.child_process import ChildEndedError, ChildPool, ChildProcess, ChildTimeoutError

ECHO = """
import subprocess, sys, time
for line in sys.stdin:
    command, _, rest = line.strip().partition(" ")
    if command == "sleep":
        time.sleep(float(rest))
    if command == "child":
        print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
        continue
    if command == "fail":
        sys.exit(rest)
    print(line.strip() * (int(rest) if command == "repeat" else 1), flush=True)
"""


def echo(folder: TemporaryDirectory[str] | None = None) -> ChildProcess:
    return ChildProcess(("-c", ECHO), folder=folder)


def runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_lines_come_back_one_by_one_however_long():
    child = echo()
    for line in (b"one", b"repeat 20000", b"two"):
        child.write_line(line)
    assert child.read_line() == b"one"
    assert child.read_line() == b"repeat 20000" * 20_000
    assert child.read_line(60) == b"two"
    child.close()


def test_an_end_is_told_with_status_and_last_error():
    child = echo()
    child.write_line(b"fail the model is too large")
    with pytest.raises(ChildEndedError, match=r"ended with status 1 \(the model is too large\)") as ended:
        child.read_line()
    assert ended.value.status == 1
    with pytest.raises(ChildEndedError):
        child.write_line(b"x" * 10**6)
    child.close()


def test_a_silent_process_is_killed():
    child = echo()
    child.write_line(b"sleep 600")
    with pytest.raises(ChildTimeoutError):
        child.read_line(0.2)
    assert not child.alive
    child.close()


def test_closing_a_child_process_kills_grandchildren_and_its_folder():
    folder = TemporaryDirectory()
    child = echo(folder)
    child.write_line(b"child")
    grandchild = int(child.read_line())
    child.close()
    child.close()
    until = time.monotonic() + 30
    while runs(grandchild) and time.monotonic() < until:
        time.sleep(0.01)
    assert not runs(grandchild)
    assert not Path(folder.name).exists()


def test_child_process_ends_when_its_parent_is_killed():
    parent = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import os\nfrom podium.concurrency.child_process import ChildProcess\n"
            f"child = ChildProcess(('-c', {ECHO!r}))\nprint(child.id, flush=True)\nos.kill(os.getpid(), 9)",
        ],
        capture_output=True,
        check=False,
    )
    child, until = int(parent.stdout), time.monotonic() + 30
    while runs(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not runs(child)


async def test_a_pool_asks_side_by_side_and_keeps_its_processes():
    pool = ChildPool(echo, 2, "echo")
    answers = await asyncio.gather(*(pool.ask(f"{n}".encode(), 60) for n in range(20)))
    assert answers == [f"{n}".encode() for n in range(20)]
    kept = pool.idle
    assert 1 <= len(kept) <= 2
    assert await pool.ask(b"again", 60) == b"again"
    assert set(pool.idle) == set(kept)
    pool.close()
    assert not any(map(runs, kept))


async def test_a_question_that_is_given_up_ends_its_process():
    pool = ChildPool(echo, 1, "echo")
    await pool.ask(b"ready", 60)
    (process,) = pool.idle
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await pool.ask(b"sleep 600", 900)
    assert not runs(process)
    assert await pool.ask(b"next", 60) == b"next"
    pool.close()


def test_a_pool_that_is_forgotten_leaves_no_process():
    pool = ChildPool(echo, 1, "echo")
    assert pool.ask_and_wait(b"one", 60) == b"one"
    (process,) = pool.idle
    del pool
    gc.collect()
    assert not runs(process)


def test_a_child_has_the_modules_of_its_parent_and_one_core():
    child = ChildProcess(("-c", "import os, podium; print(podium.__file__, os.environ['OMP_NUM_THREADS'])"))
    import podium  # noqa: PLC0415

    assert child.read_line(60).decode() == f"{podium.__file__} 1"
    child.close()
