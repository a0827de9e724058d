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
from podium.tasks.gym import Draw, Variety, Workshop, digest

INTEGRAL = Draw(variety=Variety(generator="simple_integration"), seed=0, number=0)


@pytest.fixture(scope="module")
def workshop() -> Workshop:
    return Workshop()


def made(workshop: Workshop, draw: Draw) -> tuple[str, str]:
    """The question of a draw, and its answer."""
    drawn = workshop.make(draw).drawn
    assert drawn is not None
    assert drawn.sound
    return drawn.question, drawn.gold


async def test_an_answer_that_would_take_for_ever_is_not_right_and_the_next_one_is_judged(
    workshop: Workshop,
) -> None:
    question, gold = made(workshop, INTEGRAL)
    assert await workshop.judge(INTEGRAL, "9**9**9**9*x", digest(question)) == 0.0
    assert await workshop.judge(INTEGRAL, gold, digest(question)) == 1.0


async def test_answers_are_judged_side_by_side_each_by_its_own_question(workshop: Workshop) -> None:
    draws = [INTEGRAL.model_copy(update={"number": number}) for number in range(8)]
    known = [made(workshop, draw) for draw in draws]
    shifted = [*known[1:], known[0]]
    right = [
        workshop.judge(draw, gold, digest(question))
        for draw, (question, gold) in zip(draws, known, strict=True)
    ]
    wrong = [
        workshop.judge(draw, gold, digest(question))
        for draw, (question, _), (_, gold) in zip(draws, known, shifted, strict=True)
    ]
    assert await asyncio.gather(*right, *wrong) == [1.0] * 8 + [0.0] * 8


def test_a_question_does_not_depend_on_what_its_process_made_before() -> None:
    workshop = Workshop()
    programs = [Draw(variety=Variety(generator="codeio"), seed=0, number=number) for number in range(12)]
    others = [
        Draw(variety=Variety(generator=name), seed=0, number=number)
        for name in ("decimal_arithmetic", "list_functions", "pool_matrix")
        for number in range(30)
    ]
    before = [workshop.make(draw) for draw in programs]
    for draw in others:
        workshop.make(draw)
    assert [workshop.make(draw) for draw in programs] == before


async def test_a_process_that_was_ended_is_a_fault_and_no_verdict() -> None:
    workshop = Workshop()
    question, gold = made(workshop, INTEGRAL)
    (process,) = workshop.waiting
    os.kill(process, signal.SIGKILL)
    with pytest.raises(GraderError, match="ended"):
        await workshop.judge(INTEGRAL, gold, digest(question))
    assert await workshop.judge(INTEGRAL, gold, digest(question)) == 1.0


async def test_an_answer_to_another_question_is_not_judged(workshop: Workshop) -> None:
    with pytest.raises(GraderError, match=r"simple_integration/0/0 of reasoning-gym is another question"):
        await workshop.judge(INTEGRAL, "x", digest("What is 1 + 1?"))


def test_a_workshop_that_is_forgotten_leaves_no_process_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workshop = Workshop()
    made(workshop, INTEGRAL)
    (process,) = workshop.waiting
    assert list(tmp_path.iterdir())
    del workshop
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_its_processes_end_and_clean_up_when_their_user_is_ended(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from podium.tasks.gym import Draw, Variety, Workshop\n"
        "workshop = Workshop()\n"
        "workshop.make(Draw(variety=Variety(generator='gcd'), seed=0, number=0))\n"
        "print(*workshop.waiting, flush=True)\n"
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
