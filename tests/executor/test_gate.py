import asyncio

from podium.executor import Gate, Gates
from podium.types import Limits
from podium.workers.scripted import ScriptedWorker


async def admissions_within(gate: Gate, seconds: float, tokens: int) -> int:
    admitted = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                await gate.admit(tokens)
                admitted += 1
                await asyncio.sleep(0)
    except TimeoutError:
        return admitted


async def test_requests_a_minute_are_limited_to_a_small_burst():
    # 600 a minute: a bucket of 60, and 10 more each second.
    assert 60 <= await admissions_within(Gate(Limits(rpm=600)), 0.25, tokens=1) <= 63


async def test_tokens_a_minute_are_limited_and_a_giant_call_still_passes():
    assert 5 <= await admissions_within(Gate(Limits(tpm=1_000)), 0.25, tokens=20) <= 6
    await asyncio.wait_for(Gate(Limits(tpm=1_000)).admit(50_000), timeout=1.0)


def test_gates_are_shared_by_name_and_made_anew_for_another_loop():
    gates, worker = Gates(), ScriptedWorker("a", {"": "ok"}, limits=Limits(concurrency=1))

    async def gate() -> Gate:
        assert gates.of(worker) is gates.of(worker)
        assert gates.of(worker) is not gates.of(ScriptedWorker("b", []))
        return gates.of(worker)

    assert asyncio.run(gate()) is not asyncio.run(gate())
