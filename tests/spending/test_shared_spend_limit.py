"""Spend limits: dollars shared by questions and processes are never spent twice, whatever ends in between."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaded_programs import loaded_python
from podium.errors import BudgetExceededError, StoreError, UsageError
from podium.spending import Ledger, Reservation
from podium.spending.shared_spend_limit import STATE, SharedSpendLimit, default_state_path, open_day_limit
from podium.types import Budget, Spent, Usage

SPENDER = """
import random, sys
from contextlib import suppress
from pathlib import Path
from podium.errors import BudgetExceededError
from podium.spending.shared_spend_limit import SharedSpendLimit
spend_limit = SharedSpendLimit(Path(sys.argv[1]), "run", 1.0)
random.seed(sys.argv[2])
paid = 0.0
for _ in range(400):
    with suppress(BudgetExceededError):
        spend_limit.reserve(0.01)
        took = random.choice([0.0, 0.002, 0.004])
        spend_limit.settle(0.01, took)
        paid += took
        assert spend_limit.spent_usd <= 1.0
print(f"{paid:.6f}")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state.sqlite"


@pytest.fixture
def spend_limit(file: Path) -> Iterator[SharedSpendLimit]:
    opened = SharedSpendLimit(file, "run", 1.0)
    yield opened
    opened.close()


def test_reservation_counts_against_spend_limit_until_settled(spend_limit: SharedSpendLimit) -> None:
    spend_limit.reserve(0.6)
    with pytest.raises(BudgetExceededError) as refused:
        spend_limit.reserve(0.6)
    assert str(refused.value) == (
        "The call could cost $0.600000, and $0.400000 of the run's $1 are left ($0.000000 spent, $0.600000 reserved "
        "for calls in flight): raise the run's budget, or lower the worker's max_tokens."
    )
    spend_limit.settle(0.6, 0.1)
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.1, 0.0)
    spend_limit.reserve(0.9)


def test_a_limit_can_be_used_to_the_last_billionth(spend_limit: SharedSpendLimit) -> None:
    for _ in range(10):
        spend_limit.reserve(0.1)
        spend_limit.settle(0.1, 0.1)
    assert spend_limit.spent_usd == 1.0
    with pytest.raises(BudgetExceededError):
        spend_limit.reserve(1e-9)
    spend_limit.reserve(0.0)  # What costs nothing breaks no limit.
    assert not spend_limit.exhausted


def test_exceeded_spend_limit_refuses_even_free_calls(spend_limit: SharedSpendLimit) -> None:
    spend_limit.settle(0.0, 1.25)
    assert spend_limit.exhausted
    with pytest.raises(
        BudgetExceededError, match=r"^\$1.250000 of the run's \$1 are spent: raise the run's budget\.$"
    ):
        spend_limit.reserve(0.0)


def test_reopened_spend_limit_keeps_earlier_spending(spend_limit: SharedSpendLimit, file: Path) -> None:
    spend_limit.reserve(0.5)
    spend_limit.settle(0.5, 0.25)
    spend_limit.close()
    again = SharedSpendLimit(file, "run", 0.5)
    assert (again.spent_usd, again.reserved_usd) == (0.25, 0.0)
    with pytest.raises(BudgetExceededError):
        again.reserve(0.3)
    again.reserve(0.25)
    again.close()


def test_free_calls_write_nothing_to_the_spend_limit_file(spend_limit: SharedSpendLimit, file: Path) -> None:
    spend_limit.settle(0.0, 0.5)
    with closing(sqlite3.connect(file)) as other:
        before = other.execute("PRAGMA data_version").fetchone()
        for _ in range(100):
            spend_limit.reserve(0.0)
            spend_limit.settle(0.0, 0.0)
        assert other.execute("PRAGMA data_version").fetchone() == before
        spend_limit.settle(0.0, 0.5)
        assert other.execute("PRAGMA data_version").fetchone() != before


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_must_be_an_amount(file: Path, limit: float) -> None:
    with pytest.raises(UsageError, match="give dollars from 0 on"):
        SharedSpendLimit(file, "day", limit)
    assert not file.exists()


