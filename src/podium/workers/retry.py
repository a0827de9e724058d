"""When a call that failed is made again: one rule for workers, served policies, encoders and judges."""

from __future__ import annotations

from collections.abc import AsyncIterable
from functools import partial

import stamina

from podium.errors import WorkerError

_FIRST_S, _JITTER_S = 0.1, 1.0
"""Wait before the second attempt where the caller sets none; stamina's own defaults."""


def attempts(
    retries: int, *, longest_s: float, first_s: float | None = None
) -> AsyncIterable[stamina.Attempt]:
    """The attempts of a call, with growing waits between them, by `retry`.

    Args:
        longest_s: the longest wait, our own or one that the endpoint asks for.
        first_s: before the second attempt, and as much again by chance; None: a tenth of a second, and up to one more.
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
    """Whether to try again after `error`; a number: after as many seconds as the endpoint asked for.

    Args:
        longest_s: a call whose endpoint asks for a longer wait is not made again.
    """
    if not isinstance(error, WorkerError) or not error.retryable:
        return False
    if error.retry_after_s is None:
        return True
    return error.retry_after_s if error.retry_after_s <= longest_s else False
