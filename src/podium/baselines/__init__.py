"""Planners that are not the Conductor. Each is a small file that builds workflows."""

from podium.baselines.constant import Constant, read_constant
from podium.baselines.open import NAMES, open_baseline
from podium.baselines.oracle import Oracle, PlanFor
from podium.baselines.random_plans import RandomPlans, random_workflow
from podium.baselines.self_consistency import VOTE, SelfConsistency
from podium.baselines.single import Single

__all__ = [
    "NAMES",
    "VOTE",
    "Constant",
    "Oracle",
    "PlanFor",
    "RandomPlans",
    "SelfConsistency",
    "Single",
    "open_baseline",
    "random_workflow",
    "read_constant",
]