def test_each_day_has_its_own_limit_and_a_call_is_paid_on_its_first_day(file: Path) -> None:
    day = ["2030-01-01"]
    spend_limit = SharedSpendLimit(file, "day", 1.0, today=lambda: day[0])
    spend_limit.reserve(0.5)
    spend_limit.reserve(0.25)
    with pytest.raises(BudgetExceededError):
        spend_limit.reserve(0.5)
    day[0] = "2030-01-02"
    spend_limit.reserve(0.5)  # A new day has a new limit.
    spend_limit.settle(0.5, 0.5)  # the first day's: of equal holds the oldest is settled first
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.0, 0.5)
    spend_limit.settle(0.25, 0.25)
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.0, 0.5)
    spend_limit.settle(0.5, 0.125)
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.125, 0.0)
    day[0] = "2030-01-01"
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.75, 0.0)
    spend_limit.close()


def test_spend_limits_of_one_file_are_apart_by_name(file: Path) -> None:
    run, day = SharedSpendLimit(file, "run", 1.0), SharedSpendLimit(file, "day", 1.0)
    run.settle(0.0, 1.0)
    assert (run.spent_usd, day.spent_usd) == (1.0, 0.0)
    run.close()
    day.close()


def test_processes_that_spend_at_once_never_pass_the_limit_together(file: Path) -> None:
    spenders = [
        subprocess.Popen(
            [loaded_python(), "-c", SPENDER, str(file), str(seed)], stdout=subprocess.PIPE, text=True
        )
        for seed in range(4)
    ]
    paid = sum(float(spender.communicate(timeout=120)[0]) for spender in spenders)
    assert [spender.returncode for spender in spenders] == [0] * 4
    spend_limit = SharedSpendLimit(file, "run", 1.0)
    assert spend_limit.spent_usd == pytest.approx(paid)
    assert spend_limit.reserved_usd == 0.0
    assert 0.98 < spend_limit.spent_usd <= 1.0
    spend_limit.close()


