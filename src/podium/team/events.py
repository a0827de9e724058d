"""The events that `Runner.answer` sends to `on_event` for one question, with those of the executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.errors import StoreError
from podium.executor import StepEnded, StepStarted, StepText
from podium.trace import RoundTrace, Trace


@dataclass(frozen=True, slots=True)
class PlanReady:
    """The planner has decided."""

    round: int
    """The round's number, from 0."""
    trace: RoundTrace
    """The plan, and what runs in its place if planning failed. It has no steps yet."""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is over: its plan was run, accepted the earlier answer, or could not be used."""

    round: int
    trace: RoundTrace


@dataclass(frozen=True, slots=True)
class QuestionEnded:
    """The question is over. A cancelled one sends this event too, before `CancelledError` propagates."""

    trace: Trace


class HeldEvents:
    """Holds back the events of steps that run before their plan is ready: they make no sense before it.

    Args:
        observe: gets them once they are released; None: nobody does.
    """

    def __init__(self, observe: Callable[[StepStarted | StepText | StepEnded], None] | None) -> None:
        self._observe = observe
        self._held: list[StepStarted | StepText | StepEnded] | None = []

    def __call__(self, event: StepStarted | StepText | StepEnded) -> None:
        if self._held is not None:
            self._held.append(event)
        elif self._observe is not None:
            self._observe(event)

    def release(self) -> None:
        """Send what was held, and from now on each event at once."""
        held, self._held = self._held or (), None
        for event in held:
            self(event)


class TraceStoreError(StoreError):
    """Storage failed, which ended a question, or its trace is not on disk.

    Args:
        failure: what failed.
        trace: what was answered and paid until then.
    """

    def __init__(self, failure: StoreError, trace: Trace) -> None:
        super().__init__(str(failure), retryable=failure.retryable)
        self.trace = trace


Event = PlanReady | StepStarted | StepText | StepEnded | RoundEnded | QuestionEnded
