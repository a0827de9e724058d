"""Planners that are not the Conductor. Each is a small file that builds workflows."""

from podium.baselines.cascade import Cascade
from podium.baselines.chosen import Choose, Chosen
from podium.baselines.committee import Committee
from podium.baselines.constant import Constant, read_constant
from podium.baselines.open import NAMES, open_baseline
from podium.baselines.oracle import Oracle, PlanFor
from podium.baselines.random_plans import RandomPlans, random_workflow
from podium.baselines.self_consistency import SelfConsistency
from podium.baselines.single import Single
from podium.workers.vote import VOTE

__all__ = [
    "NAMES",
    "VOTE",
    "Cascade",
    "Choose",
    "Chosen",
    "Committee",
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
