"""The interface by which each API writes its reply, whole or as the events of a stream.

A client sees the text of a stream once: text that a retry writes again is held back (`StreamedText`). If a worker is
called directly, its thoughts are shown. Otherwise the team's progress is shown in their place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from podium.errors import APIError
from podium.executor import StepEnded, StepStarted, StepText
from podium.server.podium_details import (
    PlanProgress,
    Progress,
    RoundProgress,
    StepEndedProgress,
    StepStartedProgress,
    planned_steps,
)
from podium.server.served_answer import ServedAnswer
from podium.server.streaming import HEARTBEAT, StreamedText
from podium.team import Event, PlanReady, RoundEnded
from podium.trace import Span
from podium.types import Profile
from podium.workflow import Acceptance, Workflow

_SUBTASK_CHARS = 160
"""Characters of a subtask that a progress line shows."""


class ReplyWriter(ABC):
    """Writes the reply to one request.

    Args:
        pool: profiles of the workers, which plans refer to by number.
        direct: whether one worker is called directly, so that the thoughts are the worker's.
    """

    def __init__(self, pool: Sequence[Profile], *, direct: bool) -> None:
        self._pool = pool
        self._direct = direct
        self._sent = StreamedText()
        self._started = False

    @abstractmethod
    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        """The JSON of a reply in one piece."""

    def start(self) -> bytes:
        """The first events. They are empty after the first call, since a heartbeat may have written them already."""
        started, self._started = self._started, True
        return b"" if started else self._first()

    def heartbeat(self) -> bytes:
        """What a stream sends to show that it is alive."""
        return self.start() or HEARTBEAT

    def for_event(self, event: Event) -> bytes:
        """The stream events for an event of the runner, except for the end. Empty if it is not reported."""
        if isinstance(event, StepText) and not event.reasoning:
            text = self._sent.add(event.attempt, event.text)
            return self._write_text(text) if text else b""
        if isinstance(event, StepText):
            return self._write_thought(event.text) if self._direct else b""
        reported = _progress(event, self._pool)
        if reported is None:
            return b""
        line, progress = reported
        return self._write_progress(f"{line}\n", progress.model_dump(mode="json"))

    @abstractmethod
    def end(self, answer: ServedAnswer) -> bytes:
        """The last events of a stream.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """

    @abstractmethod
    def fail(self, error: APIError) -> bytes:
        """The last events of a stream without an answer."""

    def _first(self) -> bytes:
        return b""

    @abstractmethod
    def _write_text(self, text: str) -> bytes: ...

    @abstractmethod
    def _write_thought(self, text: str) -> bytes: ...

    @abstractmethod
    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes: ...


def _progress(event: Event, pool: Sequence[Profile]) -> tuple[str, Progress] | None:
    """An event as a line for people and for programs. None if streams do not report it."""
    match event:
        case PlanReady():
            return _plan_progress(event, pool)
        case StepStarted():
            subtask = " ".join(event.subtask.split())
            cut = subtask if len(subtask) <= _SUBTASK_CHARS else f"{subtask[:_SUBTASK_CHARS]}..."
            line = f"Step {event.position}: {event.worker} is called: {cut}"
            return line, StepStartedProgress.model_validate(event)
        case StepEnded(span=span):
            return _step_end_line(span), StepEndedProgress.model_validate(event)
        case RoundEnded() if not event.trace.accepted:
            return f"Round {event.round} has ended.", RoundProgress(event="round_ended", round=event.round)
    return None


def _plan_progress(ready: PlanReady, pool: Sequence[Profile]) -> tuple[str, Progress] | None:
    began = f"Round {ready.round} begins. " if ready.round else ""
    if ready.trace.error is not None:
        began = f"There is no plan to run. {ready.trace.error.message} "
    match ready.trace.workflow or ready.trace.plan.decision:
        case Workflow(steps=steps) as workflow:
            workers = ", ".join(pool[step.worker].name for step in steps)
            count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
            plan, reason = planned_steps(workflow, pool), ready.trace.plan.reason
            line = " ".join(filter(None, (f"{began}Plan of {count}: {workers}.", reason)))
            return line, PlanProgress(round=ready.round, plan=plan, reason=reason)
        case Acceptance():
            return "The answer is accepted.", RoundProgress(event="accepted", round=ready.round)
    return None


def _step_end_line(span: Span) -> str:
    if span.status != "done":
        return f"Step {span.position}: {span.error or span.status}"
    took = "from the cache" if span.cached else f"in {span.seconds:.1f} s, ${span.spent.cost_usd:.6f}"
    return f"Step {span.position}: {span.answered_by} answered {took}."
