import asyncio
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import BudgetExceededError
from podium.spending import Ledger, Reservation
from podium.types import Budget, Limits, Price, Spent, Usage


def test_reservations_of_calls_in_flight_count_against_the_budget():
    ledger = Ledger(Budget(tokens=100))
    ledger.try_reserve(Reservation(1, 60, 0.0), now=0.0)
    with pytest.raises(BudgetExceededError) as refused:
        ledger.try_reserve(Reservation(1, 60, 0.0), now=0.0)
    assert str(refused.value) == (
        "The call could take 60 tokens, and 40 of the budget's 100 are left: "
        "raise the budget's tokens or lower the worker's max_tokens."
    )
    ledger.settle(Reservation(1, 60, 0.0), Spent(Usage(input_tokens=5, output_tokens=5), 0.0))
    ledger.try_reserve(Reservation(1, 60, 0.0), now=0.0)


def test_each_limit_refuses_in_its_own_words():
    price = Price(input=1.0, output=2.0)
    reservation = Reservation.most(Limits(), price, input_tokens=1_000, output_tokens=1_000)
    assert reservation == Reservation(1, 2_000, 0.003)
    for budget, sentence in [
        (Budget(calls=0), "The budget of 0 calls is used up."),
        (Budget(tokens=1_999), "The call could take 2000 tokens, and 1999 of the budget's 1999 are left: "),
        (Budget(usd=0.002), "The call could cost $0.003000, and $0.002000 of the budget's $0.002 are left "),
    ]:
        with pytest.raises(BudgetExceededError, match=re.escape(sentence)):
            Ledger(budget).try_reserve(reservation, now=0.0)
    Ledger(Budget(seconds=2.0), deadline=12.0).try_reserve(reservation, now=11.9)
    with pytest.raises(BudgetExceededError, match=r"^The time limit of 2 s was reached\.$"):
        Ledger(Budget(seconds=2.0), deadline=12.0).try_reserve(reservation, now=12.0)


def test_a_fallback_of_a_counted_call_needs_no_further_call():
    ledger = Ledger(Budget(calls=1))
    ledger.try_reserve(Reservation(1, 10, 0.0), now=0.0)
    ledger.settle(Reservation(1, 10, 0.0), Spent(cost_usd=0.0))
    ledger.try_reserve(Reservation(0, 10, 0.0), now=0.0)
    assert ledger.exhausted


def test_a_planner_can_spend_the_budget_of_the_workers():
    ledger = Ledger(Budget(tokens=50))
    ledger.charge(Spent(Usage(input_tokens=40, output_tokens=10), 0.01))
    assert ledger.exhausted
    with pytest.raises(BudgetExceededError):
        ledger.try_reserve(Reservation(1, 1, 0.0), now=0.0)
    assert ledger.spent.cost_usd == 0.01


@given(
    budget=st.builds(
        Budget,
        calls=st.none() | st.integers(0, 8),
        tokens=st.none() | st.integers(0, 400),
        usd=st.none() | st.floats(0, 4e-4),
    ),
    calls=st.lists(
        # Tokens that may be taken, the share that is, and how many other calls start before this one ends.
        st.tuples(st.integers(1, 150), st.floats(0, 1), st.integers(0, 4)),
        max_size=20,
    ),
)
def test_no_order_of_calls_breaks_a_budget(budget, calls):
    price = Price(output=1.0)
    ledger = Ledger(budget)
    in_flight = []
    for most, share, others in calls:
        reservation = Reservation.most(Limits(), price, input_tokens=0, output_tokens=most)
        with suppress(BudgetExceededError):
            ledger.try_reserve(reservation, now=0.0)
            in_flight.append((reservation, Usage(output_tokens=int(most * share))))
        while len(in_flight) > others:
            done, usage = in_flight.pop(0)
            ledger.settle(done, Spent(usage, price.cost(usage)))
    for done, usage in in_flight:
        ledger.settle(done, Spent(usage, price.cost(usage)))
    assert budget.calls is None or ledger.totals.calls <= budget.calls
    assert budget.tokens is None or ledger.totals.tokens <= budget.tokens
    assert budget.usd is None or ledger.spent.cost_usd <= budget.usd * (1 + 1e-9)


async def test_a_call_waits_for_those_in_flight_that_may_leave_enough_budget():
    for budget in (Budget(tokens=150), Budget(usd=1.5)):
        ledger, reservation = Ledger(budget), Reservation(1, 100, 1.0)
        await ledger.reserve(reservation)
        waiting = asyncio.create_task(ledger.reserve(reservation))
        await asyncio.sleep(0)
        assert not waiting.done()
        ledger.settle(reservation, Spent(Usage(output_tokens=10), 0.1))
        await asyncio.wait_for(waiting, 5)


async def test_a_call_that_can_never_fit_the_budget_is_refused_at_once():
    for budget in (Budget(tokens=150), Budget(usd=1.5), Budget(calls=1)):
        ledger = Ledger(budget)
        await ledger.reserve(Reservation(1, 100, 1.0))
        with pytest.raises(BudgetExceededError):
            await asyncio.wait_for(ledger.reserve(Reservation(1, 151, 1.6)), 5)


def test_ledger_part_reports_its_own_spending_and_counts_in_the_total():
    ledger = Ledger(Budget(calls=3, usd=1.0))
    part = ledger.part()
    within = part.part()
    spent = Spent(Usage(input_tokens=4, output_tokens=1), 0.25)
    for account in (ledger, part, within):
        account.try_reserve(Reservation(1, 10, 0.3), now=0.0)
    with pytest.raises(BudgetExceededError, match="The budget of 3 calls is used up"):
        part.try_reserve(Reservation(1, 10, 0.3), now=0.0)
    for account in (ledger, part, within):
        account.settle(Reservation(1, 10, 0.3), spent)
    assert (ledger.totals.tokens, ledger.totals.calls) == (15, 3)
    assert (ledger.spent, part.spent, within.spent) == (spent + spent + spent, spent + spent, spent)


def test_cached_reply_uses_no_budget():
    ledger = Ledger(Budget(tokens=5))
    part = ledger.part()
    saved = Spent(Usage(input_tokens=90), saved_usd=0.5)
    part.record(saved)
    assert (part.spent, ledger.spent, ledger.totals.tokens, ledger.exhausted) == (saved, saved, 0, False)
