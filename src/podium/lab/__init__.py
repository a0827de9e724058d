"""The embedded laboratory: generated questions, and what simulated workers need to answer them.

`operations` are small computations, each with several phrasings. The task set `embedded` composes them into questions
(`problem`, `wording`). Simulated specialists read a request (`intent`) and compute the answer. Runs with real models
use none of this. `podium_lab.warmstart` trains a policy on these questions.
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
