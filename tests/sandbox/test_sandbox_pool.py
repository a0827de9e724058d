"""The pool: each sandbox runs one program, no more at once than there are slots, and no process is left."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path

import pytest

from attack_runs import isolations_here, left
from podium.concurrency.event_loops import PerLoop
from podium.errors import ConfigError, GraderError
from podium.sandbox.inside.run_limits import RunLimits
from podium.sandbox.isolation import Bubblewrap, Isolation, PlainProcess
from podium.sandbox.sandbox import ProgramExit, ProgramOutput
from podium.sandbox.sandbox_pool import SandboxPool, open_sandboxes

pytestmark = pytest.mark.filterwarnings("ignore:Programs run")
FREE = RunLimits(cpu_s=60, wall_s=60)


@pytest.fixture(params=isolations_here(), ids=lambda isolation: isolation.name)
async def pool(request: pytest.FixtureRequest) -> AsyncIterator[SandboxPool]:
    async with aclosing(SandboxPool(request.param, slots=2)) as opened:
        yield opened


def interpreters() -> list[int]:
    """Our children that are sandboxes, those that have ended but were not waited for among them."""
    found = []
    # Not /proc/self/task/*/children: that of a thread which ends meanwhile is gone, and lists may lack a process.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            named, _, rest = stat.read_text().rpartition(")")
            pid, _, name = named.partition(" (")
            if int(rest.split()[1]) == os.getpid() and name in ("bwrap", "python", "python3"):
                found.append(int(pid))
    return found


@pytest.fixture
def others() -> list[int]:
    """Processes of other tests' that are there already."""
    return interpreters()


async def printed(pool: SandboxPool, source: str) -> str:
    async with pool.acquire(allow_weak=True) as (sandbox,):
        ended = await sandbox.run(source, "", FREE)
    return ended.output.decode()


async def test_programs_find_nothing_of_each_other(pool: SandboxPool) -> None:
    leave = "import os\nfor place in (os.environ['TMPDIR'], '.'):\n    open(place + '/left', 'w').close()\n"
    look = "import os\nprint(any('left' in names for _, _, names in os.walk(os.environ['TMPDIR'])))"
    assert await printed(pool, leave) == ""
    assert await printed(pool, f"{leave}{look}") == "True\n"
    assert await printed(pool, look) == "False\n"


async def test_a_sandbox_runs_each_program_without_files_of_the_last(pool: SandboxPool) -> None:
    leave = "import os\nfor place in (os.environ['TMPDIR'], '.', *['/dev/shm'] * (os.getppid() == 1)):\n"
    leave += "    os.makedirs(place + '/a/b')\n    open(place + '/a/b/c', 'wb').write(bytes(2 * 10**7))\n"
    leave += "    os.chmod(place + '/a', 0)"
    look = "import os\nplaces = (os.environ['TMPDIR'], *['/dev/shm'] * (os.getppid() == 1))\n"
    look += "print(*(name for place in places for *_, names in os.walk(place) for name in names))"
    async with pool.acquire(allow_weak=True) as (sandbox,):
        for _ in range(3):
            assert await sandbox.run(leave, "", FREE) == ProgramExit("done")
        assert await sandbox.run(look, "", FREE) == ProgramExit("done", b"\n")


async def test_imports_are_loaded_before_the_program_starts(pool: SandboxPool) -> None:
    async with pool.acquire(["import colorsys"], allow_weak=True) as (sandbox,):
        ended = await sandbox.run(
            "import sys\nprint('colorsys' in sys.modules, 'colorsys' in globals())", "", FREE
        )
    assert ended.output == b"True False\n"


async def test_programs_can_read_the_configuration_of_the_system(pool: SandboxPool) -> None:
    assert await printed(pool, "import os\nprint('secrets' in os.listdir('/etc'))") == "False\n"


async def test_failed_import_of_a_prelude_raises_a_grader_error(pool: SandboxPool) -> None:
    with pytest.raises(GraderError, match="No module named 'nobody_has_this'"):
        async with pool.acquire(["import nobody_has_this"], allow_weak=True):
            pass


