"""What an observer is told while a workflow runs. Rounds and steps are counted from 0."""

from __future__ import annotations

from dataclasses import dataclass

from podium.trace import Span


@dataclass(frozen=True, slots=True)
class StepStarted:
    """All that the step reads is done, and its worker is about to be called."""

    round: int
    position: int
    worker: str
    subtask: str


@dataclass(frozen=True, slots=True)
class StepText:
    """A piece of the answer, as its worker writes it."""

    round: int
    position: int
    text: str
    attempt: int = 0
    """Which try of the step writes it: each begins anew, and two may write side by side."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """The step was answered, failed, was refused or was cancelled. Skipped steps have no events."""

    round: int
    span: Span
