import asyncio

from podium.executor import Gate, Gates
from podium.types import Limits
from podium.workers.scripted import ScriptedWorker


async def admissions(gate: Gate, tokens: int) -> tuple[int, float]:
    """How many calls are admitted in some quarter of a second, and its true length."""
    clock, admitted = asyncio.get_running_loop().time, 0
    started = clock()
    try:
        async with asyncio.timeout(0.25):
            while True:
                await gate.admit(tokens)
                admitted += 1
                await asyncio.sleep(0)
    except TimeoutError:
        return admitted, clock() - started


async def test_requests_a_minute_are_limited_to_a_small_burst():
    # 600 a minute: a bucket of 60, and 10 more each second.
    admitted, seconds = await admissions(Gate(Limits(rpm=600)), tokens=1)
    assert 60 <= admitted <= 61 + 10 * seconds


async def test_tokens_a_minute_are_limited_and_a_giant_call_still_passes():
    # 1,000 a minute: a bucket of 100, and 17 more each second.
    admitted, seconds = await admissions(Gate(Limits(tpm=1_000)), tokens=20)
    assert 5 <= admitted <= 6 + seconds
    await asyncio.wait_for(Gate(Limits(tpm=1_000)).admit(50_000), timeout=5.0)


def test_gates_are_shared_by_name_and_made_anew_for_another_loop():
    gates, worker = Gates(), ScriptedWorker("a", {"": "ok"}, limits=Limits(concurrency=1))

    async def gate() -> Gate:
        assert gates.of(worker) is gates.of(worker)
        assert gates.of(worker) is not gates.of(ScriptedWorker("b", []))
        return gates.of(worker)

    assert asyncio.run(gate()) is not asyncio.run(gate())
