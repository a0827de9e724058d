"""Processes that spend together and are killed in the middle: no dollar above the limit, none counted twice."""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from podium.errors import BudgetExceededError
from podium.server.keys import Caller
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.key_budget import KeyBudget
from podium.server.keys.key_store import KeyStore, StoredKey
from podium.spending import Ledger, Reservation
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.spending.spend_limit import NANO_PER_USD, SpendLimit
from podium.types import Budget, Spent

LIMIT_USD, MOST_USD, PAID_USD = 5.0, 0.01, 0.004
CALLER = Caller(name="web", id="web", allowance=KeyAllowance.read("5"))
FORKS = get_context("fork")
"""Of this process, which has loaded what they need."""


async def _spend(limit: SpendLimit, billed: int) -> None:
    hold = Reservation(1, 1, MOST_USD)
    with suppress(BudgetExceededError):
        while True:
            ledger = Ledger(Budget(), spend_limits=[limit])
            await ledger.reserve(hold)
            await asyncio.sleep(random.random() / 50)
            os.write(billed, b"x")  # From here on the provider bills the call.
            await asyncio.sleep(random.random() / 50)
            ledger.settle(hold, Spent(cost_usd=PAID_USD))


async def _spend_all(kind: str, path: Path, bill: Path) -> None:
    key_store = KeyStore(path) if kind == "key_store" else None
    limit = (
        SharedSpendLimit(path, "run", LIMIT_USD) if key_store is None else KeyBudget(key_store, CALLER, "")
    )
    billed = os.open(bill, os.O_WRONLY | os.O_APPEND)
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(_spend(limit, billed))
    if isinstance(limit, SharedSpendLimit):
        limit.close()
    else:
        await limit.close()
    if key_store is not None:
        await key_store.close()


def _spender(kind: str, path: Path, bill: Path) -> ForkProcess:
    """A process that spends until nothing is left."""
    spender = FORKS.Process(target=lambda: asyncio.run(_spend_all(kind, path, bill)))
    spender.start()
    return spender


async def counted(kind: str, path: Path) -> tuple[float, float]:
    """The dollars spent, and those reserved, as a new process finds them."""
    if kind == "file":
        limit = SharedSpendLimit(path, "run", LIMIT_USD)
        figures = limit.spent_usd, limit.reserved_usd
        limit.close()
        return figures
    key_store = KeyStore(path)
    spending = await key_store.spending("web", "")
    await key_store.close()
    return spending.spent / NANO_PER_USD, spending.reserved / NANO_PER_USD


async def add_key(path: Path) -> None:
    key_store = KeyStore(path)
    assert await key_store.add(StoredKey(CALLER, b"digest", datetime.now(UTC)))
    await key_store.close()


@pytest.mark.parametrize("kind", ["file", "key_store"])
def test_killed_processes_pay_nothing_twice_and_nothing_above_the_limit(kind: str, tmp_path: Path) -> None:
    path, bill = tmp_path / "spending.sqlite", tmp_path / "bill"
    bill.touch()
    if kind == "key_store":
        asyncio.run(add_key(path))

    def check() -> None:
        paid_usd = PAID_USD * bill.stat().st_size
        spent_usd, reserved_usd = asyncio.run(counted(kind, path))
        assert paid_usd <= LIMIT_USD + 1e-9
        assert spent_usd <= paid_usd + 1e-9, "a dollar counts twice"
        assert spent_usd + reserved_usd >= paid_usd - 1e-9, "a dollar that was paid is free again"
        assert spent_usd + reserved_usd <= LIMIT_USD + 1e-9

    pair = [_spender(kind, path, bill) for _ in range(2)]
    deadline = time.monotonic() + 60
    while bill.stat().st_size < 60 and time.monotonic() < deadline:
        time.sleep(0.001)
    for spender in pair:
        assert spender.is_alive()
        spender.kill()
        spender.join()
    check()
    _, lost_usd = asyncio.run(counted(kind, path))
    assert 0 < lost_usd < LIMIT_USD / 2, "nothing was in flight, or the rest is not worth a check"
    last = _spender(kind, path, bill)
    last.join(60)
    assert last.exitcode == 0
    check()
    spent_usd, reserved_usd = asyncio.run(counted(kind, path))
    assert reserved_usd == pytest.approx(lost_usd), "what was in flight at a kill stays reserved"
    assert spent_usd + reserved_usd > LIMIT_USD - MOST_USD, "the last process used what was left"
