"""The events that `Runner.answer` sends to `on_event` for one question, among them the executor's."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import StoreError
from podium.executor import StepEvent
from podium.trace import RoundTrace, Trace


@dataclass(frozen=True, slots=True)
class PlanReady:
    """The planner has decided."""

    round: int
    """The round's number, from 0."""
    trace: RoundTrace
    """The plan, and the workflow that runs in its place if planning failed. No step has run yet."""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is over: its plan was run, accepted the earlier answer, or could not be used."""

    round: int
    trace: RoundTrace


@dataclass(frozen=True, slots=True)
class QuestionEnded:
    """The question is over. A cancelled question sends this event too, before `CancelledError` is raised."""

    trace: Trace


class TraceStoreError(StoreError):
    """Storage failed. Either that ended a question, or the question's trace is not on disk. The trace has what was
    answered and paid until then."""

    def __init__(self, failure: StoreError, trace: Trace) -> None:
        super().__init__(str(failure), retryable=failure.retryable)
        self.trace = trace


Event = PlanReady | StepEvent | RoundEnded | QuestionEnded
