"""MATH: problems of school competitions, with a written solution each.

Source: `EleutherAI/hendrycks_math` on the hub (Hendrycks et al. 2021, arXiv 2103.03874; the authors' own repository
was taken down in January 2025), MIT. Splits: train (7,500, of which a tenth is validation) and test (5,000). The gold
answer is the last box of the solution. Asked for a box; graded by Math-Verify, where the authors compare texts.
Trap: all of MATH-500 is in the test split; 4,500 of that split are training data of PRM800K and of models after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.math import Math
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import BOXED, content_id
from podium.workers.answer import boxed

Subject = Literal[
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
]
_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_VALUE = re.compile(r"[^\s$.,{}]+")


class MATH(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "EleutherAI/hendrycks_math"
    licence: ClassVar[str] = "MIT"
    set: Literal["math"] = "math"
    subjects: tuple[Subject, ...] = ()
    """Only these; none named: all."""
    levels: tuple[Literal[1, 2, 3, 4, 5], ...] = ()
    """Only these, 5 the hardest; none named: all, and those few whose level nobody knows."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {
            split: tuple(f"{subject}/{split}-*.parquet" for subject in self.subjects or get_args(Subject))
            for split in ("train", "test")
        }

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def entry(self, values: Mapping[str, Any]) -> Entry | None:
        level = text(values, "level").removeprefix("Level ")
        if self.levels and level not in map(str, self.levels):
            return None
        problem = text(values, "problem")
        gold = last_box(text(values, "solution"))
        facts = {"family": text(values, "type"), "level": level}
        return Entry(BOXED.format(question=problem), gold, content_id(problem), facts)


def last_box(solution: str) -> str:
    """What a solution puts in its last box; some boxes have no braces, as `\\boxed 5`.

    Raises:
        ValueError: it has none.
    """
    *_, behind = ("", *_BOX.split(solution)[1:])
    if behind.startswith("{"):
        found = boxed(f"\\boxed{behind}") or ""
    else:
        unbraced = _VALUE.match(behind)
        found = unbraced[0] if unbraced else ""
    if not found.strip():
        raise ValueError("the solution has no boxed answer")
    return found.strip()
