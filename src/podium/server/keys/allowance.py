"""Dollars for each day, each month, or once and for all; days and months are those of UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from podium.errors import UsageError

NANO = 10**9
"""Sums are kept in whole billionths of a dollar: sums of floats leave crumbs."""
MOST_USD = 10**9
Span = Literal["day", "month", "ever"]
_SPANS: dict[str | None, Span] = {"day": "day", "month": "month", None: "ever"}
_NAMES: dict[Span, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "ever": ""}


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a key may spend."""

    nano: int
    """Billionths of a dollar."""
    span: Span
    """For how long: each anew, or for ever."""

    @classmethod
    def read(cls, text: str) -> Allowance:
        """Of "5/day", "20/month", or "100", which is for ever.

        Raises:
            UsageError: it is none of these.
        """
        found = re.fullmatch(r"([0-9]{1,10}(?:\.[0-9]{1,9})?)(?:/(day|month))?", text.strip())
        if found is not None:
            nano = round(float(found[1]) * NANO)
            if nano <= MOST_USD * NANO:
                return cls(nano, _SPANS[found[2]])
        raise UsageError(
            f"--budget-usd {text}: give dollars, up to {MOST_USD:,}, as 5/day, 20/month, or 100 (once and for all)."
        )

    def __str__(self) -> str:
        amount = f"{self.usd:.9f}".rstrip("0").rstrip(".")
        return amount if self.span == "ever" else f"{amount}/{self.span}"

    @property
    def usd(self) -> float:
        """Dollars."""
        return self.nano / NANO

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
