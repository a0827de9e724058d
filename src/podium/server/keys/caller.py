"""The caller of a request: what the caller's key may do, and the dollars that it may spend in each period (UTC)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from podium.errors import UsageError
from podium.spending.spend_limit import NANO_PER_USD
from podium.types import MAX_USD


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, and the rights of its key."""

    name: str | None = None
    """The key's name. None if no key is needed."""
    admin: bool = False
    """Whether the caller sees the traces of all keys."""
    allow: tuple[str, ...] | None = None
    """Workers that the caller may use. None allows all."""
    deny: tuple[str, ...] = ()
    """Workers that the caller may not use."""
    id: str | None = None
    """The public beginning of the key, which no other key has. None if no key is needed."""
    rpm: int | None = None
    """The most requests in any 60 seconds. None sets no limit."""
    allowance: KeyAllowance | None = None
    """The dollars that the key may spend. None sets no limit."""

    def allowed(self, names: Sequence[str]) -> tuple[str, ...]:
        """The workers among `names` that this key may use, in order."""
        return tuple(
            name for name in names if name not in self.deny and (self.allow is None or name in self.allow)
        )

    @property
    def visible_owner(self) -> str | None:
        """The owner whose traces the caller may see. None for all owners."""
        return None if self.admin else self.name or ""


ANONYMOUS = Caller(admin=True)
"""The caller if no key is needed."""
BudgetDuration = Literal["day", "month", "ever"]
_DURATIONS: dict[str | None, BudgetDuration] = {"day": "day", "month": "month", None: "ever"}
_PERIOD_NAMES: dict[BudgetDuration, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "ever": ""}


@dataclass(frozen=True, slots=True)
class KeyAllowance:
    """The dollars that a key may spend in a period."""

    nano: int
    """Billionths of a dollar."""
    duration: BudgetDuration
    """The period after which the allowance is renewed. "ever" means never."""

    @classmethod
    def read(cls, text: str) -> KeyAllowance:
        """Parse "5/day", "20/month", or "100", which is never renewed.

        Raises:
            UsageError: the text has another form.
        """
        match = re.fullmatch(r"([0-9]{1,10}(?:\.[0-9]{1,9})?)(?:/(day|month))?", text.strip())
        if match is not None:
            nano = round(float(match[1]) * NANO_PER_USD)
            if nano <= MAX_USD * NANO_PER_USD:
                return cls(nano, _DURATIONS[match[2]])
        raise UsageError(
            f"--budget-usd {text}: give dollars, up to {MAX_USD:,.0f}, as 5/day, 20/month, or 100 (once and for all)."
        )

    def __str__(self) -> str:
        amount = f"{self.usd:.9f}".rstrip("0").rstrip(".")
        return amount if self.duration == "ever" else f"{amount}/{self.duration}"

    @property
    def usd(self) -> float:
        """The limit in dollars."""
        return self.nano / NANO_PER_USD

    def period(self, now: datetime) -> str:
        """The name of the period at `now` (UTC), such as "2026-03-01" or "2026-03". It is "" if the allowance is never
        renewed."""
        return now.strftime(_PERIOD_NAMES[self.duration])

    @property
    def remedy(self) -> str:
        """What the key's holder can do when the allowance is spent, for error messages."""
        ask_for_more = "ask the operator of this server for more"
        if self.duration == "ever":
            return ask_for_more
        return f"wait for the next {self.duration} (UTC), or {ask_for_more}"
