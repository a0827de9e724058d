"""Planners that are not the Conductor: what it is compared with. `registry` names them; each builds workflows."""

from podium.planners.baseline import PlannerSpec
from podium.planners.cascade import Cascade
from podium.planners.controls import Constant, RandomPlans, random_workflow, read_constant
from podium.planners.registry import baseline_syntaxes, find_baseline, known_baselines, open_baseline
from podium.planners.voting import Committee, SelfConsistency, Single
from podium.workers.vote import VOTE

__all__ = [
    "VOTE",
    "Cascade",
    "Committee",
    "Constant",
    "PlannerSpec",
    "RandomPlans",
    "SelfConsistency",
    "Single",
    "baseline_syntaxes",
    "find_baseline",
    "known_baselines",
    "open_baseline",
    "random_workflow",
    "read_constant",
]
