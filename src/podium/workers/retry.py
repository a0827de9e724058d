"""When a call that failed is made again: one rule for workers, for a served policy and for judges."""

from __future__ import annotations

from podium.errors import WorkerError


def retry(longest_s: float, error: Exception) -> bool | float:
    """Whether to try again after `error`; a number: after as many seconds as the endpoint asked for.

    Args:
        longest_s: who asks for a longer wait than this is not tried again.
    """
    if not isinstance(error, WorkerError) or not error.passing:
        return False
    if error.retry_after_s is None:
        return True
    return error.retry_after_s if error.retry_after_s <= longest_s else False
