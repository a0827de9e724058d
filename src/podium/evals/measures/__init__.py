"""Measures of evaluations: what a planner gains, for what it costs, and how far that can be relied on.

`measure` computes all that a report prints. docs/evaluation.md says when each misleads.
"""

from podium.evals.measures.measures import Measures, PlannerMeasures, measure

__all__ = ["Measures", "PlannerMeasures", "measure"]
