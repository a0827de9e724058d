"""Small datasets of questions with options, each as the hub has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hub_files import TEXT, TEXTS, WHOLE, Case, Table, ends, letter_of, options_of
from podium.tasks.task import Task
from podium_research.task_sets.choice_sets import GPQA, MMLU, MMLUPro

LETTER_WRONG = (
    lambda task: f"Answer: {next(letter for letter in options_of(task) if letter != task.gold)}",
    lambda task: f"Answer: {', '.join(options_of(task))}",
    lambda task: f"Answer: {' or '.join(options_of(task))}",
    lambda task: "\n".join(f"Answer: {letter}" for letter in options_of(task) if letter != task.gold),
    ends("Answer: none of these"),
)


def mmlu() -> Case:
    columns = {"question": TEXT, "subject": TEXT, "choices": TEXTS, "answer": WHOLE}

    def row(
        question: str | None, choices: Sequence[str], answer: int, subject: str = "anatomy"
    ) -> dict[str, Any]:
        return {"question": question, "subject": subject, "choices": choices, "answer": answer}

    bones = ["The femur", "The stapes", "The ulna", "The patella"]
    test = [
        row("Which bone is the smallest?", bones, 1),
        row("Find the degree of Q(sqrt(2) + sqrt(3)) over Q.", ["0", "4", "2", "6"], 1, "abstract_algebra"),
        row("Find the degree of Q(sqrt(2) * sqrt(3)) over Q.", ["0", "4", "2", "6"], 2, "abstract_algebra"),
        row("Which bone has five options?", [*bones, "None"], 1),
        row("Which bone is the fifth?", bones, 4),
        row("Which bone has no number?", bones, None),
    ]
    validation = [row("Which bone is the longest?", bones, 0), row("which bone is the Smallest?", bones, 1)]
    auxiliary = [
        row("A page of text.\n\nWho wrote it?", ["Ada", "Bob", "Cyd", "Dan"], 3, ""),
        row("Which bone is the longest?", bones, 0, ""),
    ]
    dev = [row("Which bone is an example?", bones, 2)]
    rows = {"auxiliary_train": auxiliary, "validation": validation, "test": test, "dev": dev}
    nested = {"train": pa.struct(list(columns.items()))}
    answers = {str(one["question"]): one for split in rows.values() for one in split}

    def right(task: Task) -> str:
        row = next(row for asked, row in answers.items() if task.question.text.startswith(asked))
        return f"**Answer: {letter_of(task, row['choices'][row['answer']])}**"

    return Case(
        MMLU(),
        {
            **{
                f"cais/mmlu/all/{s}-00000-of-00001.parquet": Table(columns, listed)
                for s, listed in rows.items()
            },
            "cais/mmlu/auxiliary_train/train-00000-of-00001.parquet": Table(
                nested, [{"train": auxiliary[0]}]
            ),
            "cais/mmlu/anatomy/test-00000-of-00001.parquet": Table(columns, test[:1]),
        },
        {"train": 1, "validation": 1, "test": 3},
        right,
        LETTER_WRONG,
        {"test": ("not four options", "not four options", "answer holds no whole number")},
    )


def mmlu_pro() -> Case:
    columns = {
        "question_id": WHOLE,
        "question": TEXT,
        "options": TEXTS,
        "answer": TEXT,
        "answer_index": WHOLE,
        "cot_content": TEXT,
        "category": TEXT,
        "src": TEXT,
    }

    def row(number: int, options: list[str], answer: int, category: str = "physics") -> dict[str, Any]:
        return {
            "question_id": number,
            "question": f"What is the speed of duck {number}?",
            "options": options,
            "answer": "ABCDEFGHIJ"[answer],
            "answer_index": answer,
            "cot_content": "",
            "category": category,
            "src": "ori_mmlu-college_physics",
        }

    speeds = [f"{n} m/s" for n in range(10)]
    test = [
        row(70, speeds, 8),
        row(71, ["1 m/s", "2 m/s", "3 m/s", "N/A", "N/A"], 1, "law"),
        row(72, ["1 m/s", "N/A", "3 m/s", "4 m/s"], 2, "computer science"),
        row(73, ["1 m/s", "N/A"], 1),
        {**row(74, speeds, 3), "answer_index": 10},
        {**row(75, speeds, 3), "options": None},
        row(70, speeds, 2),
    ]
    validation = [row(0, speeds, 5), {**row(1, speeds, 8), "question": "What is the speed of duck 70?"}]
    rows = [*test, *validation]

    def right(task: Task) -> str:
        number = int(task.id.rpartition("/")[2])
        row = next(row for row in rows if row["question_id"] == number)
        return f"A: Let's think. The answer is ({letter_of(task, row['options'][row['answer_index']])})."

    return Case(
        MMLUPro(),
        {
            "TIGER-Lab/MMLU-Pro/data/test-00000-of-00001.parquet": Table(columns, test),
            "TIGER-Lab/MMLU-Pro/data/validation-00000-of-00001.parquet": Table(columns, validation),
        },
        {"validation": 1, "test": 3},
        right,
        LETTER_WRONG,
        {"test": ("none of its options", "none of its options", "no list of texts", "came before")},
    )


GPQA_COLUMNS = (
    "Pre-Revision Question",
    "Pre-Revision Correct Answer",
    "Pre-Revision Incorrect Answer 1",
    "Question",
    "Correct Answer",
    "Incorrect Answer 1",
    "Incorrect Answer 2",
    "Incorrect Answer 3",
    "Explanation",
    "Subdomain",
    "Writer's Difficulty Estimate",
    "High-level domain",
    "Record ID",
    "Canary String",
)
CANARY = "our own canary, which nobody may ever print"


def gpqa_row(
    record: str, question: str = "Which particle is ours?", right: str = "the muon\n"
) -> dict[str, str]:
    return {
        "Question": question,
        "Correct Answer": right,
        "Incorrect Answer 1": "the pion",
        "Incorrect Answer 2": " the kaon",
        "Incorrect Answer 3": "the tau, the heavy one",
        "Explanation": "Because, and so on.",
        "Subdomain": "Physics (general)",
        "Writer's Difficulty Estimate": "Hard graduate level",
        "High-level domain": "Physics",
        "Record ID": record,
        "Canary String": CANARY,
    }


def gpqa() -> Case:
    rows = [gpqa_row(f"rec{n}", f"Which particle is number {n}?\n") for n in range(12)]
    broken = [gpqa_row("rec90", right=" "), gpqa_row("rec91", question=""), gpqa_row("rec0")]
    columns = dict.fromkeys(GPQA_COLUMNS, TEXT)
    return Case(
        GPQA(),
        {
            "Idavidrein/gpqa/gpqa_diamond.csv": Table(columns, [*rows, *broken]),
            "Idavidrein/gpqa/gpqa_main.csv": Table(columns, [*rows, gpqa_row("rec50")]),
            "Idavidrein/gpqa/gpqa_extended.csv": Table(columns, rows),
            "Idavidrein/gpqa/gpqa_experts.csv": Table({"Expert": TEXT}, [{"Expert": "Ada"}]),
        },
        {"test": 12},
        lambda task: f"The correct answer is ({letter_of(task, 'the muon')}).",
        LETTER_WRONG,
        {"test": ("Correct Answer holds no text", "Question holds no text", "came before")},
    )


CASES: Mapping[str, Callable[[], Case]] = {"mmlu": mmlu, "mmlu-pro": mmlu_pro, "gpqa": gpqa}
