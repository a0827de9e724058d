"""Runs a workflow over a pool of workers: each step once its inputs are there, within a budget, recorded in spans."""

from podium.executor.context import Context, Style, build_messages, fence_token
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
