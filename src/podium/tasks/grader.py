"""The grader of short answers: finds the final answer, then compares, normalised."""

from __future__ import annotations

from podium.tasks.task import Grade
from podium.workers.answer import final_answer, normalise


def exact(response: str, gold: str) -> Grade:
    """1 when the response's final answer is the gold answer; case, outer space and a final dot do not count.

    The final answer is the one that `final_answer` finds; containing the gold answer earns nothing.
    """
    found = final_answer(response)
    if found is None:
        return Grade(0.0)
    return Grade(float(normalise(found) == normalise(gold)), found)
