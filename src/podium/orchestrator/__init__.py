"""Answers questions: plan, run, plan again, within a budget.

A whole orchestrator as a worker of another's pool (`team`) is imported from its own module, since it brings planners.
"""

from podium.orchestrator.events import Event, PlanReady, QuestionEnded, RoundEnded
from podium.orchestrator.orchestrator import Orchestrator

__all__ = ["Event", "Orchestrator", "PlanReady", "QuestionEnded", "RoundEnded"]
