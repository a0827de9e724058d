"""AIME: thirty problems a year of the American Invitational Mathematics Examination, papers I and II.

Source: `math-ai/aime25` (Apache-2.0) and `HuggingFaceH4/aime_2024` (states none) on the hub; the problems are the
Mathematical Association of America's. Split: test, though the latter calls it train. Every answer is a whole number
from 0 to 999. Asked for a box; graded as a number. Trap: copies of 2025 give one answer as `336^\\circ`, which is 336.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.numeric import Numeric
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import BOXED

_ANSWER = re.compile(r"(\d{1,3})(?:\^\\circ|°)?")


class AIME(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "math-ai/aime25"
    licence: ClassVar[str] = "Apache-2.0; 2024: not stated"
    set: Literal["aime"] = "aime"
    year: Literal[2024, 2025] = 2025

    def source_of(self, split: str) -> str:
        return "HuggingFaceH4/aime_2024" if self.year == 2024 else self.source

    @property
    def label(self) -> str:
        return f"aime-{self.year}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("data/train-*.parquet",) if self.year == 2024 else ("test.jsonl",)}

    @property
    def grader(self) -> GraderSettings:
        return Numeric()

    def entry(self, values: Mapping[str, Any]) -> Entry:
        answer = _ANSWER.fullmatch(text(values, "answer").strip())
        if not answer:
            raise ValueError("the answer is no whole number from 0 to 999")
        return Entry(
            BOXED.format(question=text(values, "problem")),
            str(int(answer[1])),
            f"{self.year}/{values['id']}",
            {"year": self.year},
        )
