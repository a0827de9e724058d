"""How long a call waits before each retry: exponentially longer, and at least as long as its worker asks for."""

from __future__ import annotations

import random
from dataclasses import dataclass

_LONGEST_WAIT_S = 60.0
_MOST_DOUBLINGS = 30
"""Further doublings would overflow, and the longest wait is reached before."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How long retries wait, in seconds."""

    first_wait_s: float = 0.5
    """The wait before the first retry. It doubles with each retry. A random wait of up to the same length is added."""

    def wait_s(self, retry: int, requested_s: float | None) -> float | None:
        """The seconds to wait before a retry. None if the worker asks for so long a wait that there is no retry.

        Args:
            retry: how many retries of the call came before.
            requested_s: the wait that the worker asks for (`Retry-After`), if it asks for one.
        """
        if requested_s is not None and requested_s > _LONGEST_WAIT_S:
            return None
        doubled = 2.0 ** min(retry, _MOST_DOUBLINGS)
        own_s = min(_LONGEST_WAIT_S, self.first_wait_s * (doubled + random.random()))
        return max(own_s, requested_s or 0.0)
