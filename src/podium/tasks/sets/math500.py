"""MATH-500: five hundred problems of MATH's test split, which much is measured on.

Source: `HuggingFaceH4/MATH-500` on the hub, MIT as MATH is; chosen by Lightman et al. 2023 (arXiv 2305.20050). Split:
test. The file names the gold answer. Asked for a box; graded by Math-Verify.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.math import Math
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text, whole
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import BOXED


class MATH500(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "HuggingFaceH4/MATH-500"
    licence: ClassVar[str] = "MIT"
    set: Literal["math-500"] = "math-500"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("test.jsonl",)}

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def entry(self, values: Mapping[str, Any]) -> Entry:
        return Entry(
            BOXED.format(question=text(values, "problem")),
            text(values, "answer"),
            text(values, "unique_id").removesuffix(".json"),
            {"family": text(values, "subject"), "level": str(whole(values, "level"))},
        )
