"""What all rounds and steps of one question share, and the events of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from podium.calls import CallContext, RetrySettings
from podium.executor.step_input import StepLayout
from podium.trace import Span
from podium.types import Message, Profile, Question
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step's worker is about to be called: the steps that it reads have ended."""

    round: int
    position: int
    worker: str
    subtask: str


@dataclass(frozen=True, slots=True)
class StepText:
    """A piece of the answer, sent while the worker writes it. The last characters may be only in the trace."""

    round: int
    position: int
    text: str
    attempt: int = 0
    """Which try of the step writes the text. Each try starts it again, and two tries may write at the same time."""
    reasoning: bool = False
    """Whether the text is visible reasoning of the worker's model, and not part of the answer."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step was answered, failed, was refused or was cancelled. A skipped step has no event."""

    round: int
    span: Span


StepEvent = StepStarted | StepText | StepEnded


@dataclass(frozen=True, slots=True)
class ExecutionSettings(RetrySettings):
    """How workflows are run."""

    layout: StepLayout = "packed"
    run_all: bool = False
    """Whether steps that no other step needs are run too."""
    early_stop: bool = False
    """Whether the steps of a vote run in turns, the cheapest first, until its result is certain (`early_stopping`)."""


@dataclass(frozen=True, slots=True)
class RoundContext:
    """The number of a round, and what its steps know of earlier rounds."""

    number: int = 0
    """The number of the round, from 0. A step's request has the seed "{seed of the question}/{number}/{position}"."""
    response: str | None = None
    """The final response of the latest round. None if it has none."""
    steps_by_worker: Mapping[int, int] = field(default_factory=dict)
    """How many steps of earlier rounds each worker had, by the worker's number in the pool."""


@dataclass(frozen=True, kw_only=True)
class QuestionContext(CallContext):
    """One question that is being answered."""

    settings: ExecutionSettings = ExecutionSettings()
    question: Question
    conversation: tuple[Message, ...] | None = None
    """The caller's own messages, which a worker that is called directly gets in place of the question and its
    history."""
    pool: Pool
    fence_mark: str
    """The random mark in the fences of the question's messages (`make_fence_mark`)."""
    seed: str
    sample: int = 0
    """The number of this answer among independent answers. A response cache keeps each number's answers apart."""
    streams: bool = False
    """Whether the text of the answer is sent as events while it is written."""
    on_event: Callable[[StepEvent], None] = lambda event: None
    """Called with each event of a step. It must be quick: the event loop waits for it."""
    requests: list[tuple[str, tuple[Message, ...]]] = field(default_factory=list)
    """The worker's name and the messages of each request so far. Executions add theirs."""

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles of the workers, with their ratings for this question."""
        return self.pool.profiles_for(self.question.text)
