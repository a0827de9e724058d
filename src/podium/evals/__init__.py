"""Evaluation: planners on held-out questions, compared at equal cost, and the report of a run."""

from podium.evals.compare import ComparisonSettings, compare
from podium.evals.comparison import SIMULATED, Comparison, Row
from podium.evals.evaluation import Evaluation, evaluate, joined
from podium.evals.frontier import ConstantPlan, Frontier
from podium.evals.recorded import compare_recorded
from podium.evals.routing import Routing, routing, steps_by_hops
from podium.evals.search import search_constant
from podium.evals.statistics import Interval, paired_difference

__all__ = [
    "SIMULATED",
    "Comparison",
    "ComparisonSettings",
    "ConstantPlan",
    "Evaluation",
    "Frontier",
    "Interval",
    "Routing",
    "Row",
    "compare",
    "compare_recorded",
    "evaluate",
    "joined",
    "paired_difference",
    "routing",
    "search_constant",
    "steps_by_hops",
]
