"""Benchmarks of mathematics: GSM8K, MATH, MATH-500 and AIME. Each class says where its rows are from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from podium.plugin_api.tasks import GraderSettings, Sample
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.sets.prompts import BOXED, FINAL_NUMBER, content_id
from podium.text.boxes import boxed_answer
from podium_research.task_sets.hub import HubSet, int_column, text_column


class GSM8K(HubSet):
    """GSM8K: word problems of a primary school, whose answer is a number.

    Source: `openai/gsm8k` on the hub (Cobbe et al. 2021, arXiv 2110.14168), MIT. Splits: train (of which a tenth is
    validation) and test. The gold answer stands behind `####` in the solution. Graded as mathematics.
    """

    source: ClassVar[str] = "openai/gsm8k"
    licence: ClassVar[str] = "MIT"
    set: Literal["gsm8k"] = "gsm8k"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": ("main/train-*.parquet",), "test": ("main/test-*.parquet",)}

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        _, mark, gold = text_column(values, "answer").rpartition("####")
        if not mark:
            raise ValueError("the solution has no answer behind ####")
        question = text_column(values, "question")
        return Sample(
            FINAL_NUMBER.format(question=question), gold.strip().replace(",", ""), content_id(question)
        )


Subject = Literal[
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
]


class MATH(HubSet):
    """MATH: problems of school competitions, with a written solution each.

    Source: `EleutherAI/hendrycks_math` on the hub (Hendrycks et al. 2021, arXiv 2103.03874; the authors' own
    repository was taken down in January 2025), MIT. Splits: train (7,500, of which a tenth is validation) and test
    (5,000). The gold answer is the last box of the solution. Asked for a box; graded by Math-Verify, where the
    authors compare texts.
    Trap: all of MATH-500 is in the test split; 4,500 of that split are training data of PRM800K and of models after it.
    """

    source: ClassVar[str] = "EleutherAI/hendrycks_math"
    licence: ClassVar[str] = "MIT"
    set: Literal["math"] = "math"
    subjects: tuple[Subject, ...] = ()
    """The subjects that are used. If empty, all are."""
    levels: tuple[Literal[1, 2, 3, 4, 5], ...] = ()
    """The levels that are used, 5 the hardest. If empty, all are, also the few problems without a level."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {
            split: tuple(f"{subject}/{split}-*.parquet" for subject in self.subjects or get_args(Subject))
            for split in ("train", "test")
        }

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        level = text_column(values, "level").removeprefix("Level ")
        if self.levels and level not in map(str, self.levels):
            return None
        problem = text_column(values, "problem")
        gold = boxed_gold(text_column(values, "solution"))
        facts = {"family": text_column(values, "type"), "level": level}
        return Sample(BOXED.format(question=problem), gold, content_id(problem), facts)


def boxed_gold(solution: str) -> str:
    """The content of the last box of a solution; some boxes have no braces, as `\\boxed 5`.

    Raises:
        ValueError: the solution has no box.
    """
    answer = boxed_answer(solution, closed=True) or ""
    if not answer.strip():
        raise ValueError("the solution has no boxed answer")
    return answer.strip()


class MATH500(HubSet):
    """MATH-500: five hundred problems of MATH's test split, which much is measured on.

    Source: `HuggingFaceH4/MATH-500` on the hub, MIT as MATH is; chosen by Lightman et al. 2023 (arXiv 2305.20050).
    Split: test. The file names the gold answer. Asked for a box; graded by Math-Verify.
    """

    source: ClassVar[str] = "HuggingFaceH4/MATH-500"
    licence: ClassVar[str] = "MIT"
    set: Literal["math-500"] = "math-500"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("test.jsonl",)}

    @property
    def grader(self) -> GraderSettings:
        return Math()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        return Sample(
            BOXED.format(question=text_column(values, "problem")),
            text_column(values, "answer"),
            text_column(values, "unique_id").removesuffix(".json"),
            {"family": text_column(values, "subject"), "level": str(int_column(values, "level"))},
        )


_ANSWER = re.compile(r"(\d{1,3})(?:\^\\circ|°)?")


class AIME(HubSet):
    """AIME: thirty problems a year of the American Invitational Mathematics Examination, papers I and II.

    Source: `math-ai/aime25` (Apache-2.0) and `HuggingFaceH4/aime_2024` (states none) on the hub; the problems are the
    Mathematical Association of America's. Split: test, though the latter calls it train. Every answer is a whole
    number from 0 to 999. Asked for a box; graded as a number. Trap: copies of 2025 give one answer as `336^\\circ`,
    which is 336.
    """

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

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        answer = _ANSWER.fullmatch(text_column(values, "answer").strip())
        if not answer:
            raise ValueError("the answer is no whole number from 0 to 999")
        return Sample(
            BOXED.format(question=text_column(values, "problem")),
            str(int(answer[1])),
            f"{self.year}/{values['id']}",
            {"year": self.year},
        )
