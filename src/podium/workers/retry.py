"""When a failed call is retried: one rule for workers, served policies and judges."""

from __future__ import annotations

from collections.abc import AsyncIterable
from functools import partial

import stamina

from podium.errors import WorkerError

_FIRST_S, _JITTER_S = 0.1, 1.0
"""Default wait before the second attempt, and random addition to it: stamina's own defaults."""


def retry_attempts(
    retries: int, *, longest_s: float, first_s: float | None = None
) -> AsyncIterable[stamina.Attempt]:
    """The attempts of a call, with growing waits between them; `retry` decides after each failure.

    Args:
        longest_s: the longest wait, also for one that the endpoint requests.
        first_s: the wait before the second attempt, plus up to as much at random. By default 0.1 s, plus up to 1 s.
    """
    return stamina.retry_context(
        on=partial(retry, longest_s),
        attempts=retries + 1,
        timeout=None,
        wait_initial=_FIRST_S if first_s is None else first_s,
        wait_max=longest_s,
        wait_jitter=_JITTER_S if first_s is None else first_s,
    )


def retry(longest_s: float, error: Exception) -> bool | float:
    """Whether to retry after `error`. A number is the wait in seconds that the endpoint requested.

    Args:
        longest_s: no retry if the endpoint requests a longer wait.
    """
    if not isinstance(error, WorkerError) or not error.retryable:
        return False
    if error.retry_after_s is None:
        return True
    return error.retry_after_s if error.retry_after_s <= longest_s else False