async def test_no_more_programs_run_than_there_are_slots(pool: SandboxPool) -> None:
    running, most, pair = 0, 0, asyncio.Barrier(2)

    async def one() -> None:
        nonlocal running, most
        async with pool.acquire(["", ""], allow_weak=True) as sandboxes:
            running += 1
            most = max(most, running)
            await sandboxes[0].run("", "", FREE)
            await pair.wait()
            running -= 1

    await asyncio.gather(*(one() for _ in range(6)))
    assert most == 2


async def test_a_waiting_sandbox_that_died_is_not_used(pool: SandboxPool) -> None:
    assert await printed(pool, "print(1)") == "1\n"
    sandboxes = await asyncio.gather(*(starting for _, starting in pool._ready))
    for sandbox in sandboxes:
        os.kill(sandbox._process.pid, 9)
        while sandbox.alive:  # noqa: ASYNC110 - it is a matter of milliseconds
            await asyncio.sleep(0.01)
    assert await printed(pool, "print(2)") == "2\n"


async def test_input_and_output_are_any_text(pool: SandboxPool) -> None:
    text = "".join(map(chr, [*range(1, 13), *range(14, 0xD800, 97), *range(0xE000, 0x20000, 997)]))
    async with pool.acquire(allow_weak=True) as (sandbox,):
        ended = await sandbox.run("import sys\nsys.stdout.write(sys.stdin.read())", text, FREE)
        assert ended.output.decode() == text
        ended = await sandbox.run("import sys\nsys.stdout.write(sys.stdin.read()[::-1])", "ab" * 2**20, FREE)
        assert ended.output == b"ba" * 2**20


async def test_a_message_sent_right_before_the_end_is_received(pool: SandboxPool) -> None:
    source = "import os\ndef leave(): os.write(4, b'\\0\\0\\0\\3bye'), os._exit(0)"
    given = {"source": source, "prelude": "", "names": ["leave"]}
    async with pool.acquire(allow_weak=True) as (sandbox,):
        for _ in range(100):  # it ends at once, perhaps before its message is read
            await sandbox.open("program", given, FREE)
            assert await sandbox.send(
                b'{"call": "leave", "given": [], "named": {"dict": []}}'
            ) == ProgramOutput(b"bye")


async def test_a_conversation_ends_with_the_program(pool: SandboxPool) -> None:
    given = {"source": "import os\ndef leave(): os._exit(3)", "prelude": "", "names": ["leave", "stay"]}
    call = b'{"call": "leave", "given": [], "named": {"dict": []}}'
    async with pool.acquire(allow_weak=True) as (sandbox,):
        assert await sandbox.open("program", given, FREE) == ProgramOutput(b'["leave"]')
        assert await sandbox.send(call) == ProgramExit("failed")
        assert await sandbox.send(call) == ProgramExit("gone")


@pytest.mark.parametrize("seconds", [0.2, 0.005])
async def test_calls_together_have_a_limit_of_cpu_time(pool: SandboxPool, seconds: float) -> None:
    source = f"from time import process_time\ndef burn():\n    end = process_time() + {seconds}\n"
    given = {"source": f"{source}    while process_time() < end: pass", "prelude": "", "names": ["burn"]}
    async with pool.acquire(allow_weak=True) as (sandbox,):
        received = await sandbox.open("program", given, FREE._replace(total_cpu_s=0.5))
        calls = 0
        while isinstance(received, ProgramOutput) and calls < 1000:
            received = await sandbox.send(b'{"call": "burn", "given": [], "named": {"dict": []}}')
            calls += 1
    assert received == ProgramExit("time")
    assert 1 < calls < 1 / seconds


async def test_new_processes_of_the_user_do_not_use_up_a_limit() -> None:
    limit = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NPROC)[0])"
    ended = threading.Event()
    async with aclosing(SandboxPool(PlainProcess())) as pool, pool.acquire(allow_weak=True) as (sandbox,):
        before = await sandbox.run(limit, "", FREE)
        threads = [threading.Thread(target=ended.wait) for _ in range(400)]
        try:
            for thread in threads:
                thread.start()
            after = await sandbox.run(limit, "", FREE)
        finally:
            ended.set()
    assert int(after.output) - int(before.output) > 200  # other tests' processes come and go


