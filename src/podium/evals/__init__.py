"""Evaluation: planners on held-out questions, compared at equal cost, and the report of a run.

`answer_files` and `question_table` keep answers. `suite` runs comparisons, `study` finds out whether a team pays,
`recorder` records workers, and `rating` measures workers for planners.
"""

from podium.evals.comparison import Comparison
from podium.evals.evaluation import Evaluation, evaluate

__all__ = ["Comparison", "Evaluation", "evaluate"]
