"""MMLU-Pro: harder questions of fourteen categories with up to ten options each.

Source: `TIGER-Lab/MMLU-Pro` on the hub (Wang et al. 2024, arXiv 2406.01574), MIT. Splits: validation (70, which the
authors show as examples) and test (12,032). Options `N/A` are left out, as the authors do. Asked for the letter with no
examples, where the authors give five; graded as a letter, and what names none is wrong, where the authors guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text, texts, whole
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import choice_question

Category = Literal[
    "biology",
    "business",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "health",
    "history",
    "law",
    "math",
    "other",
    "philosophy",
    "physics",
    "psychology",
]


class MMLUPro(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "TIGER-Lab/MMLU-Pro"
    licence: ClassVar[str] = "MIT"
    set: Literal["mmlu-pro"] = "mmlu-pro"
    categories: tuple[Category, ...] = ()
    """Only these; none named: all."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {split: (f"data/{split}-*.parquet",) for split in ("validation", "test")}

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def entry(self, values: Mapping[str, Any]) -> Entry | None:
        category = text(values, "category")
        if self.categories and category not in self.categories:
            return None
        listed = texts(values, "options")
        place = whole(values, "answer_index")
        if not 0 <= place < len(listed) or listed[place] == "N/A":
            raise ValueError("none of its options is the right one")
        options = [option for option in listed if option != "N/A"]
        # By its place, not by the file's letter: an option left out before it moves it up.
        gold = ascii_uppercase[place - listed[:place].count("N/A")]
        facts = {"family": category, "source": text(values, "src")}
        return Entry(
            choice_question(text(values, "question"), options), gold, str(whole(values, "question_id")), facts
        )
