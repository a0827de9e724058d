"""A limit in dollars that calls share: what is spent, what is reserved for calls in flight, and what is left.

A question has an `InMemorySpendLimit`. A `SharedSpendLimit` is kept in a file that processes share, which answers in
microseconds, so each call reserves there without waiting. The server keeps the limit of each key in a key store that
its replicas share. It may be across a network, so a replica reserves there for several calls.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from podium.errors import BudgetExceededError
from podium.types import MAX_USD

NANO_PER_USD = 10**9
"""Sums are kept in whole billionths of a dollar for months. Sums of floats would have rounding errors."""


def to_nano(usd: float) -> int:
    """Dollars in billionths. Dollars that are too large for 64 bits are capped at a sum that every limit refuses."""
    return round(min(usd, 2 * MAX_USD) * NANO_PER_USD)


class SpendLimitError(BudgetExceededError):
    """A spend limit refuses a call."""

    def __init__(self, message: str, spend_limit: SpendLimit) -> None:
        super().__init__(message)
        self.spend_limit = spend_limit


class SpendLimit(Protocol):
    """What a ledger reserves from. It belongs to one event loop."""

    refusal: str | None
    """Why the limit last refused a call for good. None if it has refused no call."""

    @property
    def exhausted(self) -> bool:
        """Whether no further call can be made, even one that costs nothing, as far as this process knows."""

    def reserve(self, usd: float) -> None:
        """Reserve `usd`. A call that costs nothing is refused only if more than the limit has been spent.

        Raises:
            SpendLimitError: there is no room.
            StoreError: the reservation cannot be written. Nothing is reserved.
        """

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Release what was reserved and count what was paid.

        This never fails, since an answer that is paid for must not be lost. If the settlement cannot be written, later
        reservations raise the error.
        """

    async def wait_for_room(self, usd: float) -> bool:
        """Wait until there may be room for `usd`, which was just refused, and return True. Return False at once if the
        calls in flight cannot make room.

        Raises:
            StoreError: the limit cannot be read or written.
        """


@dataclass(slots=True)
class Balance:
    """The sums of a limit in billionths of a dollar, as far as this process knows them."""

    limit: int
    name: str
    """The limit in messages, such as "the budget's $5"."""
    way_out: str
    """How the user can get a larger limit, for messages."""
    spent: int = 0
    """What all processes have spent."""
    reserved: int = 0
    """What all processes have reserved for calls in flight."""
    reserved_here: int = 0
    """What this process has reserved and not settled."""

    @property
    def exhausted(self) -> bool:
        """Whether more has been spent than the limit."""
        return self.spent > self.limit

    def may_fit_later(self, amount: int) -> bool:
        """Whether there could be room for `amount` once the calls in flight of this process are settled."""
        others = max(0, self.reserved - self.reserved_here)
        return self.reserved_here > 0 and self.spent + others + amount <= self.limit

    def refusal(self, usd: float) -> str:
        """The message of the error that refuses a call which could cost `usd`."""
        spent_usd, reserved_usd = self.spent / NANO_PER_USD, self.reserved / NANO_PER_USD
        if self.exhausted:
            return f"${spent_usd:.6f} of {self.name} are spent: {self.way_out}."
        left_usd = max(0, self.limit - self.spent - self.reserved) / NANO_PER_USD
        return (
            f"The call could cost ${usd:.6f}, and ${left_usd:.6f} of {self.name} are left "
            f"(${spent_usd:.6f} spent, ${reserved_usd:.6f} reserved for calls in flight): "
            f"{self.way_out}, or lower the worker's max_tokens."
        )


class InMemorySpendLimit:
    """A `SpendLimit` in the memory of this process.

    Args:
        limit_usd: the most dollars.
        name: the name in messages, such as "the budget's $5".
        way_out: how the user can get a larger limit, for messages.
    """

    def __init__(self, limit_usd: float, *, name: str, way_out: str) -> None:
        self.refusal: str | None = None
        self._balance = Balance(to_nano(limit_usd), name, way_out)
        self._settled = asyncio.Event()
        """Wakes waiting calls when a call is settled. It is cleared at once."""

    @property
    def exhausted(self) -> bool:
        return self._balance.exhausted

    def reserve(self, usd: float) -> None:
        balance, amount = self._balance, to_nano(usd)
        if balance.exhausted or (amount and balance.spent + balance.reserved + amount > balance.limit):
            raise SpendLimitError(balance.refusal(usd), self)
        balance.reserved += amount
        balance.reserved_here += amount

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        balance, reserved = self._balance, to_nano(reserved_usd)
        balance.reserved -= reserved
        balance.reserved_here -= reserved
        balance.spent += to_nano(paid_usd)
        self._settled.set()
        self._settled.clear()

    async def wait_for_room(self, usd: float) -> bool:
        may_fit = self._balance.may_fit_later(to_nano(usd))
        if may_fit:
            await self._settled.wait()
        return may_fit
