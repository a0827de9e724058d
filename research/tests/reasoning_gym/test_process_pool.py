"""The processes that run the library: limited, replaced, and gone when they are no longer wanted."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from podium.errors import GraderError
from podium_research.reasoning_gym.process_pool import (
    GeneratorConfig,
    ReasoningGymPool,
    SampleId,
    text_digest,
)

INTEGRAL = SampleId(config=GeneratorConfig(generator="simple_integration"), seed=0, number=0)


@pytest.fixture(scope="module")
def pool() -> ReasoningGymPool:
    return ReasoningGymPool()


def made(pool: ReasoningGymPool, sample_id: SampleId) -> tuple[str, str]:
    """The question of a draw, and its answer."""
    sample = pool.make(sample_id).sample
    assert sample is not None
    assert sample.valid
    return sample.question, sample.gold


async def test_an_answer_that_takes_for_ever_is_not_right_and_the_next_is_judged(
    pool: ReasoningGymPool,
) -> None:
    question, gold = made(pool, INTEGRAL)
    assert await pool.judge(INTEGRAL, "9**9**9**9*x", text_digest(question)) == 0.0
    assert await pool.judge(INTEGRAL, gold, text_digest(question)) == 1.0


async def test_answers_are_judged_side_by_side_each_by_its_own_question(pool: ReasoningGymPool) -> None:
    draws = [INTEGRAL.model_copy(update={"number": number}) for number in range(8)]
    known = [made(pool, sample_id) for sample_id in draws]
    shifted = [*known[1:], known[0]]
    right = [
        pool.judge(sample_id, gold, text_digest(question))
        for sample_id, (question, gold) in zip(draws, known, strict=True)
    ]
    wrong = [
        pool.judge(sample_id, gold, text_digest(question))
        for sample_id, (question, _), (_, gold) in zip(draws, known, shifted, strict=True)
    ]
    assert await asyncio.gather(*right, *wrong) == [1.0] * 8 + [0.0] * 8


def test_a_question_does_not_depend_on_what_its_process_made_before(pool: ReasoningGymPool) -> None:
    programs = [
        SampleId(config=GeneratorConfig(generator="codeio"), seed=0, number=number) for number in range(12)
    ]
    others = [
        SampleId(config=GeneratorConfig(generator=name), seed=0, number=number)
        for name in ("decimal_arithmetic", "list_functions", "pool_matrix")
        for number in range(30)
    ]
    before = [pool.make(sample_id) for sample_id in programs]
    for sample_id in others:
        pool.make(sample_id)
    assert [pool.make(sample_id) for sample_id in programs] == before


async def test_an_idle_process_that_was_ended_is_replaced(pool: ReasoningGymPool) -> None:
    question, gold = made(pool, INTEGRAL)
    for process in pool.idle_processes:
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it was killed
    assert await pool.judge(INTEGRAL, gold, text_digest(question)) == 1.0


async def test_a_process_killed_at_work_is_a_fault_and_no_verdict() -> None:
    pool = ReasoningGymPool()
    question, gold = made(pool, INTEGRAL)
    (process,) = pool.idle_processes
    judging = asyncio.create_task(pool.judge(INTEGRAL, "9**9**9**9*x", text_digest(question)))
    while pool.idle_processes:  # noqa: ASYNC110 - another thread takes it
        await asyncio.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(GraderError, match="ended"):
        await judging
    assert await pool.judge(INTEGRAL, gold, text_digest(question)) == 1.0


async def test_an_answer_to_another_question_is_not_judged(pool: ReasoningGymPool) -> None:
    with pytest.raises(GraderError, match=r"simple_integration/0/0 of reasoning-gym is another question"):
        await pool.judge(INTEGRAL, "x", text_digest("What is 1 + 1?"))


def test_garbage_collected_pool_leaves_no_process_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pool = ReasoningGymPool()
    made(pool, INTEGRAL)
    (process,) = pool.idle_processes
    assert list(tmp_path.iterdir())
    del pool
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_pool_processes_end_and_clean_up_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from podium_research.reasoning_gym.process_pool import GeneratorConfig, ReasoningGymPool, SampleId\n"
        "pool = ReasoningGymPool()\n"
        "pool.make(SampleId(config=GeneratorConfig(generator='gcd'), seed=0, number=0))\n"
        "print(*pool.idle_processes, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    user = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert user.returncode == -signal.SIGKILL
    until = time.monotonic() + 60
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir())
