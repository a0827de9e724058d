"""How far the answering of questions has come, for those who watch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podium.calls import Dispatcher
from podium.evals.answering.answer_files import OnAnswer
from podium.rollout import Rollout
from podium.trace import Trace

ShowProgress = Callable[[str, int, int], None]
"""A function that is called with (what is done, how many, of how many)."""


@dataclass(slots=True)
class AskingProgress:
    """How far one start has come."""

    wanted: int
    """How many responses there will be in the end."""
    kept: int
    """How many responses are kept, including those of earlier starts."""
    failed: int = 0
    """Calls of this start that failed for good."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why the latest failed call of each worker failed."""
    refusal: str | None = None
    """Why no more calls are made. None if all calls were made."""

    def count(self, worker: str, answer: Rollout) -> None:
        """Count a new answer of a worker."""
        if answer.trace.answer is None:
            self.failed += 1
            self.errors[worker] = failure_of(answer.trace)
        else:
            self.kept += 1


def failure_of(trace: Trace) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in trace.spans if span.error is not None)
    return next(errors, trace.error or "It gave no answer.")


def accuracy_so_far(show: ShowProgress, left: int, dispatcher: Dispatcher | None = None) -> OnAnswer:
    """A listener that shows, after each of the `left` answers, the row, its accuracy so far and all dollars so far.

    Args:
        dispatcher: a dispatcher whose spend limit of the run has the paid dollars, including judging. If there is no
            such limit, the dollars are those of the answers, as if nothing had been cached.
    """
    paid = None if dispatcher is None else dispatcher.run_limit
    graded: dict[str, list[bool]] = {}
    count, dollars = 0, 0.0
    show("Asking", 0, left)

    def on_answer(label: str, answer: Rollout) -> None:
        nonlocal count, dollars
        count += 1
        dollars += answer.trace.uncached_usd
        verdicts = graded.setdefault(label, [])
        if answer.grade.failure is None:
            verdicts.append(answer.grade.correct)
        right = f"{sum(verdicts) / len(verdicts):.1%} right, " if verdicts else ""
        show(f"{label}: {right}${dollars if paid is None else paid.spent_usd:.4f} so far", count, left)

    return on_answer
