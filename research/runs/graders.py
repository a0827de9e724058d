"""How far our graders agree with others' verdicts: on hand-written cases, and on recorded answers of real models.

DATA=FOLDER python runs/graders.py [--sample N] [--examples N]

FOLDER holds grader_cases/*.jsonl, zeroeval/*.parquet and mmlu_pro/*.parquet. Recorded answers are graded again from the
text of the response, all of them or a sample of N for each task; nothing of the recorded extraction is used, but to
say of what class a difference is. The figures in docs/graders.md come from here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from podium.files.tables import read_rows
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.extraction import extract
from podium.tasks.graders.latex import expression
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.task import Grade

Row = Mapping[str, Any]
OPTIONS = {"precision": "decimals", "strict": "strict", "allow_set_relation_comp": "relations_as_sets"}
TOGETHER = 64


def cases(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The cases of each source, by its file's name."""
    return {
        file.stem: [row.values for row in read_rows(file)]
        for file in sorted((folder / "grader_cases").glob("*.jsonl"))
    }


async def agrees(row: Row, math: Callable[..., Math]) -> bool:
    """Whether a case comes out as its source expects; `math` makes the grader from settings."""
    if "function" in row:
        return await _extracts(row, math())
    settings = {OPTIONS[key]: value for key, value in (row.get("options") or {}).items()}
    if row.get("match_types") == ["latex"]:
        settings["answer"] = "formula"
    grade = await math(**settings)(row["prediction"] or "", row["gold"])
    return grade.correct == row["expected"]


async def _extracts(row: Row, math: Math) -> bool:
    """Whether what the source extracts is what we find: the same text, or graded as the same value."""
    text, expected = row["args"][0] or "", row["expected_value"]
    if row["function"] == "extract_boxed":
        return (extract(text, "boxed") or "") == expected
    if row["function"] == "extract_gsm8k_final_answer":
        return Numeric(answer="hashes").judge(text, expected).correct
    if expected in (None, []):
        said = expression(extract(text, "stated") or "")
        return said is None or said.words
    gold = ", ".join(expected) if isinstance(expected, list) else str(expected)
    return (await math(text, gold)).correct


class Maths:
    """One grader for each setting, so that processes are started once."""

    def __init__(self, *, defaults: bool) -> None:
        self._defaults = defaults
        self._made: dict[str, Math] = {}

    def __call__(self, **settings: Any) -> Math:
        wanted = {} if self._defaults else settings
        return self._made.setdefault(json.dumps(wanted, sort_keys=True), Math(**wanted))


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    row: Row
    agrees: bool
    """With the settings that its source used."""
    agrees_by_default: bool


async def outcomes(folder: Path) -> dict[str, list[Outcome]]:
    """What came of the cases of each source."""
    by_row, by_default = Maths(defaults=False), Maths(defaults=True)
    return {
        source: [Outcome(row, await agrees(row, by_row), await agrees(row, by_default)) for row in rows]
        for source, rows in cases(folder).items()
    }


def tell(source: str, found: list[Outcome]) -> None:
    """Print the agreement with a source, and where it ends."""
    told, plain = sum(one.agrees for one in found), sum(one.agrees_by_default for one in found)
    print(f"{source}: {told} of {len(found)} as the source expects, {plain} with our defaults alone")
    for one in found:
        if not one.agrees or not one.agrees_by_default:
            which = "differs with our defaults" if one.agrees else "differs"
            print(f"    {which}: {_short(one.row)}{' SUSPECT' if one.row.get('suspect') else ''}")


def _short(row: Row) -> str:
    said = row.get("prediction") if "function" not in row else row["args"][0]
    wanted = row.get("gold") if "function" not in row else row["expected_value"]
    return f"{said!r:.70} for {wanted!r:.50}, expected {row.get('expected', 'that')}"


async def grade_all(grader: GraderSettings, rows: list[Row], golds: Mapping[str, str]) -> list[Grade]:
    grades: list[Grade] = []
    for start in range(0, len(rows), TOGETHER):
        asked: list[Awaitable[Grade]] = [
            grader(row["response"], golds[row["qid"]]) for row in rows[start : start + TOGETHER]
        ]
        grades += await asyncio.gather(*asked)
    return grades


