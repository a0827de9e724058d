"""The budget of one key in one period, as one replica sees it. It is a `SpendLimit` for the ledgers of questions.

A ledger reserves without waiting, but a key store over a network must be awaited. So a replica first reserves a sum in
the key store, and then reserves parts of this sum for calls. A call that needs more waits in `wait_for_room`. A moment
after a call ends, its cost is settled in the key store and the rest given back. All replicas together never exceed the
limit. Reservations of a killed replica count as spent.
"""

from __future__ import annotations

import asyncio
import logging
import math
from itertools import accumulate

from podium.errors import StoreError
from podium.server.keys.caller import Caller
from podium.server.keys.key_store import KeySpending, KeyStore
from podium.spending.spend_limit import Balance, SpendLimitError, to_nano

_SETTLE_DELAY_S = 0.05
"""Seconds from a call's end until it is settled. Calls that end or begin meanwhile share the round trip."""
_MAX_SETTLE_DELAY_S = 0.5
"""The longest delay, if new calls keep beginning."""
_RETRY_S = 0.2
"""Seconds until a denied reservation is tried again, since other replicas may have given something back."""
_LOG = logging.getLogger("podium.keys")


class KeyBudget:
    """The budget of one key, one period and one replica: a `SpendLimit`.

    Args:
        caller: the caller, who must have an allowance.
        period: a name from `KeyAllowance.period`.
    """

    def __init__(self, key_store: KeyStore, caller: Caller, period: str) -> None:
        assert caller.id is not None
        assert caller.allowance is not None
        self.refusal: str | None = None
        self.refreshed_s: float | None = None
        """When the key store was last read, on the event loop's clock. None if it was never read."""
        self._key_store = key_store
        self._key = caller.id
        self._key_name = caller.name
        self._allowance = caller.allowance
        self._period = period
        self._spending = KeySpending()
        """What all replicas have spent and reserved, as last read from the key store."""
        self._reserved_here = 0
        """What is reserved for calls in flight here."""
        self._held = 0
        """What this replica has reserved in the key store: for calls in flight, for paid calls, and for further
        calls."""
        self._returning = 0
        """What is being given back now. The key store may still count it as reserved."""
        self._paid = 0
        """What ended calls have paid that is not settled in the key store yet."""
        self._waiting_sums: dict[asyncio.Future[None], int] = {}
        """Waiting calls, and the sum that each needs."""
        self._denied: tuple[int, float] | None = None
        """The smallest sum that the key store has denied, and until when this denial is used. None if there is none."""
        self._removed = False
        """Whether the key was removed. The key store then has nothing for it, so every paid call is refused."""
        self._settled_s = -math.inf
        self._task: asyncio.Task[None] | None = None
        """The only task that talks to the key store. None if there is nothing to do."""
        self._call_waits = asyncio.Event()
        """Set when a call begins to wait."""
        self._closing = False

    @property
    def exhausted(self) -> bool:
        return self._spent > self._allowance.nano

    def reserve(self, usd: float) -> None:
        """Reserve from this replica's sum. If that is too small, `wait_for_room` lets it grow if it can."""
        amount = to_nano(usd)
        if (self._removed or amount > self._free) if amount else self.exhausted:
            raise SpendLimitError(self._refusal_text(usd), self)
        self._reserved_here += amount

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Book what a call paid, as `SpendLimit.settle` does. The key store learns of it a moment later."""
        reserved, paid = to_nano(reserved_usd), to_nano(paid_usd)
        if not reserved and not paid:
            return
        self._reserved_here -= reserved
        self._paid += paid
        self._denied = None
        self._release()
        self._start()

    async def wait_for_room(self, usd: float) -> bool:
        """Wait until a call was settled, or the key store has answered for the waiting calls. Return False at once if
        the key store cannot have `usd`, and calls in flight here cannot give it back."""
        amount = to_nano(usd)
        if not amount or self._removed:
            return False
        if self._is_denied(amount):
            may_fit = self._balance.may_fit_later(amount)
        else:
            may_fit = self._spent + amount <= self._allowance.nano
        if may_fit:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_sums[future] = amount
            self._call_waits.set()
            self._start()
            try:
                await future
            finally:
                self._waiting_sums.pop(future, None)
        return may_fit

    @property
    def spent_message(self) -> str | None:
        """A sentence that the budget is spent. None if something is left, as far as this replica knows."""
        spent, limit = self._spent, self._allowance.nano
        if spent < limit or spent == limit == 0:  # A budget of 0 allows workers that cost nothing.
            return None
        return f"The budget of the key {self._key_name!r}, ${self._allowance}, is spent: {self._allowance.remedy}."

    @property
    def idle(self) -> bool:
        """Whether there is nothing to settle or to give back."""
        return self._task is None and not (self._held or self._reserved_here or self._paid)

    async def refresh(self) -> None:
        """Read from the key store what was spent."""
        self._update(await self._key_store.spending(self._key, self._period))

    async def close(self) -> None:
        """Settle what was paid and give the rest back, except what calls in flight need. Calling twice is fine."""
        self._closing = True
        self._call_waits.set()
        if self._task is not None:
            await self._task
        if self._paid or self._free > 0:
            try:
                await self._settle_paid(back=self._held - self._reserved_here)
            except StoreError as error:
                _LOG.error(
                    "What the key %r spent is not recorded, and stays reserved: %s", self._key_name, error
                )

    @property
    def _spent(self) -> int:
        """What all replicas have spent, as far as this replica knows."""
        return self._spending.spent + self._paid

    @property
    def _balance(self) -> Balance:
        allowance, here = self._allowance, self._reserved_here
        reserved = max(0, self._spending.reserved - self._held - self._returning) + here
        return Balance(
            allowance.nano, f"the key's ${allowance}", allowance.remedy, self._spent, reserved, here
        )

    @property
    def _free(self) -> int:
        """What this replica can still reserve for calls. It is below 0 if calls cost more than was reserved for
        them."""
        return self._held - self._reserved_here - self._paid

    def _start(self) -> None:
        if self._task is None and not self._closing:
            self._task = asyncio.create_task(self._run(), name=f"budget of {self._key}")

    async def _run(self) -> None:
        """Reserve what waiting calls need, settle what was paid, give back the rest, until there is nothing to do."""
        try:
            while not self._closing:
                self._call_waits.clear()
                if self._waiting_sums and not self._is_denied(min(self._waiting_sums.values())):
                    await self._reserve_more()
                    if self._paid and self._now() >= self._settled_s + _MAX_SETTLE_DELAY_S:
                        await self._settle_paid(back=min(self._paid, self._held - self._reserved_here))
                elif self._paid or self._free > 0:
                    if not await self._wait_for_call(_SETTLE_DELAY_S):
                        await self._settle_paid(back=self._held - self._reserved_here)
                elif self._waiting_sums:
                    await self._wait_for_call(_RETRY_S)
                else:
                    return
        except StoreError as error:
            # Paid sums stay reserved in the key store until they can be settled.
            _LOG.error("The budget of the key %r cannot be kept: %s", self._key_name, error)
            self._release(error)
        finally:
            self._task = None

    async def _reserve_more(self) -> None:
        """Reserve what the waiting calls need: for all of them, or for as many as the key store allows."""
        sums = list(accumulate(sorted(self._waiting_sums.values())))
        least = sums[0]
        while sums and sums[-1] > self._free:
            amount = sums.pop() - self._free
            spending = await self._key_store.reserve(self._key, self._period, self._allowance.nano, amount)
            if spending is not None:
                self._held += amount
                self._update(spending)
                break
            await self.refresh()
            left = self._allowance.nano - self._spending.spent - self._spending.reserved + self._free
            while sums and sums[-1] > left:
                sums.pop()
            if least > left:  # Calls may have given something back since the denial.
                self._denied = (least, self._now() + _RETRY_S)
            elif not await self._key_store.has(self._key):
                self._removed = True
                break
        self._release()

    async def _settle_paid(self, *, back: int) -> None:
        """Settle all paid sums, and give `back` a part of the reserved sum."""
        paid, back = self._paid, max(0, back)
        self._held -= back  # Subtract it at once, so that no call reserves from it.
        self._returning = back
        try:
            spending = await self._key_store.settle(self._key, self._period, paid, back)
        except BaseException:
            # The settlement may have been recorded. To count it twice is better than not at all.
            self._held += back
            raise
        finally:
            self._returning = 0
        self._paid -= paid
        self._update(spending)
        self._settled_s = self._now()

    async def _wait_for_call(self, seconds: float) -> bool:
        """Whether a call began to wait within that time, or the budget is closing."""
        try:
            async with asyncio.timeout(seconds):
                await self._call_waits.wait()
        except TimeoutError:
            return False
        return True

    def _is_denied(self, amount: int) -> bool:
        """Whether the key store has just denied this sum or a smaller one."""
        return self._denied is not None and amount >= self._denied[0] and self._now() < self._denied[1]

    def _update(self, spending: KeySpending) -> None:
        self._spending = spending
        self.refreshed_s = self._now()

    def _release(self, error: StoreError | None = None) -> None:
        """Let waiting calls try again, or fail them with `error`."""
        waiting, self._waiting_sums = self._waiting_sums, {}
        for future in waiting:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _refusal_text(self, usd: float) -> str:
        if self._removed:
            return f"The key {self._key_name!r} was removed: ask the operator of this server for another."
        return self.spent_message or self._balance.refusal(usd)
