"""Records the tries of one call. A try has its spending here only if its answer does not count. Otherwise the answer
has the spending."""

from __future__ import annotations

from collections.abc import Callable

from podium.trace import Attempt
from podium.types import Spent


class AttemptLog(list[Attempt]):
    """The tries of a call and of its fallbacks, in the order in which they ended. Cancelled tries are included."""

    def mark_cut(self, worker: str, spent: Spent) -> None:
        """Count the answer of a worker as a failure, since the worker's own max_tokens cut the answer off. `spent` is
        what the try took, or nothing if the answer counts all the same."""
        self._mark_last(
            lambda attempt: attempt.worker == worker and attempt.error_kind in (None, "length"),
            kind="length",
            error="The answer was cut off at max_tokens.",
            spent=spent,
        )

    def mark_lost(self, spent: Spent, *, hedge: bool, cancelled: bool) -> None:
        """Count the answer of a try, which is a hedge or not, as cancelled, although it was paid for: the call was
        cancelled, or the other try was answered at the same moment."""
        self._mark_last(
            lambda attempt: attempt.hedge == hedge and attempt.error_kind is None,
            kind="cancelled",
            error="Cancelled as it was answered." if cancelled else "The other try was answered first.",
            spent=spent,
        )

    def _mark_last(self, is_meant: Callable[[Attempt], bool], *, kind: str, error: str, spent: Spent) -> None:
        for index, attempt in reversed(list(enumerate(self))):
            if is_meant(attempt):
                update = {"error_kind": kind, "error": error, "spent": spent}
                self[index] = attempt.model_copy(update=update)
                return
