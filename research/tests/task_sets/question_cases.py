"""Small datasets of questions with a short answer, each as the hub has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import pyarrow as pa

from hub_files import TEXT, WHOLE, Case, Rows, Said, Table, ends
from podium_research.task_sets.math_sets import AIME, GSM8K, MATH, MATH500, Subject
from podium_research.task_sets.rlpr import RLPR


def said_by(answers: Mapping[str, str]) -> Said:
    """The answer to the question that a task's text begins with."""
    return lambda task: next(said for asked, said in answers.items() if task.question.text.startswith(asked))


NUMBER_WRONG = (
    ends("Answer: 4711"),
    ends("\\boxed{{4711}}"),
    ends("Answer: {gold} or 4711"),
    ends("Answer: 4711, {gold}, 12"),
    ends("\\boxed{{4711, {gold}, 12}}"),
    ends("Answer: it is one of the numbers from 0 to 999"),
)


def gsm8k() -> Case:
    rows: Rows = [
        {
            "question": "Ann has 3 bags of 4 pears. How many pears?",
            "answer": "3*4=<<3*4=12>>12 pears.\n#### 12",
        },
        {
            "question": "A shop sells 1,200 pens twice over. How many?",
            "answer": "It is <<1200*2=2400>>.\n#### 2,400",
        },
        {"question": "Who has no answer?", "answer": "Nobody knows."},
        {"question": None, "answer": "#### 3"},
    ]
    train: Rows = [
        {"question": "Ben walks 5 miles a day. How far in 6 days?", "answer": "5*6=<<5*6=30>>30.\n#### 30"},
        {"question": "ANN has 3 bags of 4 pears: how many pears?", "answer": "Twelve.\n#### 12"},
    ]
    columns = {"question": TEXT, "answer": TEXT}
    return Case(
        GSM8K(),
        {
            "openai/gsm8k/main/train-00000-of-00001.parquet": Table(columns, train),
            "openai/gsm8k/main/test-00000-of-00001.parquet": Table(columns, rows),
        },
        {"train": 1, "test": 2},
        said_by({"Ann": "So\nAnswer: 12", "A shop": "Answer: $2,400", "Ben": "5*6 is 30.\nAnswer: 30 "}),
        NUMBER_WRONG,
        {"test": ("no answer behind ####", "question holds no text")},
    )


def math() -> Case:
    columns = {"problem": TEXT, "level": TEXT, "type": TEXT, "solution": TEXT}

    def row(
        problem: str, solution: str | None, level: str = "Level 3", type_: str = "Algebra"
    ) -> dict[str, Any]:
        return {"problem": problem, "level": level, "type": type_, "solution": solution}

    train = [
        row("What is half of the number $9$?", "It is $9/2$, so $\\boxed{\\frac{9}{2}}$.", "Level 1"),
        row(
            "Name twice the number $8$.",
            f"The number is \\boxed{{8}}. {'Now we take it twice, as we are told to do. ' * 3}So \\boxed 16.",
        ),
        row("Expand the product $(x+1)^2$.", "We get $\\fbox{x^2+2x+1}$.", "Level 5"),
        row("For which ducks $x$ is $x<2$?", "All of $\\boxed{(-\\infty,2)}$.", "Level ?"),
        row("Find  what stands in   both SPLITS.", "It is $\\boxed{5}$."),
        row("Where is the box?", "There is none."),
        row("Who lost the solution?", None),
    ]
    test = [
        row("Find what stands in both splits.", "It is $\\boxed{5}$.", "Level 5"),
        row("Expand the product $(x-1)^2$.", "We get $\\boxed{x^2-2x+1}$."),
        row("Expand the product $(x+1)^2$ for \\$5.", "We get $\\boxed{x^2+2x+1}$."),
    ]
    nothing: Mapping[str, list[dict[str, Any]]] = {subject: [] for subject in get_args(Subject)}
    six = row("What is $2$ times $3$?", "$\\boxed{6}$", type_="Precalculus")
    files = {
        "train": {**nothing, "algebra": train},
        "test": {**nothing, "algebra": test, "precalculus": [six]},
    }
    answers = {
        one["problem"]: one["solution"] for both in files.values() for rows in both.values() for one in rows
    }
    return Case(
        MATH(),
        {
            f"EleutherAI/hendrycks_math/{subject}/{split}-00000-of-00001.parquet": Table(columns, rows)
            for split, both in files.items()
            for subject, rows in both.items()
        },
        {"train": 4, "test": 4},
        said_by(
            {asked: said.replace("\\boxed 16", "\\boxed{16}") for asked, said in answers.items() if said}
        ),
        (
            ends("\\boxed{{4711}}"),
            ends("\\boxed{{4711, {gold}}}"),
            ends("\\boxed{{{gold}}} or \\boxed{{4711}}"),
            ends("The answer is 4711."),
        ),
        {"train": ("has no boxed answer", "solution holds no text")},
    )


