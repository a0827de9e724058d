"""For the group `podium.planners`: a planner, of one round or of several, and the workflows that it plans."""

from podium.planners.baseline import BaselineContext, PlannerSpec
from podium.planners.planner import (
    BatchPlanner,
    EarlierRound,
    OnlinePlanner,
    Planner,
    PlannerWrapper,
    PlanRequest,
)
from podium.planners.rounds import (
    Rounds,
    RoundStep,
    most_common,
    plan_rounds,
    voted_round_plan,
    worker_step,
    workflow_plan,
)
from podium.trace import Plan
from podium.workflow import Acceptance, Access, Step, Workflow

__all__ = [
    "Acceptance",
    "Access",
    "BaselineContext",
    "BatchPlanner",
    "EarlierRound",
    "OnlinePlanner",
    "Plan",
    "PlanRequest",
    "Planner",
    "PlannerSpec",
    "PlannerWrapper",
    "RoundStep",
    "Rounds",
    "Step",
    "Workflow",
    "most_common",
    "plan_rounds",
    "voted_round_plan",
    "worker_step",
    "workflow_plan",
]
