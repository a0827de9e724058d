"""Runs a workflow over a pool: in order of need, within a budget, recording everything (design §5, §6)."""

from podium.executor.context import Context, EarlierStep, Style, build_messages, fence_token
from podium.executor.events import StepEnded, StepStarted
from podium.executor.execution import Execution
from podium.executor.gate import Gate, Gates
from podium.executor.inquiry import ExecutionSettings, Inquiry
from podium.executor.ledger import Hold, Ledger

__all__ = [
    "Context",
    "EarlierStep",
    "Execution",
    "ExecutionSettings",
    "Gate",
    "Gates",
    "Hold",
    "Inquiry",
    "Ledger",
    "StepEnded",
    "StepStarted",
    "Style",
    "build_messages",
    "fence_token",
]
