"""Planners that are not the Conductor: what it is compared with. `registry` names them; each builds workflows."""

from podium.baselines.baseline import Baseline, BaselineContext, PlanFor, ScoredAnswers
from podium.baselines.cascade import Cascade
from podium.baselines.controls import Constant, Oracle, RandomPlans, random_workflow, read_constant
from podium.baselines.registry import BASELINES, baseline_forms, find_baseline, known_baselines, open_baseline
from podium.baselines.voting import Committee, SelfConsistency, Single
from podium.workers.vote import VOTE

__all__ = [
    "BASELINES",
    "VOTE",
    "Baseline",
    "BaselineContext",
    "Cascade",
    "Committee",
    "Constant",
    "Oracle",
    "PlanFor",
    "RandomPlans",
    "ScoredAnswers",
    "SelfConsistency",
    "Single",
    "baseline_forms",
    "find_baseline",
    "known_baselines",
    "open_baseline",
    "random_workflow",
    "read_constant",
]