async def test_a_program_that_leaves_its_input_unread_ends(pool: SandboxPool) -> None:
    async with pool.acquire(allow_weak=True) as (sandbox,):
        ended = await sandbox.run("print('no, thanks')", "x" * 2**22, FREE)
    assert (ended.reason, ended.output) == ("done", b"no, thanks\n")


async def test_no_process_is_left_when_a_grading_is_cancelled(others: list[int], pool: SandboxPool) -> None:
    grading = asyncio.create_task(printed(pool, "while True: pass"))
    await asyncio.sleep(0.3)
    grading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await grading
    await pool.aclose()
    assert set(interpreters()) <= set(others)


@pytest.mark.parametrize("isolation", isolations_here(), ids=lambda isolation: isolation.name)
def test_no_process_is_left_when_a_loop_has_ended(isolation: Isolation, others: list[int]) -> None:
    pools = PerLoop(partial(open_sandboxes, isolation))
    for _ in range(2):
        assert asyncio.run(_used(pools)) == "1\n"
        assert set(interpreters()) <= set(others)


@pytest.mark.parametrize("isolation", isolations_here(), ids=lambda isolation: isolation.name)
def test_no_process_is_left_when_the_grader_goes_before_the_loop(
    isolation: Isolation, others: list[int]
) -> None:
    async def forget() -> None:
        await _used(PerLoop(partial(open_sandboxes, isolation)))

    asyncio.run(forget())
    gc.collect()
    assert set(interpreters()) <= set(others)


async def _used(pools: PerLoop[SandboxPool]) -> str:
    return await printed(await pools.get(), "print(1)")


KILLED = """
import asyncio, sys, warnings
from podium.sandbox.isolation import PlainProcess
from podium.sandbox.inside.run_limits import RunLimits
from podium.sandbox.sandbox_pool import SandboxPool

async def main():
    pool = SandboxPool(PlainProcess() if sys.argv[1] == "no isolation" else None)
    async with pool.acquire(allow_weak=True) as (sandbox,):
        print("begun", flush=True)
        await sandbox.run("import os\\nos.execvp('sleep', ['sleep', '86398'])", "", RunLimits(wall_s=600))

warnings.simplefilter("ignore")
asyncio.run(main())
"""


@pytest.mark.parametrize("isolation", isolations_here(), ids=lambda isolation: isolation.name)
def test_sandboxed_programs_end_when_podium_is_killed(isolation: Isolation, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, isolation.name],
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


async def test_forked_process_does_not_keep_a_sandbox_alive(pool: SandboxPool) -> None:
    async with pool.acquire(allow_weak=True) as (sandbox,):
        fork = _fork()
    try:
        assert sandbox._process._popen.returncode == 0  # it has ended by itself
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


async def test_weak_isolation_must_be_allowed_and_warns() -> None:
    async with aclosing(SandboxPool(PlainProcess())) as pool:
        with pytest.raises(ConfigError, match=r"install bubblewrap, or, .* set allow_weak_sandbox = true"):
            async with pool.acquire():
                pass
        with pytest.warns(RuntimeWarning, match="WITHOUT ISOLATION"):
            async with pool.acquire(allow_weak=True):
                pass


async def test_without_bubblewrap_the_isolation_is_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    async with aclosing(SandboxPool()) as pool:
        assert (await pool.isolation()).weak


async def test_a_bubblewrap_that_does_not_work_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "bwrap"
    tool.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    async with aclosing(SandboxPool()) as pool:
        assert (await pool.isolation()).weak
        with pytest.raises(ConfigError, match="No permissions to create new namespace"):
            async with pool.acquire():
                pass


async def test_an_isolation_that_does_not_start_is_a_grader_error() -> None:
    with pytest.raises(GraderError, match="bubblewrap"):
        await SandboxPool(Bubblewrap("/nowhere/bwrap")).isolation()


async def test_closing_twice_is_fine(pool: SandboxPool) -> None:
    assert await printed(pool, "print(1)") == "1\n"
    await pool.aclose()
    await pool.aclose()
    assert await printed(pool, "print(2)") == "2\n"
