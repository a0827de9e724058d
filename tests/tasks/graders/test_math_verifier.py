"""The processes that compare: few, kept, replaced when they die, and gone with their event loop."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from podium.errors import GraderError
from podium.tasks.graders.math_graders import MathVerifier

QUESTION = {"gold": "x+1", "answer": "1+x", "decimals": 6, "strict": True, "relations_as_sets": False}
SLOW = QUESTION | {"gold": "x^2+7", "answer": "{" * 18 + "1" + "}" * 18}


def running() -> set[int]:
    """The processes of verifier that this one has started."""
    made = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"math_process.py" in (status.parent / "cmdline").read_bytes():
                made.add(int(status.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return made


def test_processes_are_few_are_kept_and_end_with_their_loop() -> None:
    before = running()
    verifier = MathVerifier()

    async def ask() -> None:
        assert all(await asyncio.gather(*(verifier.compare(QUESTION, 5) for _ in range(30))))
        first = running() - before
        assert 1 <= len(first) <= len(os.sched_getaffinity(0))
        assert await verifier.compare(QUESTION, 5)
        assert running() - before == first

    asyncio.run(ask())
    assert running() == before


def test_verifier_timeout_gives_no_verdict_and_the_next_call_works() -> None:
    async def ask() -> None:
        verifier = MathVerifier()
        assert await verifier.compare(SLOW, 0.3) is None
        assert await verifier.compare(QUESTION, 5) is True
        assert await verifier.compare(QUESTION | {"answer": "x"}, 5) is False

    asyncio.run(ask())


def test_a_process_killed_at_work_is_an_infrastructure_fault_and_replaced() -> None:
    before = running()

    async def ask() -> None:
        verifier = MathVerifier()
        await verifier.compare(QUESTION, 5)
        (process,) = running() - before
        working = asyncio.create_task(verifier.compare(SLOW, 60))
        await asyncio.sleep(0.3)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(GraderError, match="ended with status -9"):
            await working
        assert await verifier.compare(QUESTION, 5)
        (process,) = running() - before
        os.kill(process, signal.SIGKILL)  # while it is idle
        await asyncio.sleep(0.3)
        assert await verifier.compare(QUESTION, 5)

    asyncio.run(ask())


def test_a_question_that_is_given_up_leaves_no_process_at_work() -> None:
    before = running()

    async def ask() -> None:
        verifier = MathVerifier()
        await verifier.compare(QUESTION, 5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await verifier.compare(SLOW, 60)
        assert running() == before
        assert await verifier.compare(QUESTION, 5)

    asyncio.run(ask())
    assert running() == before