def math500() -> Case:
    columns = dict.fromkeys(("problem", "solution", "answer", "subject", "level", "unique_id"), TEXT)
    rows = [
        {
            "problem": "Write $0.5$ as a fraction.",
            "solution": "It is $\\boxed{\\frac{1}{2}}$.",
            "answer": "\\frac{1}{2}",
            "subject": "Prealgebra",
            "level": 2,
            "unique_id": "test/prealgebra/7.json",
        },
        {
            "problem": "Convert $(0,3)$ to polar coordinates.",
            "solution": "We get $\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}$.",
            "answer": "\\left( 3, \\frac{\\pi}{2} \\right)",
            "subject": "Precalculus",
            "level": 5,
            "unique_id": "test/precalculus/807.json",
        },
    ]
    broken = [
        {**rows[0], "unique_id": "test/prealgebra/8.json", "answer": ""},
        {**rows[0], "unique_id": "test/prealgebra/9.json", "level": "hard"},
        dict(rows[0]),
        {column: value for column, value in rows[0].items() if column != "problem"},
    ]
    return Case(
        MATH500(),
        {"HuggingFaceH4/MATH-500/test.jsonl": Table(columns, [*rows, *broken])},
        {"test": 2},
        said_by({str(row["problem"]): str(row["solution"]) for row in rows}),
        (
            ends("\\boxed{{\\frac{{47}}{{11}}}}"),
            ends("\\boxed{{{gold}}} and \\boxed{{\\frac{{1}}{{3}}}}"),
            ends("It cannot be said."),
        ),
        {
            "test": (
                "answer holds no text",
                "level holds no whole number",
                "came before",
                "no column 'problem'",
            )
        },
    )


def aime(year: int) -> Case:
    problems = {"Find the number of ways home.": "025", "Find the angle of the roof in degrees.": "336"}
    wrong = (*NUMBER_WRONG, ends("Answer: 025336"))
    broken = ("no whole number from 0 to 999", "problem holds no text")
    if year == 2024:
        columns = {"id": WHOLE, **dict.fromkeys(("problem", "solution", "answer", "url", "year"), TEXT)}
        rows: list[dict[str, Any]] = [
            {
                "id": 60 + n,
                "problem": asked,
                "solution": f"So $\\boxed{{{said}}}$.",
                "answer": said,
                "year": "2024",
            }
            for n, (asked, said) in enumerate(problems.items())
        ]
        rows += [{**rows[0], "id": 70, "answer": "1/2"}, {**rows[0], "id": 71, "problem": None}]
        name = "HuggingFaceH4/aime_2024/data/train-00000-of-00001.parquet"
    else:
        columns = dict.fromkeys(("problem", "answer", "id"), TEXT)
        rows = [
            {"problem": asked, "answer": said.replace("336", "336^\\circ").replace("025", "25"), "id": str(n)}
            for n, (asked, said) in enumerate(problems.items())
        ]
        rows += [{**rows[0], "id": "8", "answer": "1000"}, {**rows[0], "id": "9", "problem": ""}]
        name = "math-ai/aime25/test.jsonl"
    return Case(
        AIME(year=year),
        {name: Table(columns, rows)},
        {"test": 2},
        said_by({asked: f"So it is $\\boxed{{{said}}}$." for asked, said in problems.items()}),
        wrong,
        {"test": broken},
    )


def rlpr() -> Case:
    turns = pa.list_(pa.struct([("content", TEXT), ("role", TEXT)]))
    judged = pa.struct([("ground_truth", TEXT), ("style", TEXT)])
    more = pa.struct([("answer_type", TEXT), ("split", TEXT)])
    columns = {
        "data_source": TEXT,
        "prompt": turns,
        "ability": TEXT,
        "reward_model": judged,
        "extra_info": more,
        "uid": TEXT,
        "__index_level_0__": WHOLE,
    }
    system = {"content": "The answer is enclosed within <answer> </answer> tags.", "role": "system"}

    def row(question: str, gold: str | None, ability: str = "Physics") -> dict[str, Any]:
        return {
            "data_source": "WebInstruct-verified",
            "prompt": [system, {"content": question, "role": "user"}],
            "ability": ability,
            "reward_model": {"ground_truth": gold, "style": "rule"},
            "extra_info": {"answer_type": "String", "split": "train"},
            "uid": f"uid of {question}",
            "__index_level_0__": 3,
        }

    train = [
        row("How heavy is the duck?", "12.5 kg"),
        row("What is the slope of the hill?", "-\\frac{1}{2}"),
        row("What becomes of the demand for ducks?", "It decreases", "Economics"),
        row("Who built the bridge?", "Isambard Brunel", "History"),
        row("Is the bridge one of stone?", "No", "History"),
        row("Which duck is it? A. Ada B. Bob", "B", "Biology"),
        row("Why are there ducks?", "Because somebody once left the gate to the pond wide open"),
        row("Who has no reference?", None),
        {**row("Who is not asked?", "1"), "prompt": [system]},
    ]
    test = [
        row("Which duck is it? A. Ada B. Bob", "B", "Biology"),
        row("Which pond is deep? A. Ours B. Theirs", "A"),
    ]
    answers = {row["prompt"][-1]["content"]: row["reward_model"]["ground_truth"] for row in (*train, *test)}
    return Case(
        RLPR(),
        {
            "openbmb/RLPR-Train-Dataset/rlpr_train.parquet": Table(columns, train),
            "openbmb/RLPR-Evaluation/WebInstruct-verified-val_Avg2.parquet": Table(columns, test),
        },
        {"train": 5, "test": 2},
        said_by({asked: f"<think>Hm.</think>\nAnswer: {said}" for asked, said in answers.items()}),
        (
            ends("Answer: 4711 miles"),
            ends("Answer: {gold} or 4711"),
            ends("Answer: either {gold} or 4711, if not both"),
            ends("Answer: the opposite"),
        ),
        {"train": ("only a judge", "ground_truth holds no text", "no user turn")},
    )


CASES: Mapping[str, Callable[[], Case]] = {
    "gsm8k": gsm8k,
    "math": math,
    "math-500": math500,
    "aime-2024": lambda: aime(2024),
    "aime-2025": lambda: aime(2025),
    "rlpr": rlpr,
}
