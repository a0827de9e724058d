"""Imports a `result_dirs/<task>` folder of ZeroEval: one JSON list of records for each model.

Records have no scores, so answers are graded here by two rules. The recording keeps the stricter one: the same number,
or the same text without its LaTeX markup. The source's own rule, by which the first numbers of both answers are equal,
must give the accuracy in `<task>.summary.json` next to the folder. Source: WildEval/ZeroEval, Apache-2.0; tasks of
short answers (`gsm`, `math-l5`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Self

from pydantic import Field, TypeAdapter, model_validator

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, split_by_hash
from podium_research.importers.documents import SourceDocument, list_files, read_json

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_QUOTED = re.compile(r'"answer"\s*:\s*"((?:[^"\\]|\\.)*)"')
_BARE = re.compile(r'"?answer"?\s*:\s*([^,\s}]+)')
_MARKUP = re.compile(r"\\(?:text|mathrm|mbox)\{([^{}]*)\}|\\[$%,;!: ]|\\left|\\right|[$%\s]|^\\\(|\\\)$")
_PLAIN = re.compile(r"[+-]?\d{0,40}\.?\d{1,40}(e[+-]?\d{1,3})?(/\d{1,40})?")
_FRACTION = re.compile(r"(-?)(\d*)\\frac\{?(\d+)\}?\{?(\d+)\}?")
_CONTROL_LETTERS = {8: "\\b", 9: "\\t", 12: "\\f", 13: "\\r"}
"""JSON reads a LaTeX command with a single backslash, such as "\\frac", as a control character and "rac". This restores
the command."""


class _Record(SourceDocument):
    id: str
    output: list[str] = Field(min_length=1)
    answer: str
    question: str | None = None
    problem: str | None = None

    @model_validator(mode="after")
    def _has_question(self) -> Self:
        if self.question is None and self.problem is None:
            raise ValueError("it has no question")
        return self


class _Line(SourceDocument):
    Model: str
    Acc: float


_RECORDS, _LINES = TypeAdapter(list[_Record]), TypeAdapter(list[_Line])


def import_zeroeval(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the files of models in `path`.

    Args:
        report: called with the name of each model before its answers are read.

    Raises:
        UsageError: there are no files, or one cannot be read.
    """
    import_report = ImportReport(source="WildEval/ZeroEval", licence="Apache-2.0")
    published = _published(path.parent / f"{path.name}.summary.json")
    for file in list_files(path, "*.json", "one of its folders of short answers, such as result_dirs/gsm"):
        model = file.stem
        report(model)
        records = read_json(file, _RECORDS)
        first_numbers = [_add(record, path.name, model, writer, import_report) for record in records]
        if model in published and records:
            import_report.published[model] = published[model]
            import_report.measured[model] = sum(first_numbers) / len(records)
    return import_report


def _add(
    record: _Record, task: str, model: str, writer: RecordingWriter, import_report: ImportReport
) -> bool:
    """Add one answer; returns whether it is right by the source's own rule."""
    gold = record.answer.replace("#", "").strip()
    text = record.question or record.problem or ""
    question_id = f"{task}/{record.id}"
    full_text = record.output[0]
    answer = extract_json_answer(full_text)
    response = RecordedResponse.from_text(
        model, full_text, answer=answer, score=float(answer is not None and same(answer, gold))
    )
    if not writer.add_question(RecordedQuestion(question_id, text, gold, task, split_by_hash(question_id))):
        import_report.left_out[f"answers of {model} to another wording of a question"] += 1
    elif not writer.add(question_id, response):
        import_report.left_out[f"records of {model} to a question that it answered before"] += 1
    elif len(record.output) > 1:
        import_report.left_out[f"outputs of {model} after the first to a question"] += len(record.output) - 1
    if answer is None:
        return False
    number, gold_number = (_first_number(value) for value in (answer, gold))
    return number is not None and number == gold_number


def extract_json_answer(full_text: str) -> str | None:
    """The value of "answer" in a response that should be a JSON object, but may be faulty, or None if it has no such
    value."""
    for start in (match.start() for match in re.finditer(r"\{", full_text)):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(full_text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "answer" in value:
            answer = value["answer"]
            return None if answer is None else str(answer).translate(_CONTROL_LETTERS)
    if quoted := _QUOTED.findall(full_text):
        return str(quoted[-1]).replace('\\"', '"').replace("\\\\", "\\")
    bare = _BARE.findall(full_text)
    return str(bare[-1]) if bare else None


def same(answer: str, gold: str) -> bool:
    """Whether two short answers say the same: equal numbers, or equal text without its LaTeX markup."""
    bare, bare_gold = _bare(answer), _bare(gold)
    if bare == bare_gold:
        return True
    number = _value(bare)
    return number is not None and number == _value(bare_gold)


def _bare(answer: str) -> str:
    text = answer.strip().rstrip(".")
    box = re.fullmatch(r"\$?\\boxed\{(.*)\}\$?", text)
    bare = _MARKUP.sub(lambda match: match[1] or "", box[1] if box else text)
    return bare.replace("dfrac", "frac").replace("tfrac", "frac").casefold()


def _value(bare: str) -> Fraction | None:
    """The number in a text, written as a decimal, a fraction or a mixed number, or None if the text is no number."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", bare)
    mixed = _FRACTION.fullmatch(plain)
    try:
        if mixed is not None:
            size = int(mixed[2] or 0) + Fraction(int(mixed[3]), int(mixed[4]))
            return -size if mixed[1] else size
        return Fraction(plain) if _PLAIN.fullmatch(plain) else None
    except (ValueError, ZeroDivisionError):
        return None


def _first_number(answer: str) -> float | None:
    plain = answer.replace("$", "").replace(",", "").strip()
    fraction = re.fullmatch(r"(-?\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", plain)
    if fraction and float(fraction[2]):
        return float(fraction[1]) / float(fraction[2])
    match = _NUMBER.search(plain)
    return None if match is None else float(match.group())


def _published(summary: Path) -> dict[str, float]:
    if not summary.is_file():
        return {}
    return {line.Model: line.Acc / 100 for line in read_json(summary, _LINES)}
