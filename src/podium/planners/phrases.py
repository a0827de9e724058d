"""The texts of the subtasks that baselines and warm-start examples use.

Models read them as ordinary instructions.
"""

from __future__ import annotations

from podium.types import ANSWER_WHOLE_QUESTION

PARTS = ("Do part 1 only.", "Do part 2 only.", "Do part 3 only.", "Do part 4 only.")
NEXT = "Do the next part."
FINISH = "Finish the rest."
CHECK = "Check the work shown and mend it."
COMPARE = "Compare the answers shown and give the best one."

PHRASES = (ANSWER_WHOLE_QUESTION, *PARTS, NEXT, FINISH, CHECK, COMPARE)
"""All phrases. Do not change the order: seeded draws depend on it."""
