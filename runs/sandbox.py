"""What a sandbox costs: programs graded a second on two processors, and what one program waits for.

python runs/sandbox.py [PROGRAMS]

Every measurement stands beside that of a like program as a plain `python -c`, taken in turn with it in the same run: so
the ratio holds on a machine that is busy with other things, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import sys
import time
import warnings
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from podium.sandbox.inside.run_limits import RunLimits
from podium.sandbox.isolation import PlainProcess
from podium.sandbox.sandbox_pool import SandboxPool
from podium.tasks.graders.code_grader import Submission
from podium.tasks.graders.code_tests import parse_tests

PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"
FUNCTION = "def add(a, b):\n    return a + b\n"
ASSERTS = "assert add(1, 2) == 3\n" * 20
SUITE = """import unittest

class TestCases(unittest.TestCase):
    def test_one(self):
        self.assertEqual(add(1, 2), 3)
"""
FORMS = {
    "a program, 1 test": (PROGRAM, {"form": "programs", "inputs": ["1 2"], "outputs": ["3"]}, [PROGRAM]),
    "a program, 20 tests": (
        PROGRAM,
        {"form": "programs", "inputs": ["1 2"] * 20, "outputs": ["3"] * 20},
        [PROGRAM] * 20,
    ),
    "a function, 20 calls": (
        FUNCTION,
        {"form": "calls", "function": "add", "inputs": [[1, 2]] * 20, "outputs": [3] * 20},
        [FUNCTION + ASSERTS],
    ),
    "asserts, 20 calls": (FUNCTION, {"form": "asserts", "tests": ASSERTS}, [FUNCTION + ASSERTS]),
    "a unittest suite": (
        FUNCTION,
        {"form": "unittest", "tests": SUITE},
        [f"{FUNCTION}{SUITE}unittest.main()"],
    ),
}
"""The program, its tests, and the plain programs that test the same."""


def plain(form: str) -> Callable[[], Awaitable[None]]:
    """The same without a sandbox, and without a grader."""

    async def run() -> None:
        for source in FORMS[form][2]:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", source), stdin=PIPE, stdout=PIPE, stderr=PIPE
            )
            await process.communicate(b"1 2\n")
            assert process.returncode == 0

    return run


def graded(pool: SandboxPool, form: str) -> Callable[[], Awaitable[None]]:
    """One grading of a right program."""
    source, gold, _ = FORMS[form]
    tests = parse_tests(json.dumps(gold))
    free = RunLimits(cpu_s=60, wall_s=180)

    async def grade() -> None:
        assert await Submission(source, free, free).passes(tests, pool, allow_weak=True)

    return grade


async def alone(deeds: list[Callable[[], Awaitable[None]]], times: int) -> list[float]:
    """Median milliseconds of each, taken in turn, one at a time, with a pause in which sandboxes start."""
    taken: list[list[float]] = [[] for _ in deeds]
    for _ in range(times):
        for deed, found in zip(deeds, taken, strict=True):
            began = time.perf_counter()
            await deed()
            found.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(0.1)
    return [statistics.median(found) for found in taken]


async def rate(deed: Callable[[], Awaitable[None]], times: int, at_once: int = 2) -> tuple[float, float]:
    """How many a second, so many at once; and the milliseconds of processor time that one takes."""
    left = iter(range(times))

    async def worker() -> None:
        for _ in left:
            await deed()

    began, used = time.perf_counter(), processor_s()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return times / (time.perf_counter() - began), 1000 * (processor_s() - used) / times


def processor_s() -> float:
    """Of this process, and of all that it has waited for, and they in turn."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def main(times: int) -> None:
    for pool in (SandboxPool(slots=2), SandboxPool(PlainProcess(), slots=2)):
        async with aclosing(pool):
            isolation = await pool.isolation()
            weak = ", weak" if isolation.weak else ""
            print(f"\n{isolation.name}{weak}: {times} programs a row, processors {cores()}")
            print(
                f"{'':22}{'alone':>9}{'plain':>9}{'more':>8}{'a second':>10}{'plain':>8}{'CPU':>9}{'plain':>9}"
            )
            for form in FORMS:
                grade = graded(pool, form)
                await rate(grade, 4)
                one, other = await alone([grade, plain(form)], times)
                (many, used), (others, other_used) = await rate(grade, times), await rate(plain(form), times)
                print(f"{form:22}{one:6.1f} ms{other:6.1f} ms{one - other:5.1f} ms", end="")
                print(f"{many:10.1f}{others:8.1f}{used:6.1f} ms{other_used:6.1f} ms")


def cores() -> str:
    """The processors that this runs on, and how busy they are with whatever else there is."""
    return f"{sorted(os.sched_getaffinity(0))}, load {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
