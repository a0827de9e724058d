"""What one key may still spend in one period, as one replica knows it: a `SpendLimit` for its questions' ledgers.

A ledger reserves without waiting, and a register over a network is waited for. So a replica takes what calls need
out of the register first and reserves from that; `settled` is where a call waits for it. What was paid is booked, and
what is left given back, a moment after a call ends. Nothing that replicas hold together passes the limit, and what a
killed one held stays counted as if it were spent.
"""

from __future__ import annotations

import asyncio
import logging
import math
from itertools import accumulate

from podium.errors import StoreError
from podium.server.keys.caller import NANO_PER_USD, Caller
from podium.server.keys.register import Register, Spending

_MOMENT_S = 0.05
"""From the end of a call until it is booked: calls that end or begin meanwhile share the trip to the register."""
_LONGEST_S = 0.5
"""Until it is booked where calls never cease to begin."""
_AGAIN_S = 0.2
"""What the register denied is asked for again after that: other replicas may have given something back."""
_LOG = logging.getLogger("podium.keys")


class KeyBudget:
    """One key, one period, one replica.

    Args:
        caller: has an allowance.
        period: as `KeyAllowance.period` names it.
    """

    def __init__(self, register: Register, caller: Caller, period: str) -> None:
        assert caller.id is not None
        assert caller.allowance is not None
        self.refusal: str | None = None
        """Why the latest call was refused that the budget refused for good; None: none was."""
        self.refreshed_s: float | None = None
        """When the register was last heard, on the event loop's clock; None: never."""
        self._register = register
        self._key = caller.id
        self._name = caller.name
        self._allowance = caller.allowance
        self._period = period
        self._spending = Spending()
        """Of all replicas, as the register last said."""
        self._taken = 0
        """Kept aside in the register for us. Held, paid or free."""
        self._held = 0
        """For calls in flight."""
        self._paid = 0
        """By calls that ended, and not booked yet."""
        self._short = 0
        """What the latest call lacked that found too little."""
        self._waiting: dict[asyncio.Future[None], int] = {}
        """Calls that wait, and what each lacked."""
        self._denied: tuple[int, float] | None = None
        """The least that the register denied, and until when that is believed."""
        self._booked_s = -math.inf
        self._work: asyncio.Task[None] | None = None
        """The only one that talks of this budget with the register; ends when there is nothing to say."""
        self._wake = asyncio.Event()
        """A call began to wait."""
        self._quiet = asyncio.Event()
        """No call is in flight."""
        self._quiet.set()
        self._closing = False

    def reserve(self, usd: float) -> str | None:
        """As `SpendLimit.reserve`: from what was taken out of the register; see `may_free` for the rest.

        A call that may cost nothing is refused only where the limit has been passed.
        """
        amount = round(usd * NANO_PER_USD)
        if not amount:
            return self._sentence(usd) if self.exhausted else None
        if amount > self._free:
            self._short = amount
            return self._sentence(usd)
        self._held += amount
        self._quiet.clear()
        return None

    def settle(self, held_usd: float, paid_usd: float) -> None:
        """As `SpendLimit.settle`; booked a moment later."""
        held, paid = round(held_usd * NANO_PER_USD), round(paid_usd * NANO_PER_USD)
        if not held and not paid:
            return
        self._held -= held
        self._paid += paid
        if not self._held:
            self._quiet.set()
        self._denied = None
        self._release()
        self._start()

    def may_free(self, usd: float) -> bool:
        """Whether the register may have `usd` more, or calls in flight here may give it back."""
        amount = round(usd * NANO_PER_USD)
        if not amount:
            return False
        others = max(0, self._spending.held - self._taken)
        spent = self._spending.spent + self._paid
        if not self._is_denied(amount):
            return spent + amount <= self._allowance.nano
        return self._held > 0 and spent + others + amount <= self._allowance.nano

    async def settled(self) -> None:
        """Wait until something was settled, or the register has been asked for what calls lack.

        Raises:
            StoreError: it could not be asked.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = self._short  # Of the reservation that sends us here: nothing ran in between.
        self._wake.set()
        self._start()
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    async def quiet(self) -> None:
        """Wait until no call of this replica is in flight."""
        await self._quiet.wait()

    @property
    def exhausted(self) -> bool:
        """Whether more has been spent than the limit, as this replica knows."""
        return self._spending.spent + self._paid > self._allowance.nano

    @property
    def spent_out(self) -> str | None:
        """That the budget is spent, in a sentence; None: something is left of it, as this replica knows."""
        spent, limit = self._spending.spent + self._paid, self._allowance.nano
        if spent < limit or spent == limit == 0:  # A budget of nothing is for workers that cost nothing.
            return None
        return (
            f"The budget of the key {self._name!r}, ${self._allowance}, is spent: {self._allowance.way_out}."
        )

    @property
    def idle(self) -> bool:
        """Whether there is nothing to book or to give back."""
        return self._work is None and not (self._taken or self._held or self._paid)

    async def refresh(self) -> None:
        """Hear from the register what was spent."""
        self._hear(await self._register.spending(self._key, self._period))

    async def close(self) -> None:
        """Book what was paid and give back what is not held, now. Calling twice is fine."""
        self._closing = True
        self._wake.set()
        if self._work is not None:
            await self._work
        if self._paid or self._free > 0:
            try:
                await self._book(back=self._taken - self._held)
            except StoreError as error:
                _LOG.error("What the key %s spent is not booked, and stays held: %s", self._name, error)

    @property
    def _free(self) -> int:
        """Taken out of the register, and neither held nor paid; below 0 where more was paid than held."""
        return self._taken - self._held - self._paid

    def _start(self) -> None:
        if self._work is None and not self._closing:
            self._work = asyncio.create_task(self._talk(), name=f"budget of {self._key}")

    async def _talk(self) -> None:
        """Take what calls lack, book what was paid, give back what is not needed, until there is nothing to do."""
        try:
            while not self._closing:
                self._wake.clear()
                if self._waiting and not self._is_denied(min(self._waiting.values())):
                    await self._take()
                    if self._paid and self._now() >= self._booked_s + _LONGEST_S:
                        await self._book(back=min(self._paid, self._taken - self._held))
                elif self._paid or self._free > 0:
                    if not await self._woken(_MOMENT_S):
                        await self._book(back=self._taken - self._held)
                elif self._waiting:
                    await self._woken(_AGAIN_S)
                else:
                    return
        except StoreError as error:
            # What was paid stays held in the register until it can be booked.
            _LOG.error("The budget of the key %s cannot be kept: %s", self._name, error)
            self._release(error)
        finally:
            self._work = None

    async def _take(self) -> None:
        """Take out of the register what those who wait lack: of all, or of as many as it has enough for."""
        sums = list(accumulate(sorted(self._waiting.values())))
        least = sums[0]
        while sums and sums[-1] > self._free:
            amount = sums.pop() - self._free
            spending = await self._register.take(self._key, self._period, self._allowance.nano, amount)
            if spending is not None:
                self._taken += amount
                self._hear(spending)
                break
            await self.refresh()
            left = self._allowance.nano - self._spending.spent - self._spending.held + self._free
            while sums and sums[-1] > left:
                sums.pop()
            if not sums:
                self._denied = (least, self._now() + _AGAIN_S)
        self._release()

    async def _book(self, *, back: int) -> None:
        """Book all that was paid, and give `back` what is not held."""
        paid, back = self._paid, max(0, back)
        self._taken -= back  # At once, so that nobody reserves from it.
        try:
            spending = await self._register.book(self._key, self._period, paid, back)
        except BaseException:
            # Perhaps it was booked: rather twice than not at all.
            self._taken += back
            raise
        self._paid -= paid
        self._hear(spending)
        self._booked_s = self._now()

    async def _woken(self, seconds: float) -> bool:
        """Whether a call began to wait within that time, or all is to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    def _is_denied(self, amount: int) -> bool:
        """Whether the register would deny it, as it did a moment ago."""
        return self._denied is not None and amount >= self._denied[0] and self._now() < self._denied[1]

    def _hear(self, spending: Spending) -> None:
        self._spending = spending
        self.refreshed_s = self._now()

    def _release(self, error: StoreError | None = None) -> None:
        """Let those who wait try again, or tell them why they cannot."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _sentence(self, usd: float) -> str:
        if self.spent_out is not None:
            return self.spent_out
        spent = self._spending.spent + self._paid
        held = max(0, self._spending.held - self._taken) + self._held
        left = max(0, self._allowance.nano - spent - held) / NANO_PER_USD
        return (
            f"The call could cost ${usd:.6f}, and ${left:.6f} of the key's ${self._allowance} are left "
            f"(${spent / NANO_PER_USD:.6f} spent, ${held / NANO_PER_USD:.6f} held for calls in flight): "
            f"{self._allowance.way_out}, or lower the worker's max_tokens."
        )
