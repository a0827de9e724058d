"""MMLU: questions of 57 subjects with four options each.

Source: `cais/mmlu` on the hub (Hendrycks et al. 2021, arXiv 2009.03300), MIT. Splits: train (`auxiliary_train`,
99,842), validation (1,531) and test (14,042); the five examples a subject of `dev` are left out. Asked for the letter
with no examples, where the authors give five; graded as a letter.
Trap: `auxiliary_train` is not MMLU. It was taken from ARC, MC_TEST, OBQA and RACE, has no subjects, and often a page of
text before the question; whoever trains on it cannot be measured on those. Its own folder nests its columns one deeper.
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
from podium.tasks.sets.prompts import choice_question, content_id

Subject = Literal[
    "abstract_algebra",
    "anatomy",
    "astronomy",
    "business_ethics",
    "clinical_knowledge",
    "college_biology",
    "college_chemistry",
    "college_computer_science",
    "college_mathematics",
    "college_medicine",
    "college_physics",
    "computer_security",
    "conceptual_physics",
    "econometrics",
    "electrical_engineering",
    "elementary_mathematics",
    "formal_logic",
    "global_facts",
    "high_school_biology",
    "high_school_chemistry",
    "high_school_computer_science",
    "high_school_european_history",
    "high_school_geography",
    "high_school_government_and_politics",
    "high_school_macroeconomics",
    "high_school_mathematics",
    "high_school_microeconomics",
    "high_school_physics",
    "high_school_psychology",
    "high_school_statistics",
    "high_school_us_history",
    "high_school_world_history",
    "human_aging",
    "human_sexuality",
    "international_law",
    "jurisprudence",
    "logical_fallacies",
    "machine_learning",
    "management",
    "marketing",
    "medical_genetics",
    "miscellaneous",
    "moral_disputes",
    "moral_scenarios",
    "nutrition",
    "philosophy",
    "prehistory",
    "professional_accounting",
    "professional_law",
    "professional_medicine",
    "professional_psychology",
    "public_relations",
    "security_studies",
    "sociology",
    "us_foreign_policy",
    "virology",
    "world_religions",
]


class MMLU(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "cais/mmlu"
    licence: ClassVar[str] = "MIT"
    set: Literal["mmlu"] = "mmlu"
    subjects: tuple[Subject, ...] = ()
    """Only these, of validation and test; there is no train split then. None named: all."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        files = {"validation": ("all/validation-*.parquet",), "test": ("all/test-*.parquet",)}
        return files if self.subjects else {"train": ("all/auxiliary_train-*.parquet",), **files}

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def entry(self, values: Mapping[str, Any]) -> Entry | None:
        subject = str(values["subject"])
        if self.subjects and subject not in self.subjects:
            return None
        options, answer = texts(values, "choices"), whole(values, "answer")
        if len(options) != 4 or not 0 <= answer < 4:
            raise ValueError("it has not four options and the number of the right one")
        asked = choice_question(text(values, "question"), options)
        return Entry(asked, ascii_uppercase[answer], content_id(asked), {"family": subject or "auxiliary"})
