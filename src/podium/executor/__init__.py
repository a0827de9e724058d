"""Runs a workflow over a pool of workers. Each step starts once its inputs are there. Spans record the steps."""

from podium.executor.early_start import EarlyStart, may_start_early
from podium.executor.execution import Execution
from podium.executor.question_context import (
    ExecutionSettings,
    QuestionContext,
    RoundContext,
    StepEnded,
    StepEvent,
    StepStarted,
    StepText,
)
from podium.executor.step_input import build_messages, make_fence_mark

__all__ = [
    "EarlyStart",
    "Execution",
    "ExecutionSettings",
    "QuestionContext",
    "RoundContext",
    "StepEnded",
    "StepEvent",
    "StepStarted",
    "StepText",
    "build_messages",
    "make_fence_mark",
    "may_start_early",
]
