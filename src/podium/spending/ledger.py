"""The budget of one question. A call reserves the most that it may take, and is settled when it has ended.

A ledger belongs to one event loop: it never awaits between a check and the reservation. A reservation is an upper bound
(`podium.calls.input_bound`). If a provider bills more, the total exceeds a limit by the difference, and every later
call is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Self

from podium.errors import BudgetExceededError
from podium.spending.spend_limit import InMemorySpendLimit, SpendLimit, SpendLimitError
from podium.types import Budget, Limits, Price, Spent, fast_replace


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that one call may take, reserved while it is in flight."""

    calls: int
    """1, or 0 for a retry, a hedge or a fallback, which continues a call that was counted."""
    tokens: int
    usd: float

    @classmethod
    def most(
        cls,
        limits: Limits,
        price: Price,
        *,
        input_tokens: int,
        output_tokens: int | None = None,
        calls: int = 1,
    ) -> Reservation:
        """The most that one call of a worker with these limits may take, at the worker's price.

        Args:
            input_tokens: the most input tokens (`InputTokenBound`).
            output_tokens: the most output tokens. None allows as many as the worker's limits allow.
            calls: 0 for a retry, a hedge or a fallback, whose call was counted with the first try.
        """
        output_tokens = limits.answer_tokens(output_tokens)
        usd = (input_tokens * price.max_input + output_tokens * price.output) / 1e6
        return cls(calls, input_tokens + output_tokens, usd if limits.max_usd is None else limits.max_usd)


