"""Imports any table, parquet, JSONL or CSV, whose columns a TOML file names.

name = "my recording"
source = "where it is from, with the version"
licence = "Apache-2.0"

[questions]
file = "questions.parquet"          # beside the TOML file
id = "qid"
text = "question"                   # a column, or a template: "{question}\\n{options}"; lists become (A), (B), ...
gold = "expected_answer"
where = { difficulty = "hard" }     # other rows are left out

[responses]
file = "responses.parquet"          # may be the same file
question = "qid"
worker = "model"
text = "response"
score = "score"                     # a number in [0, 1], or true and false
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from podium.config import Settings, load
from podium.errors import UsageError
from podium.recordings.gathering import Gathering, split_by_hash
from podium.recordings.importers.findings import Findings
from podium.recordings.model import RecordedQuestion, Response
from podium.rows import read_rows
from podium.template import columns, empty, equals, filled
from podium.types import estimate_tokens


class QuestionColumns(Settings):
    """Where questions stand."""

    file: Path
    id: str
    text: str
    gold: str | None = None
    family: str | None = None
    split: str | None = None
    """None: by a hash of the id."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows are kept whose columns have these values."""


class ResponseColumns(Settings):
    """Where responses stand."""

    file: Path
    question: str
    """The question's id."""
    worker: str
    sample: str | None = None
    """Any numbers, such as seeds: samples are counted from 0 in their order. None: one of each worker to a question."""
    text: str | None = None
    """None: only answers are known."""
    answer: str | None = None
    score: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    chars: str | None = None
    """Length of the whole response, where `text` is cut; tokens are estimated from it."""
    seconds: str | None = None
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows are kept whose columns have these values."""


class Mapping(Settings):
    """Which column is what."""

    name: str = Field(min_length=1)
    source: str = ""
    licence: str = ""
    questions: QuestionColumns
    responses: ResponseColumns


def read_mapping(path: Path, folder: Path | None = None) -> Mapping:
    """The mapping in a TOML file; its paths are seen from `folder`, by default its own.

    Raises:
        ConfigError: it cannot be used, in one sentence.
    """
    mapping = load(path, Mapping)

    def beside(file: Path) -> dict[str, Path]:
        return {"file": (folder or path.parent) / file}

    return mapping.model_copy(
        update={
            "questions": mapping.questions.model_copy(update=beside(mapping.questions.file)),
            "responses": mapping.responses.model_copy(update=beside(mapping.responses.file)),
        }
    )


def gather_table(mapping: Mapping, gathering: Gathering, report: Callable[[str], None]) -> Findings:
    """Read the tables that `mapping` names.

    Raises:
        UsageError: a file or a column that is not there, or a value that is not what it should be.
    """
    findings = Findings(source=mapping.source, licence=mapping.licence)
    report(str(mapping.questions.file.name))
    one_wording = _gather_questions(mapping.questions, gathering, findings)
    report(str(mapping.responses.file.name))
    _gather_responses(mapping, one_wording, gathering, findings)
    return findings


def _gather_questions(asked: QuestionColumns, gathering: Gathering, findings: Findings) -> dict[str, bool]:
    """Keep the questions; by id, whether the table has it in one wording alone, of which the first is kept."""
    one_wording: dict[str, bool] = {}
    for row in rows(asked.file, _columns(asked)):
        if not _named(row, asked.where):
            findings.left_out["questions that `where` does not name"] += 1
        elif empty(row[asked.id]):
            findings.left_out["questions without an id"] += 1
        else:
            question_id = str(row[asked.id])
            question = RecordedQuestion(
                question_id,
                _question(asked, row),
                _text(row, asked.gold),
                _text(row, asked.family),
                _text(row, asked.split) or split_by_hash(question_id),
            )
            fits = gathering.add_question(question)
            one_wording[question_id] = fits and one_wording.get(question_id, True)
    return one_wording


def _gather_responses(
    mapping: Mapping, one_wording: dict[str, bool], gathering: Gathering, findings: Findings
) -> None:
    asked, given = mapping.questions, mapping.responses
    named = _columns(given)
    # Rows that hold both say which wording they answer.
    both = not all(one_wording.values()) and given.file.resolve() == asked.file.resolve()
    if both:
        named |= _columns(asked)

    def fits(question_id: str, row: dict[str, Any]) -> bool:
        if one_wording[question_id]:
            return True
        if not both or not _named(row, asked.where):
            return False
        return not gathering.words_otherwise(question_id, _question(asked, row))

    for row in rows(given.file, named):
        question_id = None if empty(row[given.question]) else str(row[given.question])
        if not _named(row, given.where):
            findings.left_out["responses that `where` does not name"] += 1
        elif question_id is None or question_id not in one_wording:
            findings.left_out["responses to questions that are not there"] += 1
        elif empty(row[given.worker]):
            findings.left_out["responses without a worker"] += 1
        elif not fits(question_id, row):
            findings.left_out["answers to another wording of a question"] += 1
        elif not gathering.add(question_id, _read(row, given)):
            findings.left_out["responses whose question, worker and sample came before"] += 1


def rows(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table, these columns of each.

    Raises:
        UsageError: the file is missing or not of its kind, lacks a column, or has a line that cannot be read.
    """
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file; its path is read from the mapping's folder.")
    for row in read_rows(file, columns):
        if row.complaint:
            raise UsageError(f"{file.parent / row.place}: {row.complaint}; mend that line.")
        yield row.values


