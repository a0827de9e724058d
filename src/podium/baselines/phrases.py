"""The texts of the subtasks that baselines and warm-start examples use.

Simulated specialists recognise these texts. Real models read them as ordinary instructions.
"""

from __future__ import annotations

import re

WHOLE = "Answer the whole question."
PARTS = (
    "Do part 1 only.",
    "Do part 2 only.",
    "Do part 3 only.",
    "Do part 4 only.",
)
NEXT = "Do the next part."
FINISH = "Finish the rest."
CHECK = "Check the work shown and mend it."
COMPARE = "Compare the answers shown and give the best one."

PHRASES = (WHOLE, *PARTS, NEXT, FINISH, CHECK, COMPARE)
"""All phrases. Do not change the order: seeded draws depend on it."""

_NUMBER = re.compile(r"^\d\. ")


def requests_whole_question(subtask: str, question: str) -> bool:
    """Whether a subtask requests an answer to the whole question, not to a part or a rewording of it.

    Small policies number their subtasks. Such a number in front ("1. ") makes no difference.
    """
    return any(text.strip() in (WHOLE, question.strip()) for text in (subtask, _NUMBER.sub("", subtask)))