async def compare_recorded(folder: Path, task: str, sample: int | None, examples: int) -> dict[str, float]:
    """Grade recorded responses again, and print the agreement; what it is, for each kind of grader."""
    golds = {
        row.values["qid"]: row.values["gold"]
        for row in read_rows(folder / f"zeroeval/questions_{task}.parquet")
    }
    rows: list[Row] = [row.values for row in read_rows(folder / f"zeroeval/responses_{task}.parquet")]
    if sample is not None and sample < len(rows):
        rows = Random(f"zeroeval/{task}").sample(rows, sample)
    agreement: dict[str, float] = {}
    for grader in (Math(), Numeric()):
        started = time.monotonic()
        grades = await grade_all(grader, rows, golds)
        seconds = time.monotonic() - started
        agreed = sum(grade.correct == row["correct"] for grade, row in zip(grades, rows, strict=True))
        agreement[grader.kind] = agreed / len(rows)
        print(
            f"zeroeval {task}, {grader.kind}: {agreement[grader.kind]:.2%} of {len(rows)} recorded verdicts, "
            f"{len(rows) / seconds:.0f} answers a second"
        )
        if isinstance(grader, Math):
            await _explain(rows, grades, golds, examples)
    return agreement


async def _explain(rows: list[Row], grades: list[Grade], golds: Mapping[str, str], examples: int) -> None:
    """The differences by class: was another place read, or the same answer judged in another way?"""
    classes: dict[str, list[str]] = defaultdict(list)
    whole = Math(answer="whole")
    for row, grade in zip(rows, grades, strict=True):
        if grade.correct == row["correct"]:
            continue
        gold, verdict = golds[row["qid"]], "right" if grade.correct else "wrong"
        if row["answer"] is None:
            label = "the recording found no answer"
        elif (await whole(row["answer"], gold)).correct == row["correct"]:
            label = "another statement in the response counts"
        else:
            label = "the same answer is judged in another way"
        shown = f"{row['answer']!r:.60} was recorded, we found {grade.found!r:.40}, gold {gold}"
        classes[f"{label}, {verdict} by us"].append(shown)
    for label, found in sorted(classes.items(), key=lambda pair: -len(pair[1])):
        print(f"    {len(found):4} {label}")
        for shown in found[:examples]:
            print(f"             {shown}")


def compare_letters(folder: Path) -> None:
    """MMLU-Pro's recording holds the letter that was found, and no text: only the comparison can be checked."""
    golds = {
        row.values["question_id"]: row.values["answer"]
        for row in read_rows(folder / "mmlu_pro/questions.parquet")
    }
    grader = Choice()
    outcomes: Counter[tuple[str, bool]] = Counter()
    for row in read_rows(
        folder / "mmlu_pro/results.parquet", ("question_id", "pred", "correct", "same_item")
    ):
        letter, gold = row.values["pred"], golds[row.values["question_id"]]
        correct = letter is not None and grader.judge(f"Answer: {letter}", gold).correct
        wording = "the same wording" if row.values["same_item"] else "an older wording"
        outcomes[wording, correct == row.values["correct"]] += 1
    total, agreed = sum(outcomes.values()), sum(n for (_, same), n in outcomes.items() if same)
    print(f"mmlu_pro, choice, by the recorded letter: {agreed / total:.2%} of {total} recorded verdicts")
    for (wording, same), count in sorted(outcomes.items()):
        print(f"    {count:6} {'agree' if same else 'differ'}, {wording}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sample", type=int, help="answers of each recorded task; all unless given")
    parser.add_argument("--examples", type=int, default=2, help="of each class of differences")
    options = parser.parse_args()
    data = os.environ.get("DATA")
    if not data:
        print("DATA is not set: name the folder that holds grader_cases, zeroeval and mmlu_pro in it.")
        return
    for source, found in (await outcomes(Path(data))).items():
        tell(source, found)
    for task in ("gsm", "math-l5"):
        await compare_recorded(Path(data), task, options.sample, options.examples)
    compare_letters(Path(data))


if __name__ == "__main__":
    asyncio.run(main())
