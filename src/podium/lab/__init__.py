"""The embedded laboratory: what simulated questions are made of, and how simulated workers read them.

`operations` are small computations, each with several phrasings. The task set `embedded` composes them into questions
(`problem`, `wording`); the simulated specialists read a request (`intent`) and compute it. A run with real models
needs none of this. The policy's warm start on these questions is `podium.warmstart`.
"""

from podium.lab.operations import OPERATIONS, SKILLS, Operation
from podium.lab.problem import Hop, Problem
from podium.lab.values import VALUE_TYPES, chance, fits
from podium.lab.wording import clauses, read_problem, word_question

__all__ = [
    "OPERATIONS",
    "SKILLS",
    "VALUE_TYPES",
    "Hop",
    "Operation",
    "Problem",
    "chance",
    "clauses",
    "fits",
    "read_problem",
    "word_question",
]
