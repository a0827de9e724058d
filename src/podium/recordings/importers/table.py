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

import csv
import json
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from podium.config import Settings, load, suggestion
from podium.errors import UsageError
from podium.recordings.gathering import Gathering, split_by_hash
from podium.recordings.importers.findings import Findings
from podium.recordings.model import RecordedQuestion, Response
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
    asked = mapping.questions
    report(str(asked.file.name))
    kept: set[str] = set()
    for row in rows(asked.file, _columns(asked)):
        if not _named(row, asked.where):
            findings.left_out["questions that `where` does not name"] += 1
            continue
        question_id = str(row[asked.id])
        kept.add(question_id)
        gathering.add_question(
            RecordedQuestion(
                question_id,
                _written(asked.text, row),
                _text(row, asked.gold),
                _text(row, asked.family),
                _text(row, asked.split) or split_by_hash(question_id),
            )
        )
    given = mapping.responses
    report(str(given.file.name))
    for row in rows(given.file, _columns(given)):
        question_id = str(row[given.question])
        if not _named(row, given.where):
            findings.left_out["responses that `where` does not name"] += 1
        elif question_id not in kept:
            findings.left_out["responses to questions that are not there"] += 1
        elif not gathering.add(question_id, _read(row, given)):
            findings.left_out["responses whose question, worker and sample came before"] += 1
    return findings


def rows(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table, these columns of each.

    Raises:
        UsageError: the file is missing or not of its kind, or lacks a column.
    """
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file; its path is read from the mapping's folder.")
    readers = {".parquet": _parquet, ".jsonl": _jsonl, ".csv": _csv}
    if file.suffix not in readers:
        raise UsageError(f"{file}: a table is .parquet, .jsonl or .csv; convert it to one of them.")
    try:
        for row in readers[file.suffix](file, columns):
            for column in columns - row.keys():
                raise UsageError(f"{file} has no column {column!r}; {suggestion(column, row)}")
            yield row
    except (ValueError, OSError) as error:
        raise UsageError(f"{file} cannot be read as {file.suffix[1:]}: {error}") from None


def _parquet(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an optional extra

    table = pq.ParquetFile(file)
    for column in columns - set(table.schema_arrow.names):
        raise UsageError(f"{file} has no column {column!r}; {suggestion(column, table.schema_arrow.names)}")
    for batch in table.iter_batches(batch_size=2048, columns=sorted(columns)):
        yield from batch.to_pylist()


def _jsonl(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("a line is not an object")
                yield row


def _csv(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _columns(named: QuestionColumns | ResponseColumns) -> set[str]:
    """All columns that a mapping reads from one file."""
    values = named.model_dump(exclude={"file", "where"}, exclude_none=True)
    text = values.pop("text", None)
    columns = set(values.values())
    if text is not None:
        columns |= set(_fields(text)) or {text}
    return columns | named.where.keys()


def _named(row: dict[str, Any], where: dict[str, str | int | float | bool]) -> bool:
    return all(_equal(row[column], wanted) for column, wanted in where.items())


def _equal(value: Any, wanted: str | int | float | bool) -> bool:
    """Whether a cell holds what is wanted; in a CSV every cell is text."""
    if isinstance(value, str) and not isinstance(wanted, str):
        try:
            return _as_number(value) == wanted
        except ValueError:
            return False
    return bool(value == wanted)


def _fields(template: str) -> list[str]:
    return [field for _, field, _, _ in string.Formatter().parse(template) if field]


def _written(template: str, row: dict[str, Any]) -> str:
    """A column, or a template filled in; a list becomes lettered lines."""
    if not _fields(template):
        return str(row[template])

    def show(value: Any) -> str:
        if isinstance(value, list):
            return "\n".join(f"({chr(65 + place)}) {item}" for place, item in enumerate(value))
        return str(value)

    return template.format(**{field: show(row[field]) for field in _fields(template)})


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


def _read(row: dict[str, Any], given: ResponseColumns) -> Response:
    try:
        response = _response(row, given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{given.file} holds what is no number where one is needed: {error}.") from None
    if response.score is not None and not 0 <= response.score <= 1:
        raise UsageError(f"{given.file} holds the score {response.score:g}; scores are from 0 to 1.")
    return response


def _response(row: dict[str, Any], given: ResponseColumns) -> Response:
    answer = _text(row, given.answer)
    text = _text(row, given.text)
    output_tokens, chars = _count(row, given.output_tokens), _count(row, given.chars)
    estimated = output_tokens is None
    if output_tokens is None and (chars is not None or text is not None):
        output_tokens = -(-chars // 4) if chars is not None else estimate_tokens(text or "")
    if text is None:
        text = "" if answer is None else f"<answer>{answer}</answer>"
    return Response(
        str(row[given.worker]),
        _count(row, given.sample) or 0,
        text,
        answer,
        _number(row, given.score),
        _count(row, given.input_tokens),
        output_tokens,
        estimated and output_tokens is not None,
        _number(row, given.seconds),
    )
