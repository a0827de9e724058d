"""The events that `Runner.answer` sends to `on_event` for one question, among them the executor's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

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


async def stream_events(
    answer: Callable[[Callable[[Event], None]], Coroutine[Any, Any, object]],
) -> AsyncGenerator[list[Event]]:
    """Run `answer`, and yield the events that it hands to its argument, each time all that are new. What it raises is
    raised behind them. Closing the generator cancels it, and waits until it has ended."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    answering = asyncio.create_task(answer(events.put_nowait))
    answering.add_done_callback(lambda _: events.put_nowait(None))
    try:
        ended = False
        while not ended:
            queued = [await events.get()]
            while not events.empty():
                queued.append(events.get_nowait())
            ended = None in queued
            if new := [event for event in queued if event is not None]:
                yield new
        await answering
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


class ContinuedText:
    """What was sent to a reader of an answer's `StepText` events, whose attempts each begin the answer again. The
    reader must not take two attempts for one text, so once a second one writes, only text that continues the sent text
    is sent."""

    def __init__(self) -> None:
        self._attempts: dict[int, list[str]] = {}
        self._sent: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._sent)

    def add(self, attempt: int, piece: str) -> str:
        """The text to send after attempt number `attempt` wrote `piece`: usually the piece itself."""
        written = self._attempts.setdefault(attempt, [])
        written.append(piece)
        if len(self._attempts) == 1:
            self._sent.append(piece)
            return piece
        return self.continue_with("".join(written)) or ""

    def continue_with(self, text: str) -> str | None:
        """Send what of a whole text was not sent, and return it. None if the text does not begin with what was sent."""
        sent = self.text
        if not text.startswith(sent):
            return None
        self._sent = [text]
        return text[len(sent) :]
