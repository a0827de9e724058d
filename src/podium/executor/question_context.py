"""One question that is being answered: what all its rounds and steps share, and the events that its observer gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.calls import CallContext, RetrySettings
from podium.executor.step_input import MessageLayout
from podium.trace import Span
from podium.types import Message, Profile, Question
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The steps that it reads are done, and its worker is about to be called."""

    round: int
    position: int
    worker: str
    subtask: str


@dataclass(frozen=True, slots=True)
class StepText:
    """A piece of the answer, as its worker writes it. The last characters may be in the trace alone."""

    round: int
    position: int
    text: str
    attempt: int = 0
    """Which try of the step writes it. Each try begins its text anew, and two may write at the same time."""
    reasoning: bool = False
    """Whether it is visible reasoning of the worker's model and no part of the answer."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """The step was answered, failed, was refused or was cancelled. Skipped steps have no events."""

    round: int
    span: Span


StepEvent = StepStarted | StepText | StepEnded


@dataclass(frozen=True, slots=True)
class ExecutionSettings(RetrySettings):
    """How workflows are run."""

    layout: MessageLayout = "packed"
    """How a step's input is written into messages."""
    messages: tuple[Message, ...] | None = None
    """The whole conversation for a worker that is called directly, in place of the question and its history."""
    run_all: bool = False
    """Run also the steps that nothing needs."""
    early_stop: bool = False
    """Run the steps of a vote in turns, the cheapest first, until its result is certain (`early_stopping`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionContext(CallContext):
    """One question that is being answered."""

    settings: ExecutionSettings = ExecutionSettings()
    question: Question
    pool: Pool
    fence_mark: str
    """The random mark in the fences of its messages (`make_fence_mark`)."""
    seed: str
    sample: int = 0
    """The number of this independent answer to the question. A response cache keeps each number's answers apart."""
    streams: bool = False
    """Whether the observer wants the text of the answer while it is written."""
    observe: Callable[[StepEvent], None] | None = None
    """Called with each event of a step. It must be quick: the event loop waits for it."""

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles of the workers, with their ratings for this question."""
        return self.pool.profiles_for(self.question.text)