def test_the_file_of_another_program_is_refused_and_left_alone(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(UsageError, match="is an SQLite file, but not a state file"):
        SharedSpendLimit(file, "run", 1.0)
    assert file.read_bytes() == before
    file.write_text("no database at all, but long enough to be looked at as one" * 10)
    with pytest.raises(UsageError, match=r"The state file .* cannot be opened"):
        SharedSpendLimit(file, "run", 1.0)


def test_a_file_of_another_version_is_refused_in_a_sentence_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE spending (account TEXT, day TEXT, spent INTEGER, held INTEGER)")
        old.execute("INSERT INTO spending VALUES ('day', '2030-01-01', 5, 0)")
        old.execute(f"PRAGMA application_id = {STATE.application_id}")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    with pytest.raises(UsageError, match=r"another version of Podium .* move it away"):
        SharedSpendLimit(path, "day", 1.0)
    with closing(sqlite3.connect(path)) as old:
        assert old.execute("SELECT spent FROM spending").fetchall() == [(5,)]


def test_the_state_file_lies_beside_the_trace_store() -> None:
    beside = default_state_path({"PODIUM_STORE": "/kept/traces.sqlite"})
    assert beside == Path("/kept/state.sqlite")
    server = {"PODIUM_STORE": "postgresql://somewhere/podium", "XDG_DATA_HOME": "/data"}
    assert default_state_path(server) == Path("/data/podium/state.sqlite")


def change(file: Path, statement: str) -> None:
    """From outside, as whoever damages a file or mends it."""
    with closing(sqlite3.connect(file)) as other:
        other.execute(statement)


BREAK, MEND = "ALTER TABLE spending RENAME TO lost", "ALTER TABLE lost RENAME TO spending"


def test_spend_limit_with_a_missing_table_raises_store_error(
    spend_limit: SharedSpendLimit, file: Path
) -> None:
    change(file, "DROP TABLE spending")
    with pytest.raises(StoreError, match="cannot be updated"):
        spend_limit.reserve(0.1)


def test_day_limit_comes_from_the_option_then_from_the_environment(tmp_path: Path) -> None:
    environ = {"PODIUM_STORE": str(tmp_path / "traces.sqlite")}
    assert open_day_limit(None, environ) is None
    assert open_day_limit(None, {**environ, "PODIUM_DAY_BUDGET_USD": " "}) is None
    assert not list(tmp_path.iterdir())
    for option, variable, limit in [(None, "2.5", 2.5), (1.0, "2.5", 1.0), (0.0, "2.5", 0.0)]:
        spend_limit = open_day_limit(option, {**environ, "PODIUM_DAY_BUDGET_USD": variable})
        assert spend_limit is not None
        assert (spend_limit.limit_usd, spend_limit.path) == (limit, tmp_path / "state.sqlite")
        spend_limit.close()
    for wrong in ("much", "-1", "nan", "inf"):
        with pytest.raises(UsageError, match=f"PODIUM_DAY_BUDGET_USD={wrong}: give dollars from 0 on."):
            open_day_limit(None, {**environ, "PODIUM_DAY_BUDGET_USD": wrong})


async def test_a_ledger_reserves_in_its_budget_and_every_spend_limit_or_nowhere() -> None:
    run, day = SharedSpendLimit(None, "run", 1.0), SharedSpendLimit(None, "day", 0.5)
    ledger = Ledger(Budget(usd=2.0), spend_limits=[run, day])
    with pytest.raises(BudgetExceededError, match=r"the day's \$0.5") as refused:
        await ledger.reserve(Reservation(1, 10, 0.75))
    assert (day.refusal, run.refusal) == (str(refused.value), None)
    assert (run.reserved_usd, day.reserved_usd, ledger.totals.calls) == (0.0, 0.0, 0)
    reservation = Reservation(1, 10, 0.25)
    ledger.try_reserve(reservation, now=0.0)
    assert (run.reserved_usd, day.reserved_usd) == (0.25, 0.25)
    ledger.settle(reservation, Spent(Usage(output_tokens=5), 0.125))
    ledger.charge(Spent(Usage(output_tokens=5), 0.25))
    assert (run.spent_usd, day.spent_usd, ledger.spent.cost_usd) == (0.375, 0.375, 0.375)
    assert (run.reserved_usd, day.reserved_usd) == (0.0, 0.0)
    assert not ledger.exhausted
    ledger.charge(Spent(cost_usd=0.25))
    assert ledger.exhausted, "no further round is begun on a day that is spent"


def test_a_spend_limit_that_cannot_be_written_leaves_the_others_right(
    spend_limit: SharedSpendLimit, file: Path
) -> None:
    first, last = (SharedSpendLimit(None, "run", 1.0) for _ in range(2))
    ledger, reservation = Ledger(Budget(), spend_limits=[first, spend_limit, last]), Reservation(1, 10, 0.25)
    ledger.try_reserve(reservation, now=0.0)
    change(file, BREAK)
    with pytest.raises(StoreError):
        ledger.try_reserve(reservation, now=0.0)
    assert (first.reserved_usd, last.reserved_usd, ledger.totals.calls) == (0.25, 0.25, 1)
    ledger.settle(reservation, Spent(cost_usd=0.125))
    assert [(one.reserved_usd, one.spent_usd) for one in (first, last)] == [(0.0, 0.125)] * 2
    change(file, MEND)


async def test_callers_waiting_for_an_unwritable_spend_limit_get_store_error(
    spend_limit: SharedSpendLimit, file: Path
) -> None:
    spend_limit.reserve(0.75)
    ledger = Ledger(Budget(), spend_limits=[spend_limit])
    waiting = [
        asyncio.create_task(spend_limit.wait_until_unreserved()),
        asyncio.create_task(ledger.reserve(Reservation(1, 10, 0.75))),
    ]
    await asyncio.sleep(0)
    change(file, BREAK)
    spend_limit.settle(0.75, 0.25)
    async with asyncio.timeout(5):
        errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [StoreError, StoreError]
    change(file, MEND)
    await spend_limit.wait_until_unreserved()
    assert (spend_limit.reserved_usd, spend_limit.spent_usd) == (0.0, 0.25)


async def test_a_payment_that_cannot_be_written_is_told_and_written_later(
    spend_limit: SharedSpendLimit, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spend_limit.reserve(0.75)
    change(file, BREAK)
    spend_limit.settle(0.75, 0.25)
    assert "0.25" in caplog.text
    with pytest.raises(StoreError):
        spend_limit.reserve(0.1)
    change(file, MEND)
    spend_limit.reserve(0.1)
    assert (spend_limit.reserved_usd, spend_limit.spent_usd) == (0.1, 0.25)


def test_question_refused_by_its_budget_reserves_no_spend_limit() -> None:
    run = SharedSpendLimit(None, "run", 1.0)
    with pytest.raises(BudgetExceededError):
        Ledger(Budget(calls=0), spend_limits=[run]).try_reserve(Reservation(1, 10, 0.25), now=0.0)
    assert (run.reserved_usd, run.refusal) == (0.0, None)


async def test_call_waits_for_calls_in_flight_that_may_free_spend_limit() -> None:
    run = SharedSpendLimit(None, "run", 1.0)
    first, second = Ledger(Budget(), spend_limits=[run]), Ledger(Budget(), spend_limits=[run])
    reservation = Reservation(1, 10, 0.75)
    await first.reserve(reservation)
    waiting = asyncio.create_task(second.reserve(reservation))
    await asyncio.sleep(0)
    assert not waiting.done()
    first.settle(reservation, Spent(cost_usd=0.125))
    await waiting
    second.settle(reservation, Spent(cost_usd=0.5))
    with pytest.raises(BudgetExceededError) as refused:  # Nothing is in flight that could make room.
        await first.reserve(reservation)
    assert run.refusal == str(refused.value)


async def test_a_file_that_another_process_holds_does_not_stop_the_event_loop(
    spend_limit: SharedSpendLimit, file: Path
) -> None:
    ledger, reservation = Ledger(Budget(), spend_limits=[spend_limit]), Reservation(1, 10, 0.25)
    other = sqlite3.connect(file, isolation_level=None)
    loop = asyncio.get_running_loop()
    began = loop.time()
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(ledger.reserve(reservation))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    other.execute("ROLLBACK")
    await waiting
    assert (spend_limit.reserved_usd, spend_limit.refusal) == (0.25, None)

    other.execute("BEGIN IMMEDIATE")
    ledger.settle(reservation, Spent(cost_usd=0.125))
    assert spend_limit.reserved_usd == 0.25, "what is not booked stays counted"
    other.execute("ROLLBACK")
    await spend_limit.wait_until_unreserved()
    assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.125, 0.0)
    assert loop.time() - began < 20
    other.close()


def test_closing_spend_limit_writes_pending_settlements(file: Path) -> None:
    spend_limit = SharedSpendLimit(file, "run", 1.0)
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    async def question() -> None:
        spend_limit.reserve(0.25)
        other.execute("BEGIN IMMEDIATE")
        spend_limit.settle(0.25, 0.125)

    asyncio.run(question())
    other.execute("ROLLBACK")
    spend_limit.close()
    again = SharedSpendLimit(file, "run", 1.0)
    assert (again.spent_usd, again.reserved_usd) == (0.125, 0.0)
    again.close()
    other.close()


async def test_a_call_that_can_never_fit_does_not_wait() -> None:
    run = SharedSpendLimit(None, "run", 1.0)
    ledger = Ledger(Budget(), spend_limits=[run])
    await ledger.reserve(Reservation(1, 10, 0.25))
    with pytest.raises(BudgetExceededError):
        await ledger.reserve(Reservation(1, 10, 1.25))


async def test_who_is_cancelled_while_waiting_holds_nothing() -> None:
    run = SharedSpendLimit(None, "run", 1.0)
    ledger = Ledger(Budget(), spend_limits=[run])
    reservation = Reservation(1, 10, 0.75)
    await ledger.reserve(reservation)
    waiting = asyncio.create_task(ledger.reserve(reservation))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    ledger.settle(reservation, Spent(cost_usd=0.0))
    assert run.reserved_usd == 0.0


@given(
    limit=st.integers(0, 50),
    calls=st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1), st.integers(0, 6)), max_size=25),
)
def test_no_order_of_calls_of_several_questions_passes_the_limit(
    limit: int, calls: list[tuple[int, float, int]]
) -> None:
    spend_limit = SharedSpendLimit(None, "run", limit / 100)
    in_flight: list[tuple[Ledger, Reservation, float]] = []
    for most, share, others in calls:
        ledger, reservation = Ledger(Budget(), spend_limits=[spend_limit]), Reservation(1, most, most / 100)
        with suppress(BudgetExceededError):
            ledger.try_reserve(reservation, now=0.0)
            in_flight.append((ledger, reservation, reservation.usd * share))
        while len(in_flight) > others:
            done, kept, paid = in_flight.pop(0)
            done.settle(kept, Spent(cost_usd=paid))
        assert spend_limit.spent_usd + spend_limit.reserved_usd <= limit / 100 + 1e-9
    for done, kept, paid in in_flight:
        done.settle(kept, Spent(cost_usd=paid))
    assert spend_limit.reserved_usd == 0.0
    assert spend_limit.spent_usd <= limit / 100 + 1e-9
    spend_limit.close()