def _columns(named: QuestionColumns | ResponseColumns) -> set[str]:
    """All columns that a mapping reads from one file."""
    values = named.model_dump(exclude={"file", "where"}, exclude_none=True)
    text = values.pop("text", None)
    shown = () if text is None else columns(text)
    return {*values.values(), *shown, *named.where}


def _named(row: dict[str, Any], where: dict[str, str | int | float | bool]) -> bool:
    return all(equals(row[column], wanted) for column, wanted in where.items())


def _question(asked: QuestionColumns, row: dict[str, Any]) -> str:
    try:
        return filled(asked.text, row)
    except ValueError as error:
        raise UsageError(f"{asked.file} holds a question that cannot be written: {error}.") from None


def _text(row: dict[str, Any], column: str | None) -> str | None:
    value = None if column is None else row[column]
    return None if value is None else str(value)


def _number(row: dict[str, Any], column: str | None) -> float | None:
    value = None if column is None else row[column]
    return None if value is None or value == "" else _as_number(value)


def _as_number(value: Any) -> float:
    words = {"true": 1.0, "false": 0.0}
    if isinstance(value, str) and value.casefold() in words:
        return words[value.casefold()]
    return float(value)


def _count(row: dict[str, Any], column: str | None) -> int | None:
    number = _number(row, column)
    return None if number is None else int(number)


def _tokens(row: dict[str, Any], column: str | None) -> int | None:
    number = _count(row, column)
    if number is not None and not 0 <= number < 2**31:
        raise ValueError(f"{number:g} is no number of tokens")
    return number


def _sample(row: dict[str, Any], column: str | None) -> int:
    number = _count(row, column) or 0
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number:g} is too large for a sample")
    return number


def _read(row: dict[str, Any], given: ResponseColumns) -> Response:
    try:
        response = _response(row, given)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{given.file} holds what is no number where one is needed: {error}.") from None
    if response.score is not None and not 0 <= response.score <= 1:
        raise UsageError(f"{given.file} holds the score {response.score:g}; scores are from 0 to 1.")
    return response


def _response(row: dict[str, Any], given: ResponseColumns) -> Response:
    answer = _text(row, given.answer)
    text = _text(row, given.text)
    output_tokens, chars = _tokens(row, given.output_tokens), _tokens(row, given.chars)
    estimated = output_tokens is None
    if output_tokens is None and (chars is not None or text is not None):
        output_tokens = -(-chars // 4) if chars is not None else estimate_tokens(text or "")
    if text is None:
        text = "" if answer is None else f"<answer>{answer}</answer>"
    return Response(
        str(row[given.worker]),
        _sample(row, given.sample),
        text,
        answer,
        _number(row, given.score),
        _tokens(row, given.input_tokens),
        output_tokens,
        estimated and output_tokens is not None,
        _number(row, given.seconds),
    )
