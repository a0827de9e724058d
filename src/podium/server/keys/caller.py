"""Who asks.

@@Dollars for each day, each month, or once and for all; days and months are those of UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from podium.errors import UsageError


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may."""

    name: str | None = None
    """Of the key; None: nobody needs one here."""
    admin: bool = False
    """Sees the traces of all."""
    allow: tuple[str, ...] | None = None
    """Workers that the key may use; None: all."""
    deny: tuple[str, ...] = ()
    """Workers that it may not use."""
    id: str | None = None
    """The key's public beginning, new for every key."""
    rpm: int | None = None
    """Requests that it may make in any 60 seconds; None: any number."""
    allowance: KeyAllowance | None = None
    """Dollars that it may spend; None: any number."""

    def allowed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of `names` that this key may use, in order."""
        return tuple(
            name for name in names if name not in self.deny and (self.allow is None or name in self.allow)
        )


ANONYMOUS = Caller(admin=True)
"""Whoever asks where no key is needed."""


NANO_PER_USD = 10**9
"""Sums are kept in whole billionths of a dollar: sums of floats leave crumbs."""
MAX_USD = 10**9
Span = Literal["day", "month", "ever"]
_SPANS: dict[str | None, Span] = {"day": "day", "month": "month", None: "ever"}
_NAMES: dict[Span, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "ever": ""}


@dataclass(frozen=True, slots=True)
class KeyAllowance:
    """What a key may spend."""

    nano: int
    """Billionths of a dollar."""
    span: Span
    """For how long: each anew, or for ever."""

    @classmethod
    def read(cls, text: str) -> KeyAllowance:
        """Of "5/day", "20/month", or "100", which is for ever.

        Raises:
            UsageError: it is none of these.
        """
        found = re.fullmatch(r"([0-9]{1,10}(?:\.[0-9]{1,9})?)(?:/(day|month))?", text.strip())
        if found is not None:
            nano = round(float(found[1]) * NANO_PER_USD)
            if nano <= MAX_USD * NANO_PER_USD:
                return cls(nano, _SPANS[found[2]])
        raise UsageError(
            f"--budget-usd {text}: give dollars, up to {MAX_USD:,}, as 5/day, 20/month, or 100 (once and for all)."
        )

    def __str__(self) -> str:
        amount = f"{self.usd:.9f}".rstrip("0").rstrip(".")
        return amount if self.span == "ever" else f"{amount}/{self.span}"

    @property
    def usd(self) -> float:
        """Dollars."""
        return self.nano / NANO_PER_USD

    def period(self, now: datetime) -> str:
        """The name of the day or month, as "2026-03-01" or "2026-03"; "" where there is one for ever.

        Args:
            now: in UTC.
        """
        return now.strftime(_NAMES[self.span])

    @property
    def way_out(self) -> str:
        """What its holder can do when it is used up."""
        more = "ask whoever runs this server for more"
        if self.span == "ever":
            return more
        return f"wait for the next {self.span} (UTC), or {more}"
