"""For the group `podium.planners`: a planner."""

from podium.planner import Planner, PlanRequest
from podium.planners.baseline import BaselineContext, BaselineSpec
from podium.trace import Plan

__all__ = ["BaselineContext", "BaselineSpec", "Plan", "PlanRequest", "Planner"]
