"""The grader of short answers: the answer as it is written, but for its dress."""

from __future__ import annotations

from typing import Literal

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import Place, find
from podium.tasks.task import Grade
from podium.workers.answer import bare, normalise


class Exact(PureGrader):
    """1 when the response's answer is the gold answer; case, outer space and a final dot do not count.

    Nor do emphasis, backticks and a box around either of them. Containing the gold answer earns nothing.
    """

    kind: Literal["exact"] = "exact"
    answer: Place = "final"
    """Where the answer stands in the response."""

    def complaint(self, gold: str) -> str | None:
        return None if normalise(bare(gold)) else "the gold answer is empty"

    def judge(self, response: str, gold: str) -> Grade:
        found = find(response, self.answer)
        if found is None:
            return Grade(0.0)
        return Grade(float(normalise(bare(found)) == normalise(bare(gold))), found)
