"""The events of one question, for its observer: those of the orchestrator, with those of the executor."""

from __future__ import annotations

from dataclasses import dataclass

from podium.executor import StepEnded, StepStarted, StepText
from podium.planner import Plan
from podium.trace import RoundTrace, Trace
from podium.workflow import PlanError


@dataclass(frozen=True, slots=True)
class PlanReady:
    """The planner has decided."""

    round: int
    """From 0."""
    plan: Plan
    """What is run; where planning failed, the plan that gives the question to one worker."""
    seconds: float
    error: PlanError | None = None
    """Why there was no plan."""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A plan was run, accepted what there was, or could not be used."""

    round: int
    trace: RoundTrace


@dataclass(frozen=True, slots=True)
class QuestionEnded:
    """The whole trace. A cancelled question has one too, before `CancelledError` propagates."""

    trace: Trace


Event = PlanReady | StepStarted | StepText | StepEnded | RoundEnded | QuestionEnded
