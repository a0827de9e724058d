"""Evaluation: planners on held-out questions, compared at equal cost, and the report of a run."""

from podium.evals.compare import ComparisonSettings, compare
from podium.evals.comparison import SIMULATED, Comparison, ComparisonRow
from podium.evals.constant_search import ConstantPlan, ConstantPlanFront, search_constant
from podium.evals.evaluation import Evaluation, evaluate, merge_evaluations
from podium.evals.recorded import compare_recorded
from podium.evals.routing import Routing, routing, steps_by_hops
from podium.evals.stats import Interval, paired_difference

__all__ = [
    "SIMULATED",
    "Comparison",
    "ComparisonRow",
    "ComparisonSettings",
    "ConstantPlan",
    "ConstantPlanFront",
    "Evaluation",
    "Interval",
    "Routing",
    "compare",
    "compare_recorded",
    "evaluate",
    "merge_evaluations",
    "paired_difference",
    "routing",
    "search_constant",
    "steps_by_hops",
]
