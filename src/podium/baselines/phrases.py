"""The phrase book: the subtasks that baselines and the embedded task's warm start write.

Embedded specialists read these very texts; real models read them as plain instructions.
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
"""All of them, in a fixed order: seeded draws depend on it."""

_NUMBER = re.compile(r"^\d\. ")


def asks_whole(subtask: str, question: str) -> bool:
    """Whether a subtask is the whole question and no part or rewriting of it.

    A small policy numbers its subtasks; that changes nothing in what is asked.
    """
    return any(text.strip() in (WHOLE, question.strip()) for text in (subtask, _NUMBER.sub("", subtask)))
