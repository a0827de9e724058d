"""Operations: the small computations that the embedded questions are made of.

The task set composes them into questions, and the simulated specialists read and compute them.
"""

from podium.operations.catalogue import OPERATIONS, SKILLS
from podium.operations.chance import chance
from podium.operations.kinds import KINDS, takes
from podium.operations.operation import Operation
from podium.operations.problem import Hop, Problem
from podium.operations.reading import clauses, read_problem
from podium.operations.wording import word_question

__all__ = [
    "KINDS",
    "OPERATIONS",
    "SKILLS",
    "Hop",
    "Operation",
    "Problem",
    "chance",
    "clauses",
    "read_problem",
    "takes",
    "word_question",
]
