"""Requests and tokens a minute, enforced for one model as a provider does: by a window that slides.

What was refused does not count. Tokens are those of the input, estimated, until the reply tells them.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Admission:
    """A request that was let through."""

    at: float
    tokens: int
    """As far as they are known."""
    over: bool = False
    """Whether its minute is past."""


class Quota:
    """What one model lets through in `minute` seconds. None: no limit."""

    def __init__(self, rpm: int | None, tpm: int | None, minute: float) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._minute = minute
        self._window: deque[Admission] = deque()
        self._tokens = 0

    def admit(self, tokens: int) -> Admission | float:
        """Let a request of so many tokens through, or say in how many seconds it would be."""
        now = time.monotonic()
        while self._window and now - self._window[0].at >= self._minute:
            past = self._window.popleft()
            past.over = True
            self._tokens -= past.tokens
        requests_over = 0 if self._rpm is None else len(self._window) + 1 - self._rpm
        tokens_over = 0 if self._tpm is None else self._tokens + tokens - self._tpm
        if requests_over <= 0 and tokens_over <= 0:
            admission = Admission(now, tokens)
            self._window.append(admission)
            self._tokens += tokens
            return admission
        for each in self._window:
            requests_over -= 1
            tokens_over -= each.tokens
            if requests_over <= 0 and tokens_over <= 0:
                return each.at + self._minute - now
        return self._minute

    def settle(self, admission: Admission, tokens: int) -> None:
        """The request took so many tokens in the end."""
        if not admission.over:
            self._tokens += tokens - admission.tokens
            admission.tokens = tokens
