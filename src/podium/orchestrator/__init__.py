"""Answers questions: plan, run, plan again, within a budget.

`podium.orchestrator.team` makes an orchestrator a worker of another pool. It is not imported here, because it imports
all planners.
"""

from podium.orchestrator.events import Event, PlanReady, QuestionEnded, RoundEnded
from podium.orchestrator.journal import Journal, Past
from podium.orchestrator.orchestrator import Orchestrator

__all__ = ["Event", "Journal", "Orchestrator", "Past", "PlanReady", "QuestionEnded", "RoundEnded"]
