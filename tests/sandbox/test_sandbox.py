"""Sandboxes in stock: one program each, no more at once than there are slots, and none left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from siege import left, walls_here

from podium.errors import ConfigError, GraderError
from podium.sandbox.cell import Ended, Said
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.isolation import Bare, Bubblewrap, Isolation
from podium.sandbox.sandbox import Sandbox
from podium.sandbox.sandboxes import Sandboxes

pytestmark = pytest.mark.filterwarnings("ignore:Programs run")
FREE = Allowance(cpu_s=60, wall_s=60)


@pytest.fixture(params=walls_here(), ids=lambda walls: walls.name)
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    async with Sandbox(request.param, slots=2) as opened:
        yield opened


def interpreters() -> list[int]:
    """Our children that are sandboxes, those that have ended but were not waited for among them."""
    pids = [
        int(pid)
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    return [
        pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() in ("bwrap", "python", "python3")
    ]


@pytest.fixture
def others() -> list[int]:
    """Processes of other tests' that are there already."""
    return interpreters()


async def printed(sandbox: Sandbox, source: str) -> str:
    async with sandbox.cells(allow_weak=True) as (cell,):
        ended = await cell.run(source, "", FREE)
    return ended.words.decode()


async def test_programs_find_nothing_of_each_other(sandbox: Sandbox) -> None:
    leave = "import os\nfor place in (os.environ['TMPDIR'], '.'):\n    open(place + '/left', 'w').close()\n"
    look = "import os\nprint(any('left' in names for _, _, names in os.walk(os.environ['TMPDIR'])))"
    assert await printed(sandbox, leave) == ""
    assert await printed(sandbox, f"{leave}{look}") == "True\n"
    assert await printed(sandbox, look) == "False\n"


async def test_imports_are_there_before_the_program(sandbox: Sandbox) -> None:
    async with sandbox.cells(["import colorsys"], allow_weak=True) as (cell,):
        ended = await cell.run(
            "import sys\nprint('colorsys' in sys.modules, 'colorsys' in globals())", "", FREE
        )
    assert ended.words == b"True False\n"


async def test_an_import_that_fails_is_no_fault_of_a_program(sandbox: Sandbox) -> None:
    with pytest.raises(GraderError, match="No module named 'nobody_has_this'"):
        async with sandbox.cells(["import nobody_has_this"], allow_weak=True):
            pass


async def test_no_more_programs_run_than_there_are_slots(sandbox: Sandbox) -> None:
    running, most, pair = 0, 0, asyncio.Barrier(2)

    async def one() -> None:
        nonlocal running, most
        async with sandbox.cells(["", ""], allow_weak=True) as cells:
            running += 1
            most = max(most, running)
            await cells[0].run("", "", FREE)
            await pair.wait()
            running -= 1

    await asyncio.gather(*(one() for _ in range(6)))
    assert most == 2


async def test_a_cell_that_died_in_stock_is_not_used(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "print(1)") == "1\n"
    cells = await asyncio.gather(*(starting for _, starting in sandbox._stock))
    for cell in cells:
        os.kill(cell._process.pid, 9)
        while cell.alive:  # noqa: ASYNC110 - it is a matter of milliseconds
            await asyncio.sleep(0.01)
    assert await printed(sandbox, "print(2)") == "2\n"


async def test_what_is_told_and_printed_is_any_text(sandbox: Sandbox) -> None:
    text = "".join(map(chr, [*range(1, 13), *range(14, 0xD800, 97), *range(0xE000, 0x20000, 997)]))
    async with sandbox.cells(allow_weak=True) as (cell,):
        ended = await cell.run("import sys\nsys.stdout.write(sys.stdin.read())", text, FREE)
        assert ended.words.decode() == text
        ended = await cell.run("import sys\nsys.stdout.write(sys.stdin.read()[::-1])", "ab" * 2**20, FREE)
        assert ended.words == b"ba" * 2**20


async def test_last_words_are_heard(sandbox: Sandbox) -> None:
    source = "import os\ndef leave(): os.write(4, b'\\0\\0\\0\\3bye'), os._exit(0)"
    given = {"source": source, "prelude": "", "names": ["leave"]}
    async with sandbox.cells(allow_weak=True) as (cell,):
        for _ in range(100):  # it ends at once, and may be seen to have ended before it is heard
            await cell.open("program", given, FREE)
            assert await cell.say(b'{"call": "leave", "given": [], "named": {"dict": []}}') == Said(b"bye")


