"""Key budgets: replicas together never pass the limit, settle all that was paid, and give the rest back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Executable

from key_storage import KeyStorage
from podium.errors import APIError, BudgetExceededError, StoreError
from podium.server.keys import Caller, Keys
from podium.server.keys.caller import NANO_PER_USD
from podium.server.keys.key_budget import KeyBudget
from podium.server.keys.key_store import KeyStore
from podium.spending import Ledger, Reservation
from podium.types import Budget, Spent

NOW = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)


def ledger(key_budget: KeyBudget) -> Ledger:
    return Ledger(Budget(), spend_limits=[key_budget])


class Replica:
    """One more server over the same keys."""

    def __init__(self, storage: KeyStorage, caller: Caller) -> None:
        self.key_store: KeyStore = storage.open()
        self.key_budget = KeyBudget(self.key_store, caller, "x")
        self.paid = 0.0
        self.begun = asyncio.Event()
        self.calls = 0
        self.refusals: list[str] = []

    async def call(
        self, most: float, paid: float, seconds: float = 0.0, *, until: asyncio.Event | None = None
    ) -> None:
        """One question of one call, which ends after `seconds`, or when `until` is set."""
        question, hold = ledger(self.key_budget), Reservation(1, 10, most)
        try:
            await question.reserve(hold)
        except BudgetExceededError as refusal:
            self.refusals.append(str(refusal))
            return
        self.begun.set()
        await (asyncio.sleep(seconds) if until is None else until.wait())
        question.settle(hold, Spent(cost_usd=paid))
        self.paid += paid
        self.calls += 1

    async def close(self) -> None:
        await self.key_budget.close()
        await self.key_store.close()


async def test_with_64_calls_in_flight_at_each_of_two_replicas_the_limit_holds(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="2")
    replicas, watch, random = [Replica(storage, caller) for _ in range(2)], storage.open(), Random("wallets")
    peak = 0

    async def ask(replica: Replica) -> None:
        for _ in range(6):
            most = random.choice([0.01, 0.02, 0.05])
            await replica.call(most, most * random.random(), random.uniform(0, 0.02))

    async def refresh(done: asyncio.Event) -> None:
        nonlocal peak
        while not done.is_set():
            spending = await watch.spending(caller.id or "", "x")
            peak = max(peak, spending.spent + spending.reserved)
            await asyncio.sleep(0.001)

    done = asyncio.Event()
    watching = asyncio.create_task(refresh(done))
    async with asyncio.TaskGroup() as group:
        for number in range(128):
            group.create_task(ask(replicas[number % 2]))
    done.set()
    await watching
    for replica in replicas:
        await replica.close()
    spending = await watch.spending(caller.id or "", "x")
    await watch.close()
    assert NANO_PER_USD < peak <= 2 * NANO_PER_USD
    assert spending.reserved == 0, "what was not needed is given back"
    assert spending.spent / NANO_PER_USD == pytest.approx(sum(replica.paid for replica in replicas))
    assert all(replica.refusals for replica in replicas)
    assert spending.spent > 1.9 * NANO_PER_USD, "nobody was refused while there was room"


async def test_a_budget_can_be_used_to_the_last_billionth(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica = Replica(storage, caller)
    for _ in range(10):
        await replica.call(0.1, 0.1)
    assert (replica.calls, replica.refusals) == (10, [])
    await replica.call(1e-9, 0.0)
    assert replica.refusals == [
        "The budget of the key 'web', $1, is spent: ask the operator of this server for more."
    ]
    assert replica.key_budget.refusal == replica.refusals[0]
    await replica.call(0.0, 0.0)
    assert replica.calls == 11, "what costs nothing breaks no limit"
    await replica.close()


async def test_call_above_key_budget_is_refused_at_once_with_the_amount_left(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="5/day")
    replica = Replica(storage, caller)
    await replica.call(1.0, 0.5)
    await replica.call(4.75, 0.0)
    assert replica.refusals == [
        "The call could cost $4.750000, and $4.500000 of the key's $5/day are left ($0.500000 spent, $0.000000 "
        "reserved for calls in flight): wait for the next day (UTC), or ask the operator of this server for more, or "
        "lower the worker's max_tokens."
    ]
    await replica.close()


async def test_a_call_waits_for_those_in_flight_here_that_may_make_room(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica = Replica(storage, caller)
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(replica.call(0.75, 0.0625, 0.05))
    assert (replica.calls, replica.refusals) == (4, [])
    await replica.close()


async def test_small_call_proceeds_when_a_large_call_exceeds_the_key_budget(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica = Replica(storage, caller)
    async with asyncio.TaskGroup() as group:
        group.create_task(replica.call(2.0, 0.0))
        for _ in range(5):
            group.create_task(replica.call(0.2, 0.2))
    assert replica.calls == 5
    assert len(replica.refusals) == 1
    await replica.close()


async def test_reservation_of_a_killed_replica_stays_counted(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    killed, other = Replica(storage, caller), Replica(storage, caller)
    await ledger(killed.key_budget).reserve(Reservation(1, 1, 0.6))
    await killed.key_store.close()
    await other.call(0.6, 0.0)
    assert other.refusals, "its provider may bill what was under way"
    await other.call(0.4, 0.4)
    assert other.calls == 1
    await other.close()


async def test_a_planner_is_charged_without_a_reservation(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica = Replica(storage, caller)
    question = ledger(replica.key_budget)
    question.charge(Spent(cost_usd=0.7))
    with pytest.raises(BudgetExceededError):  # Also before it is booked.
        await question.reserve(Reservation(1, 1, 0.4))
    await question.reserve(Reservation(1, 1, 0.3))
    question.settle(Reservation(1, 1, 0.3), Spent(cost_usd=0.3))
    question.charge(Spent(cost_usd=0.5))
    assert replica.key_budget.exhausted
    await replica.close()
    again = storage.open()
    assert (await again.spending(caller.id or "", "x")).spent == round(1.5 * NANO_PER_USD)
    await again.close()


async def test_who_is_cancelled_while_waiting_holds_nothing(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica, answered = Replica(storage, caller), asyncio.Event()
    first = asyncio.create_task(replica.call(0.75, 0.0, until=answered))
    await replica.begun.wait()
    waiting = asyncio.create_task(replica.call(0.75, 0.0))
    await asyncio.sleep(0.03)
    assert not waiting.done()
    waiting.cancel()
    answered.set()
    await first
    await replica.call(1.0, 1.0)
    assert replica.calls == 2
    await replica.close()


async def test_denial_received_after_budget_was_freed_refuses_no_call(
    storage: KeyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, caller = await storage.added(budget="1")
    replica, answered, settled = Replica(storage, caller), asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(replica.call(0.75, 0.0, until=answered))
    await replica.begun.wait()
    denied, reserve = asyncio.Event(), replica.key_store.reserve

    async def slow(*args: Any) -> Any:
        spending = await reserve(*args)
        denied.set()
        await settled.wait()
        return spending

    monkeypatch.setattr(replica.key_store, "reserve", slow)
    waiting = asyncio.create_task(replica.call(0.75, 0.0))
    await denied.wait()
    waiting.cancel()
    answered.set()
    await first
    last = asyncio.create_task(replica.call(1.0, 1.0))
    await asyncio.sleep(0)
    settled.set()
    await last
    assert (replica.calls, replica.refusals) == (2, [])
    await replica.close()


async def test_refusal_does_not_report_budget_being_released_as_reserved(
    storage: KeyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, caller = await storage.added(budget="5")
    replica, settling, answered = Replica(storage, caller), asyncio.Event(), asyncio.Event()
    settle = replica.key_store.settle

    async def slow(*args: Any) -> Any:
        settling.set()
        await answered.wait()
        return await settle(*args)

    monkeypatch.setattr(replica.key_store, "settle", slow)
    await replica.call(1.0, 0.5)
    await settling.wait()
    await replica.call(4.75, 0.0)
    answered.set()
    await replica.close()
    (refusal,) = replica.refusals
    assert "$4.500000 of the key's $5 are left ($0.500000 spent, $0.000000 reserved" in refusal


async def test_concurrent_calls_share_register_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    _, caller = await storage.added(budget="100")
    replica = Replica(storage, caller)
    assert replica.key_store is not None
    trips, database = [], replica.key_store._database
    rows = database.run

    async def counted(statement: Executable) -> Sequence[Sequence[Any]]:
        trips.append(statement)
        return await rows(statement)

    monkeypatch.setattr(database, "run", counted)
    async with asyncio.TaskGroup() as group:
        for _ in range(200):
            group.create_task(replica.call(0.01, 0.005, 0.01))
    await replica.close()
    assert replica.calls == 200
    assert len(trips) < 100
    again = KeyStore(tmp_path / "keys.sqlite")
    assert (await again.spending(caller.id or "", "x")).spent == NANO_PER_USD
    await again.close()


async def test_register_failure_fails_the_call_but_keeps_pending_bookings(tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    _, caller = await storage.added(budget="1")
    replica = Replica(storage, caller)
    await replica.call(0.5, 0.25)
    with closing(sqlite3.connect(tmp_path / "keys.sqlite")) as file:
        file.execute("ALTER TABLE podium_key_spending RENAME TO away")
        with pytest.raises(StoreError, match="cannot be read"):
            await replica.call(0.75, 0.0)
        file.execute("ALTER TABLE away RENAME TO podium_key_spending")
    await replica.call(0.75, 0.125)
    await replica.close()
    again = storage.open()
    spending = await again.spending(caller.id or "", "x")
    assert (spending.spent, spending.reserved) == (round(0.375 * NANO_PER_USD), 0)
    await again.close()


async def test_a_days_budget_begins_anew_and_a_question_is_paid_by_its_day(
    storage: KeyStorage,
) -> None:
    _, caller = await storage.added(budget="1/day")
    now = [NOW]
    keys = Keys(storage.open(), now=lambda: now[0])
    before = keys.spend_limit(caller)
    assert before is not None
    hold = Reservation(1, 1, 0.9)
    await ledger(before).reserve(hold)
    now[0] = datetime(2026, 3, 2, tzinfo=UTC)
    after = keys.spend_limit(caller)
    assert after is not None
    assert after is not before
    await ledger(after).reserve(hold)
    ledger(before).settle(hold, Spent(cost_usd=0.5))
    ledger(after).settle(hold, Spent(cost_usd=0.75))
    await keys.close()
    key_store = storage.open()
    spent = [(await key_store.spending(caller.id or "", day)).spent for day in ("2026-03-01", "2026-03-02")]
    assert spent == [NANO_PER_USD // 2, 3 * NANO_PER_USD // 4]
    await key_store.close()


async def test_a_budget_spent_by_another_replica_is_refused_before_anything_runs(
    storage: KeyStorage,
) -> None:
    _, caller = await storage.added(budget="1/month")
    ours, theirs = Keys(storage.open()), Keys(storage.open())
    key_budget = theirs.spend_limit(caller)
    assert key_budget is not None
    ledger(key_budget).charge(Spent(cost_usd=1.25))
    await theirs.close()
    await ours.admit(caller)
    with pytest.raises(APIError) as told:
        ours.spend_limit(caller)
    assert (told.value.status, told.value.type, told.value.code) == (
        402,
        "budget_exceeded",
        "insufficient_quota",
    )
    assert told.value.message == (
        "The budget of the key 'web', $1/month, is spent: wait for the next month (UTC), or ask the operator of this "
        "server for more."
    )
    await ours.close()


async def test_a_key_without_a_budget_has_no_spend_limit(storage: KeyStorage) -> None:
    _, caller = await storage.added()
    keys = Keys(storage.open())
    assert keys.spend_limit(caller) is None
    assert keys.spend_limit(Caller(admin=True)) is None
    await keys.close()


async def test_call_with_a_removed_key_is_refused_at_once(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    replica, answered = Replica(storage, caller), asyncio.Event()
    running = asyncio.create_task(replica.call(0.25, 0.125, until=answered))
    await replica.begun.wait()
    assert await replica.key_store.remove("web")
    async with asyncio.timeout(10):
        await replica.call(0.5, 0.0)
    assert replica.refusals == ["The key 'web' was removed: ask the operator of this server for another."]
    answered.set()
    await running
    await replica.call(0.25, 0.0)
    assert replica.calls == 1, "also a call that would fit what was reserved before"
    await replica.close()