@dataclass(slots=True)
class LedgerTotals:
    """What a ledger and its parts have taken of the budget together, besides dollars."""

    calls: int = 0
    """Calls, made or in flight."""
    tokens: int = 0
    """Tokens that settled calls took."""
    reserved_tokens: int = 0
    in_flight: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Wakes waiting calls when a call is settled. It is cleared at once."""


class Ledger:
    """The account of one question: what it has spent, what it has reserved for calls in flight, and what is left. It
    also charges spend limits that questions share.

    A step's request to its worker counts as one call. Retries and fallbacks take tokens, dollars and time, but are no
    further calls. A planner's calls are not counted. A ledger may have parts, each of which says what one part of the
    question took.

    Args:
        deadline: when `budget.seconds` are over, on the event loop's clock. None sets no limit.
        spend_limits: limits in dollars that other questions share.
    """

    def __init__(
        self, budget: Budget, deadline: float | None = None, spend_limits: Sequence[SpendLimit] = ()
    ) -> None:
        self.budget = budget
        self.deadline = deadline
        self._own_limits: list[SpendLimit] = []
        if budget.usd is not None:
            name, way_out = f"the budget's ${budget.usd:g}", "raise the budget's usd"
            self._own_limits.append(InMemorySpendLimit(budget.usd, name=name, way_out=way_out))
        self.spend_limits = (*self._own_limits, *spend_limits)
        """All limits that a call is charged to. The question's own limit comes first."""
        self.totals = LedgerTotals()
        self._counted: tuple[list[Spent], ...] = ([],)
        """What was counted here, and in each ledger that this one is a part of."""

    def part(self) -> Self:
        """A ledger of the same budget for a part of the question, such as its plan. What is counted there is counted
        here too."""
        return fast_replace(self, _counted=([], *self._counted))

    async def reserve(self, reservation: Reservation, *, final: bool = True) -> None:
        """Reserve what a call may take. If there is no room, wait while calls in flight may still make room.

        Args:
            final: whether a spend limit records that it refused. Pass False if a smaller reservation is tried next.

        Raises:
            BudgetExceededError: the call could break a limit.
        """
        clock = asyncio.get_running_loop().time
        while True:
            try:
                return self.try_reserve(reservation, clock())
            except SpendLimitError as refusal:
                spend_limit = refusal.spend_limit
                if not await spend_limit.wait_for_room(reservation.usd):
                    if final:
                        spend_limit.refusal = str(refusal)
                    raise
            except BudgetExceededError:
                if not await self._wait_for_room(reservation, clock()):
                    raise

    def try_reserve(self, reservation: Reservation, now: float) -> None:
        """Reserve without waiting, for a call that the question does not need. `now` is the event loop's clock.

        Raises:
            BudgetExceededError: the call could break a limit.
        """
        self._check_counts(reservation, now)
        self._reserve_usd(reservation.usd)
        totals = self.totals
        totals.calls += reservation.calls
        totals.reserved_tokens += reservation.tokens
        totals.in_flight += 1

    def affords(self, reservation: Reservation, now: float) -> bool:
        """Whether there is room for such a call now. Nothing stays reserved."""
        try:
            self.try_reserve(reservation, now)
        except BudgetExceededError:
            return False
        self.settle(reservation, Spent())
        return True

    def _check_counts(self, reservation: Reservation, now: float) -> None:
        """Raise a BudgetExceededError if the budget's calls, tokens or seconds do not allow the call."""
        budget, totals = self.budget, self.totals
        if self.deadline is not None and now >= self.deadline:
            raise BudgetExceededError(self.time_is_up)
        if budget.calls is not None and totals.calls + reservation.calls > budget.calls:
            raise BudgetExceededError(f"The budget of {budget.calls} calls is used up.")
        tokens = totals.tokens + totals.reserved_tokens
        if budget.tokens is not None and tokens + reservation.tokens > budget.tokens:
            left = max(0, budget.tokens - tokens)
            raise BudgetExceededError(
                f"The call could take {reservation.tokens} tokens, and {left} of the budget's {budget.tokens} are "
                "left: raise the budget's tokens or lower the worker's max_tokens."
            )

    async def _wait_for_room(self, reservation: Reservation, now: float) -> bool:
        """Wait until a call is settled, if the budget's calls, tokens and seconds may then allow the call. Return False
        at once if they cannot."""
        budget, totals = self.budget, self.totals
        may_fit = (
            totals.in_flight > 0
            and (self.deadline is None or now < self.deadline)
            and (budget.calls is None or totals.calls + reservation.calls <= budget.calls)
            and (budget.tokens is None or totals.tokens + reservation.tokens <= budget.tokens)
        )
        if may_fit:
            await totals.settled.wait()
        return may_fit

    def _reserve_usd(self, usd: float) -> None:
        """Reserve the dollars in all spend limits, or in none."""
        reserved = 0
        try:
            for spend_limit in self.spend_limits:
                spend_limit.reserve(usd)
                reserved += 1
        finally:
            if reserved < len(self.spend_limits):
                for spend_limit in self.spend_limits[:reserved]:
                    spend_limit.settle(usd, 0.0)

    def settle(self, reservation: Reservation, spent: Spent, *, usd: bool = True) -> None:
        """Release the reservation and count what the call really took.

        Args:
            usd: whether its dollars are charged. Pass False if the worker that was called has charged them.
        """
        totals = self.totals
        totals.in_flight -= 1
        totals.reserved_tokens -= reservation.tokens
        totals.settled.set()
        totals.settled.clear()  # Waiting calls are woken all the same.
        self._count(spent)
        self._settle_usd(reservation.usd, spent.cost_usd if usd else 0.0)

    def charge(self, spent: Spent) -> None:
        """Count tokens and dollars that were not reserved, such as a planner's, and charge the spend limits."""
        self._count(spent)
        self._settle_usd(0.0, spent.cost_usd)

    def count_only(self, spent: Spent) -> None:
        """Count only in the question's budget. Shared limits were charged before, when a plan was written earlier."""
        self._count(spent)
        for spend_limit in self._own_limits:
            spend_limit.settle(0.0, spent.cost_usd)

    def record(self, spent: Spent) -> None:
        """Add to `spent` what takes nothing of the budget: a reply from the response cache."""
        for counted in self._counted:
            counted.append(spent)

    def _count(self, spent: Spent) -> None:
        self.totals.tokens += spent.usage.tokens
        self.record(spent)

    def _settle_usd(self, reserved_usd: float, paid_usd: float) -> None:
        for spend_limit in self.spend_limits:
            spend_limit.settle(reserved_usd, paid_usd)

    @property
    def spent(self) -> Spent:
        """What was counted or recorded here and in the parts of this ledger."""
        return reduce(add, self._counted[0], Spent())

    @property
    def exhausted(self) -> bool:
        """Whether no further call can be made, however little it takes."""
        budget, totals = self.budget, self.totals
        return (
            (budget.calls is not None and totals.calls >= budget.calls)
            or (budget.tokens is not None and totals.tokens >= budget.tokens)
            or any(spend_limit.exhausted for spend_limit in self.spend_limits)
        )

    @property
    def time_is_up(self) -> str:
        """The sentence for a question whose seconds are over."""
        return f"The time limit of {self.budget.seconds:g} s was reached."
