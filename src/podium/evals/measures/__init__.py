"""Measures of evaluations: what a planner gains, for what it costs, and how far that can be relied on.

`measure` computes all of them, `Measures` holds them. docs/measures.md says when each misleads.
"""

from podium.evals.measures.influence import Influence, Position
from podium.evals.measures.measures import SINGLES, Measures, PlannerMeasures, measure

__all__ = ["SINGLES", "Influence", "Measures", "PlannerMeasures", "Position", "measure"]
