"""Processes that spend together and are killed in the middle: no dollar above the limit, none counted twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.calls.shared_spend_limit import SharedSpendLimit
from podium.server.keys import Caller
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.register import Register, StoredKey
from podium.workers.spend_limit import NANO_PER_USD

LIMIT_USD, MOST_USD, PAID_USD = 5.0, 0.01, 0.004
CALLER = Caller(name="web", id="web", allowance=KeyAllowance.read("5"))
SPENDER = """
import asyncio, os, random, sys
from pathlib import Path
from podium.calls import Ledger, Reservation
from podium.calls.shared_spend_limit import SharedSpendLimit
from podium.server.keys import Caller
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.key_budget import KeyBudget
from podium.server.keys.register import Register
from podium.types import Budget, Spent

kind, path, bill = sys.argv[1:]

async def spend(limit, billed):
    hold = Reservation(1, 1, 0.01)
    while await (ledger := Ledger(Budget(), spend_limits=[limit])).reserve(hold) is None:
        await asyncio.sleep(random.random() / 50)
        os.write(billed, b"x")  # From here on the provider bills the call.
        await asyncio.sleep(random.random() / 50)
        ledger.settle(hold, Spent(cost_usd=0.004))

async def main():
    if kind == "file":
        limit, register = SharedSpendLimit(Path(path), "run", 5.0), None
    else:
        register = Register(Path(path))
        limit = KeyBudget(register, Caller(name="web", id="web", allowance=KeyAllowance.read("5")), "")
    billed = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(spend(limit, billed))
    if register is None:
        limit.close()
    else:
        await limit.close()
        await register.close()

asyncio.run(main())
"""


async def counted(kind: str, path: Path) -> tuple[float, float]:
    """The dollars spent, and those reserved, as a new process finds them."""
    if kind == "file":
        limit = SharedSpendLimit(path, "run", LIMIT_USD)
        figures = limit.spent_usd, limit.reserved_usd
        limit.close()
        return figures
    register = Register(path)
    spending = await register.spending("web", "")
    await register.close()
    return spending.spent / NANO_PER_USD, spending.reserved / NANO_PER_USD


async def add_key(path: Path) -> None:
    register = Register(path)
    assert await register.add(StoredKey(CALLER, b"digest", datetime.now(UTC)))
    await register.close()


@pytest.mark.parametrize("kind", ["file", "register"])
def test_killed_processes_pay_nothing_twice_and_nothing_above_the_limit(kind: str, tmp_path: Path) -> None:
    path, bill = tmp_path / "spending.sqlite", tmp_path / "bill"
    bill.touch()
    if kind == "register":
        asyncio.run(add_key(path))

    def check() -> None:
        paid_usd = PAID_USD * bill.stat().st_size
        spent_usd, reserved_usd = asyncio.run(counted(kind, path))
        assert paid_usd <= LIMIT_USD + 1e-9
        assert spent_usd <= paid_usd + 1e-9, "a dollar counts twice"
        assert spent_usd + reserved_usd >= paid_usd - 1e-9, "a dollar that was paid is free again"
        assert spent_usd + reserved_usd <= LIMIT_USD + 1e-9

    command = [sys.executable, "-c", SPENDER, kind, str(path), str(bill)]
    pair = [subprocess.Popen(command) for _ in range(2)]
    deadline = time.monotonic() + 60
    while bill.stat().st_size < 60 and time.monotonic() < deadline:
        time.sleep(0.001)
    for spender in pair:
        assert spender.poll() is None
        os.kill(spender.pid, signal.SIGKILL)
        spender.wait()
    check()
    _, lost_usd = asyncio.run(counted(kind, path))
    assert 0 < lost_usd < LIMIT_USD / 2, "nothing was in flight, or the rest is not worth a check"
    subprocess.run(command, check=True, timeout=60)
    check()
    spent_usd, reserved_usd = asyncio.run(counted(kind, path))
    assert reserved_usd == pytest.approx(lost_usd), "what was in flight at a kill stays reserved"
    assert spent_usd + reserved_usd > LIMIT_USD - MOST_USD, "the last process used what was left"
