"""Answers questions: plan, run, plan again, within a budget.

`podium.team.team` opens a team. It is not imported here, because it imports all planners.
"""

from podium.team.events import Event, PlanReady, QuestionEnded, RoundEnded, TraceStoreError
from podium.team.runner import Runner

__all__ = ["Event", "PlanReady", "QuestionEnded", "RoundEnded", "Runner", "TraceStoreError"]
