"""How far it is to ask each worker alone each question, for recordings and studies: what is kept, failed, and spent."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.trace import Trace


@dataclass(slots=True)
class AskingProgress:
    """The progress of one start. What it leaves out, the next start of the same command asks."""

    wanted: int
    """Responses that there are in the end."""
    kept: int
    """Responses that are kept, those of earlier starts included."""
    usd: float = 0.0
    """Dollars of this start, judging included."""
    worker: str | None = field(default=None, compare=False)
    """Who answered last, or failed to."""
    failed: int = 0
    """Calls of this start that failed for good."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why the latest failed call of each worker failed."""
    refusal: str | None = None
    """Why no more calls are made; None: all calls were made."""
    left_out: tuple[str, ...] = ()
    """A sentence about each sort of question that is left out."""

    @property
    def ended(self) -> int:
        """Responses that are kept, and calls that failed."""
        return self.kept + self.failed

    def fail(self, worker: str, trace: Trace) -> None:
        """Count a call that failed for good."""
        self.failed += 1
        self.errors[worker] = failure_of(trace)

    def __str__(self) -> str:
        """Who answered last, and the dollars so far."""
        spent = f", ${self.usd:.4f} so far" if self.usd else ""
        return "Asking the workers" if self.worker is None else f"Asking {self.worker}{spent}"


def failure_of(trace: Trace) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in trace.spans if span.error is not None)
    return next(errors, trace.error or "It gave no answer.")
