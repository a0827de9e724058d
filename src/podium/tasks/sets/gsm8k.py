"""GSM8K: word problems of a primary school, whose answer is a number.

Source: `openai/gsm8k` on the hub (Cobbe et al. 2021, arXiv 2110.14168), MIT. Splits: train (of which a tenth is
validation) and test. The gold answer stands behind `####` in the solution. Graded as mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.math import Math
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import FINAL_NUMBER, content_id


class GSM8K(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "openai/gsm8k"
    licence: ClassVar[str] = "MIT"
    set: Literal["gsm8k"] = "gsm8k"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": ("main/train-*.parquet",), "test": ("main/test-*.parquet",)}

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def entry(self, values: Mapping[str, Any]) -> Entry:
        _, mark, gold = text(values, "answer").rpartition("####")
        if not mark:
            raise ValueError("the solution has no answer behind ####")
        question = text(values, "question")
        return Entry(
            FINAL_NUMBER.format(question=question), gold.strip().replace(",", ""), content_id(question)
        )
