"""Dollars that many questions share, as a worker that calls others sees them."""

from __future__ import annotations

from typing import Protocol


class SpendLimit(Protocol):
    """Dollars that many questions share; `podium.calls.spend_limits.SharedSpendLimit` is one."""

    refusal: str | None
    """Why it last refused a call for good; None: it has refused none."""

    def reserve(self, usd: float) -> str | None:
        """Reserve `usd` and return None; or reserve nothing and say in a sentence which limit the call could break.

        Raises:
            StoreError: it cannot be written; nothing is reserved.
        """
        ...

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Release what was reserved and count what was paid.

        It never fails, since an answer that is paid for must not be lost. If it cannot be written, later reservations
        raise the error.
        """
        ...

    def may_free(self, usd: float) -> bool:
        """Whether calls in flight could, once they are settled, leave room for `usd`."""
        ...

    async def wait_until_settled(self) -> None:
        """Wait until something has been settled."""
        ...

    async def wait_until_unreserved(self) -> None:
        """Wait until no call is in flight that may cost something."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether more has been spent than the limit."""
        ...
