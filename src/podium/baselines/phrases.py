"""The phrase book: the subtasks that baselines and the embedded task's warm start write.

Embedded specialists read these very texts; real models read them as plain instructions.
"""

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