async def test_a_conversation_ends_with_the_program(sandbox: Sandbox) -> None:
    given = {"source": "import os\ndef leave(): os._exit(3)", "prelude": "", "names": ["leave", "stay"]}
    call = b'{"call": "leave", "given": [], "named": {"dict": []}}'
    async with sandbox.cells(allow_weak=True) as (cell,):
        assert await cell.open("program", given, FREE) == Said(b'["leave"]')
        assert await cell.say(call) == Ended("failed")
        assert await cell.say(call) == Ended("gone")


async def test_one_that_hears_too_much_for_it_is_not_waited_for(sandbox: Sandbox) -> None:
    async with sandbox.cells(allow_weak=True) as (cell,):
        ended = await cell.run("print('no, thanks')", "x" * 2**22, FREE)
    assert (ended.how, ended.words) == ("done", b"no, thanks\n")


async def test_nobody_is_left_when_a_grading_is_cancelled(others: list[int], sandbox: Sandbox) -> None:
    grading = asyncio.create_task(printed(sandbox, "while True: pass"))
    await asyncio.sleep(0.3)
    grading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await grading
    await sandbox.close()
    assert set(interpreters()) <= set(others)


@pytest.mark.parametrize("walls", walls_here(), ids=lambda walls: walls.name)
def test_nobody_is_left_when_a_loop_has_ended(walls: Isolation, others: list[int]) -> None:
    held = Sandboxes(walls)
    for _ in range(2):
        assert asyncio.run(_used(held)) == "1\n"
        assert set(interpreters()) <= set(others)


@pytest.mark.parametrize("walls", walls_here(), ids=lambda walls: walls.name)
def test_nobody_is_left_when_the_grader_goes_before_the_loop(walls: Isolation, others: list[int]) -> None:
    async def forget() -> None:
        await _used(Sandboxes(walls))

    asyncio.run(forget())
    gc.collect()
    assert set(interpreters()) <= set(others)


async def _used(held: Sandboxes) -> str:
    return await printed(await held.sandbox(), "print(1)")


KILLED = """
import asyncio, sys, warnings
from podium.sandbox.isolation import Bare
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.sandbox import Sandbox

async def main():
    sandbox = Sandbox(Bare() if sys.argv[1] == "no walls" else None)
    async with sandbox.cells(allow_weak=True) as (cell,):
        print("begun", flush=True)
        await cell.run("import os\\nos.execvp('sleep', ['sleep', '86398'])", "", Allowance(wall_s=600))

warnings.simplefilter("ignore")
asyncio.run(main())
"""


@pytest.mark.parametrize("walls", walls_here(), ids=lambda walls: walls.name)
def test_programs_die_with_us(walls: Isolation, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, walls.name],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as us:
        assert us.stdout is not None
        assert us.stdout.readline() == b"begun\n"
        _until(lambda: bool(left(86398)))
        us.kill()
    _until(lambda: not left(86398) and not list(tmp_path.iterdir()))


def _until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come to pass")


async def test_a_fork_of_ours_keeps_no_sandbox(sandbox: Sandbox) -> None:
    async with sandbox.cells(allow_weak=True) as (cell,):
        fork = _fork()
    try:
        assert cell._process._popen.returncode == 0  # it has ended by itself
    finally:
        _end(fork)


def _fork() -> int:
    fork = os.fork()
    if fork == 0:
        time.sleep(60)
        os._exit(0)
    return fork


def _end(fork: int) -> None:
    os.kill(fork, 9)
    os.waitpid(fork, 0)


async def test_weak_walls_have_to_be_allowed_and_are_loud() -> None:
    async with Sandbox(Bare()) as sandbox:
        with pytest.raises(ConfigError, match=r"install bubblewrap, or, .* set allow_weak_sandbox = true"):
            async with sandbox.cells():
                pass
        with pytest.warns(RuntimeWarning, match="WITHOUT WALLS"):
            async with sandbox.cells(allow_weak=True):
                pass


async def test_without_bubblewrap_the_walls_are_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    async with Sandbox() as sandbox:
        assert (await sandbox.walls()).weak


async def test_a_bubblewrap_that_does_not_work_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "bwrap"
    tool.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    async with Sandbox() as sandbox:
        assert (await sandbox.walls()).weak
        with pytest.raises(ConfigError, match="No permissions to create new namespace"):
            async with sandbox.cells():
                pass


async def test_walls_that_are_not_there_are_a_fault_of_the_grader() -> None:
    with pytest.raises(GraderError, match="bubblewrap"):
        await Sandbox(Bubblewrap("/nowhere/bwrap")).walls()


async def test_closing_twice_is_fine(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "print(1)") == "1\n"
    await sandbox.close()
    await sandbox.close()
    assert await printed(sandbox, "print(2)") == "2\n"
