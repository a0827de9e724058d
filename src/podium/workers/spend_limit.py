"""Dollars that many questions share, as a worker that calls others sees them."""

from __future__ import annotations

from typing import Protocol

from podium.types import MAX_USD

NANO_PER_USD = 10**9
"""Sums are kept in whole billionths of a dollar: sums of floats have rounding errors, and these are kept for months."""


def to_nano(usd: float) -> int:
    """Dollars in billionths. A price may be too large for 64 bits: it is capped above all limits, which refuse it."""
    return round(min(usd, 2 * MAX_USD) * NANO_PER_USD)


def describe_refusal(
    usd: float, limit: str, *, limit_usd: float, spent_usd: float, reserved_usd: float, way_out: str
) -> str:
    """The sentence that a call, which could cost `usd`, is refused.

    Args:
        limit: as in "the day's $5".
        way_out: how to have a larger limit.
    """
    left = max(0.0, limit_usd - spent_usd - reserved_usd)
    return (
        f"The call could cost ${usd:.6f}, and ${left:.6f} of {limit} are left "
        f"(${spent_usd:.6f} spent, ${reserved_usd:.6f} reserved for calls in flight): "
        f"{way_out}, or lower the worker's max_tokens."
    )


class SpendLimit(Protocol):
    """Dollars that many questions share; `podium.calls.spend_limits.SharedSpendLimit` is one."""

    refusal: str | None
    """Why it last refused a call for good. None if it has refused none."""

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

    def may_fit_later(self, usd: float) -> bool:
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
