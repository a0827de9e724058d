"""Multiple-choice benchmarks: MMLU, MMLU-Pro and GPQA. The docstring of each names its source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from podium.plugin_api.tasks import GraderSettings, Sample
from podium.recordings import split_by_hash
from podium.tasks.graders.choice import Choice
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import LoadedSplit
from podium.tasks.sets.prompts import CHOICE, content_id
from podium.tasks.task import SPLITS
from podium_research.task_sets.hub import HubSet, int_column, list_column, text_column


def choice_question(question: str, options: Sequence[str]) -> str:
    """The prompt of a question with options, lettered from A."""
    listed = "\n".join(
        f"{letter}. {option.strip()}" for letter, option in zip(ascii_uppercase, options, strict=False)
    )
    return CHOICE.format(question=question.strip(), options=listed)


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
    """MMLU: questions of 57 subjects with four options each.

    Source: `cais/mmlu` on the hub (Hendrycks et al. 2021, arXiv 2009.03300), MIT. Splits: train (`auxiliary_train`,
    99,842), validation (1,531) and test (14,042); the five examples a subject of `dev` are left out. Asked for the
    letter with no examples, where the authors give five; graded as a letter.
    Trap: `auxiliary_train` is not MMLU. It was taken from ARC, MC_TEST, OBQA and RACE, has no subjects, and often a
    page of text before the question; a model trained on it cannot be measured on those. Its own folder nests its
    columns one deeper.
    """

    source: ClassVar[str] = "cais/mmlu"
    licence: ClassVar[str] = "MIT"
    set: Literal["mmlu"] = "mmlu"
    subjects: tuple[Subject, ...] = ()
    """The subjects that are used, of validation and test; there is no train split then. None named: all."""

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        files = {"validation": ("all/validation-*.parquet",), "test": ("all/test-*.parquet",)}
        return files if self.subjects else {"train": ("all/auxiliary_train-*.parquet",), **files}

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        subject = str(values["subject"])
        if self.subjects and subject not in self.subjects:
            return None
        options, answer = list_column(values, "choices"), int_column(values, "answer")
        if len(options) != 4 or not 0 <= answer < 4:
            raise ValueError("it has not four options and the number of the right one")
        prompt = choice_question(text_column(values, "question"), options)
        return Sample(prompt, ascii_uppercase[answer], content_id(prompt), {"family": subject or "auxiliary"})


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
    """MMLU-Pro: harder questions of fourteen categories with up to ten options each.

    Source: `TIGER-Lab/MMLU-Pro` on the hub (Wang et al. 2024, arXiv 2406.01574), MIT. Splits: validation (70, which
    the authors show as examples) and test (12,032). Options `N/A` are left out, as the authors do. Asked for the
    letter with no examples, where the authors give five; graded as a letter, and what names none is wrong, where the
    authors guess.
    """

    source: ClassVar[str] = "TIGER-Lab/MMLU-Pro"
    licence: ClassVar[str] = "MIT"
    set: Literal["mmlu-pro"] = "mmlu-pro"
    categories: tuple[Category, ...] = ()
    """The categories that are used; none named: all."""
    divided: bool = False
    """Whether the test questions are divided by a hash of their text, to train on them: 70 % are train, 15 % validation
    and 15 % test. The authors' validation questions are left out."""

    @property
    def label(self) -> str:
        return "mmlu-pro-divided" if self.divided else self.set

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {split: (f"data/{split}-*.parquet",) for split in ("validation", "test")}

    @property
    def source_splits(self) -> tuple[str, ...]:
        return SPLITS if self.divided else super().source_splits

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        if not self.divided:
            return super().read_splits(splits)
        whole = self._read("test")
        of = {task.id: split_by_hash(question_key(task.question.text)) for task in whole.tasks}
        return {
            split: LoadedSplit(tuple(task for task in whole.tasks if of[task.id] == split), whole.skipped)
            for split in splits
        }

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        category = text_column(values, "category")
        if self.categories and category not in self.categories:
            return None
        listed = list_column(values, "options")
        index = int_column(values, "answer_index")
        if not 0 <= index < len(listed) or listed[index] == "N/A":
            raise ValueError("none of its options is the right one")
        options = [option for option in listed if option != "N/A"]
        # By its index, not by the file's letter: an option left out before it moves it up.
        gold = ascii_uppercase[index - listed[:index].count("N/A")]
        facts = {"family": category, "source": text_column(values, "src")}
        return Sample(
            choice_question(text_column(values, "question"), options),
            gold,
            str(int_column(values, "question_id")),
            facts,
        )


_RIGHT = "Correct Answer"
_WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


class GPQA(HubSet):
    """GPQA: questions of biology, physics and chemistry that their writers' colleagues can answer and the web cannot.

    Source: `Idavidrein/gpqa` on the hub (Rein et al. 2023, arXiv 2311.12022), CC-BY-4.0, gated: accept its terms
    there, then log in with `hf auth login`. Split: test. Subsets: diamond (198) within main (448) within extended
    (546). The source names the right option first, so options are shuffled by a named seed. Asked for the letter;
    graded as a letter.
    Trap: its authors ask that no question is ever published as plain text: keep runs on it private. Its canary is not
    read.
    """

    source: ClassVar[str] = "Idavidrein/gpqa"
    licence: ClassVar[str] = "CC-BY-4.0, gated"
    set: Literal["gpqa"] = "gpqa"
    subset: Literal["diamond", "main", "extended"] = "diamond"
    seed: int = 0
    """Seeds the order of the options."""

    @property
    def label(self) -> str:
        return f"gpqa-{self.subset}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": (f"gpqa_{self.subset}.csv",)}

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        record = text_column(values, "Record ID")
        options = [text_column(values, column) for column in (_RIGHT, *_WRONG)]
        order = list(range(len(options)))
        Random(f"gpqa/{self.seed}/{record}").shuffle(order)
        return Sample(
            choice_question(text_column(values, "Question"), [options[index] for index in order]),
            ascii_uppercase[order.index(0)],
            record,
            {
                "family": text_column(values, "High-level domain"),
                "subdomain": text_column(values, "Subdomain"),
            },
        )
