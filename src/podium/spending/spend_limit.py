"""A limit in dollars that many calls share: what is spent, what is reserved for calls in flight, and what is left.

`SpendLimit` is kept in memory: a question has one. `SharedSpendLimit` is kept in a file that processes share, which
answers in microseconds, so each call reserves there without waiting. The server keeps the limit of each key in a key
store that its replicas share. It may be across a network, so a replica reserves there for several calls.
"""

from __future__ import annotations

import asyncio

from podium.types import MAX_USD

NANO_PER_USD = 10**9
"""Sums are kept in whole billionths of a dollar for months. Sums of floats would have rounding errors."""


def to_nano(usd: float) -> int:
    """Dollars in billionths. Dollars that are too large for 64 bits are capped at a sum that every limit refuses."""
    return round(min(usd, 2 * MAX_USD) * NANO_PER_USD)


class SpendLimit:
    """A limit in dollars in the memory of this process. It belongs to one event loop.

    Args:
        limit_usd: the most dollars.
        name: the name in messages, such as "the budget's $5".
        way_out: how the user can get a larger limit, for messages.
    """

    def __init__(self, limit_usd: float, *, name: str, way_out: str) -> None:
        self.limit_usd = limit_usd
        self.refusal: str | None = None
        """Why the limit last refused a call for good. None if it has refused no call."""
        self._name = name
        self._way_out = way_out
        self._limit = to_nano(limit_usd)
        self._spent = 0
        """What all processes have spent, as far as this process knows."""
        self._reserved_here = 0
        """What this process has reserved and not settled."""
        self._waiting: list[asyncio.Future[None]] = []

    def reserve(self, usd: float) -> str | None:
        """Reserve `usd` and return None. If there is no room, return a sentence that says which limit the call could
        break.

        A call that costs nothing is refused only if more than the limit has been spent.

        Raises:
            StoreError: the reservation cannot be written. Nothing is reserved.
        """
        amount = to_nano(usd)
        refused = not self._take(amount) if amount else self.exhausted
        return self._refusal_text(usd) if refused else None

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Release what was reserved and count what was paid.

        This never fails, since an answer that is paid for must not be lost. If the settlement cannot be written, later
        reservations raise the error.
        """
        if reserved_usd or paid_usd:
            self._reserved_here -= to_nano(reserved_usd)
            self._spent += to_nano(paid_usd)
            self._wake()

    def may_fit_later(self, usd: float) -> bool:
        """Whether there could be room for `usd` once the calls in flight of this process are settled."""
        others = max(0, self._reserved_everywhere - self._reserved_here)
        return self._reserved_here > 0 and self._spent + others + to_nano(usd) <= self._limit

    async def wait_until_settled(self) -> None:
        """Wait until this process has settled a call."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    async def wait_until_unreserved(self) -> None:
        """Wait until this process has no call in flight that may cost something."""
        while self._reserved_here:
            await SpendLimit.wait_until_settled(self)

    @property
    def exhausted(self) -> bool:
        """Whether more has been spent than the limit, as far as this process knows."""
        return self._spent > self._limit

    @property
    def spent_usd(self) -> float:
        """Dollars spent so far."""
        return self._spent / NANO_PER_USD

    @property
    def reserved_usd(self) -> float:
        """Dollars reserved for calls in flight."""
        return self._reserved_everywhere / NANO_PER_USD

    @property
    def _reserved_everywhere(self) -> int:
        """What all processes have reserved, as far as this process knows."""
        return self._reserved_here

    def _take(self, amount: int) -> bool:
        """Reserve `amount` billionths. Returns False if there is no room for them."""
        if self._spent + self._reserved_here + amount > self._limit:
            return False
        self._reserved_here += amount
        return True

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def _refusal_text(self, usd: float) -> str:
        if self.exhausted:
            return f"${self._spent / NANO_PER_USD:.6f} of {self._name} are spent: {self._way_out}."
        spent, reserved = self._spent, self._reserved_everywhere
        left, spent_usd, reserved_usd = (
            nano / NANO_PER_USD for nano in (max(0, self._limit - spent - reserved), spent, reserved)
        )
        return (
            f"The call could cost ${usd:.6f}, and ${left:.6f} of {self._name} are left "
            f"(${spent_usd:.6f} spent, ${reserved_usd:.6f} reserved for calls in flight): "
            f"{self._way_out}, or lower the worker's max_tokens."
        )
