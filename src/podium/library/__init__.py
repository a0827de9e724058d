"""Podium as a Python library. `import podium` offers these names, and loads this package when one is first used."""

from podium.errors import PodiumError, UsageError
from podium.evals.evaluation import Evaluation
from podium.executor import StepEnded, StepStarted, StepText
from podium.library.evaluation import evaluate
from podium.library.sync_team import SyncTeam
from podium.planners.planner import Planner, PlanRequest
from podium.team import Event, PlanReady, QuestionEnded, RoundEnded
from podium.team.team import Team
from podium.trace import Plan, Trace
from podium.types import Budget, Limits, Price, Question
from podium.workers.function import worker
from podium.workers.pool import Pool
from podium.workflow import Access, PlanError, Step, Workflow

__all__ = [
    "Access",
    "Budget",
    "Evaluation",
    "Event",
    "Limits",
    "Plan",
    "PlanError",
    "PlanReady",
    "PlanRequest",
    "Planner",
    "PodiumError",
    "Pool",
    "Price",
    "Question",
    "QuestionEnded",
    "RoundEnded",
    "Step",
    "StepEnded",
    "StepStarted",
    "StepText",
    "SyncTeam",
    "Team",
    "Trace",
    "UsageError",
    "Workflow",
    "evaluate",
    "worker",
]
