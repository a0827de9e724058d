"""Runs a workflow over a pool: in order of need, within a budget, recording everything (design §5, §6)."""

from podium.executor.context import Context, EarlierStep, Style, build_messages, fence_token
from podium.executor.dispatcher import Dispatcher
from podium.executor.execution import Execution
from podium.executor.ledger import Ledger, Reservation
from podium.executor.question_context import (
    ExecutionSettings,
    QuestionContext,
    StepEnded,
    StepStarted,
    StepText,
)

__all__ = [
    "Context",
    "Dispatcher",
    "EarlierStep",
    "Execution",
    "ExecutionSettings",
    "Ledger",
    "QuestionContext",
    "Reservation",
    "StepEnded",
    "StepStarted",
    "StepText",
    "Style",
    "build_messages",
    "fence_token",
]
