"""For the group `podium.planners`: a planner, of one round or of several, and the workflows that it plans."""

from podium.planners.baseline import BaselineContext, BaselineSpec
from podium.planners.planner import BatchPlanner, EarlierRound, Learner, Planner, PlannerWrapper, PlanRequest
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
    "BaselineSpec",
    "BatchPlanner",
    "EarlierRound",
    "Learner",
    "Plan",
    "PlanRequest",
    "Planner",
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
