"""Imports any table (parquet, JSONL or CSV).

A TOML file, the mapping, says which column is what: `TableMapping` has its keys. The tables [questions] and [responses]
may name the same file.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from podium.config import Settings, load
from podium.errors import UsageError
from podium.files.tables import (
    Row,
    cell_equals,
    cell_text,
    fill_template,
    is_empty,
    read_rows,
    template_columns,
)
from podium.recordings.importers import ImportReport
from podium.recordings.recording_model import SPLIT_NAMES, RecordedQuestion, RecordedResponse, split_by_hash
from podium.recordings.writer import RecordingWriter
from podium.types import estimate_tokens

_STRAYS = "responses to questions that are not there"
_SCORE = TypeAdapter(Annotated[float, Field(ge=0, le=1)]), "scores are from 0 to 1"
_SECONDS = TypeAdapter(Annotated[float, Field(ge=0, lt=2**31)]), "seconds are from 0 to 2**31"
_COUNT = (
    TypeAdapter(Annotated[int, Field(ge=0, lt=2**31)]),
    "counts are whole numbers from 0, below 2**31",
)
# Whole numbers stay ints, since seeds may have more digits than a float.
_SAMPLE = (
    TypeAdapter(Annotated[int | float, Field(ge=-(2**63), lt=2**63)]),
    "samples are numbers of 64 bits",
)
_WORDS = {"true": 1, "false": 0}


class QuestionColumns(Settings):
    file: Path
    id: str
    text: str
    """A column, or a template such as "{question}\\n{options}", in which lists become (A), (B), ..."""
    gold: str | None = None
    family: str | None = None
    split: str | None = None
    """A column with train, validation (or val, dev) or test. Where it is empty, or None, a hash of the id decides."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows are kept whose columns have these values."""


class ResponseColumns(Settings):
    file: Path
    question: str
    worker: str
    sample: str | None = None
    """A column with any numbers, such as seeds or temperatures; in their order, samples are numbered from 0. Without
    it, each worker has one response to a question."""
    text: str | None = None
    """The column of the whole response. None if there are only answers."""
    answer: str | None = None
    score: str | None = None
    """A column with numbers from 0 to 1, or true and false."""
    input_tokens: str | None = None
    output_tokens: str | None = None
    chars: str | None = None
    """A column with the length of the whole response, for texts that were cut; tokens are estimated from it."""
    seconds: str | None = None
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows are kept whose columns have these values."""


class TableMapping(Settings):
    """The TOML file that says which column is what."""

    name: str = Field(min_length=1)
    source: str = ""
    licence: str = ""
    questions: QuestionColumns
    responses: ResponseColumns


def read_mapping(path: Path, folder: Path | None = None) -> TableMapping:
    """Read a mapping; its paths are relative to `folder`, by default the folder of the TOML file.

    Raises:
        ConfigError: the mapping cannot be used.
    """
    mapping = load(path, TableMapping)

    def located(file: Path) -> dict[str, Path]:
        return {"file": (folder or path.parent) / file}

    return mapping.model_copy(
        update={
            "questions": mapping.questions.model_copy(update=located(mapping.questions.file)),
            "responses": mapping.responses.model_copy(update=located(mapping.responses.file)),
        }
    )


def import_table(
    mapping: TableMapping, writer: RecordingWriter, report: Callable[[str], None]
) -> ImportReport:
    """Read the tables that `mapping` names.

    Raises:
        UsageError: a file or a column does not exist, or a value cannot be used.
    """
    import_report = ImportReport(source=mapping.source, licence=mapping.licence)
    report(str(mapping.questions.file.name))
    one_wording = _add_questions(mapping.questions, writer, import_report)
    report(str(mapping.responses.file.name))
    _add_responses(mapping.responses, one_wording, writer, import_report)
    return import_report


def _add_questions(
    columns: QuestionColumns, writer: RecordingWriter, import_report: ImportReport
) -> dict[str, bool]:
    """Add the questions, each with its first wording; returns by id whether the table has only that wording."""
    one_wording: dict[str, bool] = {}
    for row in _rows(columns.file, _columns(columns)):
        with _naming_row(columns.file, row):
            question_id = _text(row.values, columns.id)
            if not _named(row, columns.where):
                import_report.left_out["questions that `where` does not name"] += 1
            elif question_id is None:
                import_report.left_out["questions without an id"] += 1
            else:
                question = RecordedQuestion(
                    question_id,
                    fill_template(columns.text, row.values),
                    _text(row.values, columns.gold),
                    _text(row.values, columns.family),
                    _split(row.values, columns.split) or split_by_hash(question_id),
                )
                fits = writer.add_question(question)
                one_wording[question_id] = fits and one_wording.get(question_id, True)
    return one_wording


def _add_responses(
    columns: ResponseColumns,
    one_wording: Mapping[str, bool],
    writer: RecordingWriter,
    import_report: ImportReport,
) -> None:
    any_added, stray = False, None
    for row in _rows(columns.file, _columns(columns)):
        with _naming_row(columns.file, row):
            question_id = _text(row.values, columns.question)
            worker = _text(row.values, columns.worker)
            if not _named(row, columns.where):
                import_report.left_out["responses that `where` does not name"] += 1
            elif question_id is None or question_id not in one_wording:
                import_report.left_out[_STRAYS] += 1
                stray = stray or question_id
            elif worker is None:
                import_report.left_out["responses without a worker"] += 1
            elif not one_wording[question_id]:
                import_report.left_out["responses to questions whose id has several wordings"] += 1
            elif not writer.add(
                question_id,
                _response(worker, row.values, columns),
                sample=_number(row.values, columns.sample, _SAMPLE) or 0,
            ):
                import_report.left_out["responses whose question, worker and sample came before"] += 1
            else:
                any_added = True
    if stray and one_wording and not any_added:
        reason = f"{_STRAYS}, as to {reprlib.repr(stray)} where questions have {reprlib.repr(next(iter(one_wording)))}"
        import_report.left_out[reason] = import_report.left_out.pop(_STRAYS)


def _rows(file: Path, columns: set[str]) -> Iterator[Row]:
    if not file.is_file():
        raise UsageError(
            f"{file}: there is no such file; check the path. Paths in a mapping are read from its folder."
        )
    row = None
    for row in read_rows(file, columns, allow_missing=True):
        if row.error:
            raise UsageError(f"{file.parent / row.location}: {row.error}; correct that line.")
        yield row
    if row is None:
        raise UsageError(f"{file} holds no rows; give a table that does.")


def _columns(named: QuestionColumns | ResponseColumns) -> set[str]:
    values = named.model_dump(exclude={"file", "where"}, exclude_none=True)
    text = values.pop("text", None)
    shown = () if text is None else template_columns(text)
    return {*values.values(), *shown, *named.where}


def _named(row: Row, where: dict[str, str | int | float | bool]) -> bool:
    return all(cell_equals(row.values[column], wanted) for column, wanted in where.items())


@contextmanager
def _naming_row(file: Path, row: Row) -> Iterator[None]:
    """Turn a ValueError for a cell into a UsageError that names the file and the line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{file.parent / row.location}: {error}; correct it there.") from None


def _response(worker: str, values: Mapping[str, Any], columns: ResponseColumns) -> RecordedResponse:
    """The response in a row, but for its sample."""
    answer, text = _verbatim(values, columns.answer), _verbatim(values, columns.text)
    output_tokens, chars = (
        _number(values, column, _COUNT) for column in (columns.output_tokens, columns.chars)
    )
    estimated = output_tokens is None and (chars is not None or text is not None)
    if estimated:
        output_tokens = -(-chars // 4) if chars is not None else estimate_tokens(text or "")
    if text is None:
        text = "" if answer is None else f"<answer>{answer}</answer>"
    return RecordedResponse(
        worker,
        0,
        text,
        answer,
        _number(values, columns.score, _SCORE),
        _number(values, columns.input_tokens, _COUNT),
        output_tokens,
        estimated,
        _number(values, columns.seconds, _SECONDS),
    )


def _text(values: Mapping[str, Any], column: str | None) -> str | None:
    """A cell as text: numbers as people write them, lists and objects as JSON; None if the cell is empty."""
    return None if column is None or is_empty(values[column]) else cell_text(values, column)


def _verbatim(values: Mapping[str, Any], column: str | None) -> str | None:
    """The text of a cell; unlike `_text`, an empty text stays an empty text."""
    value = None if column is None else values[column]
    return value if isinstance(value, str) else _text(values, column)


def _split(values: Mapping[str, Any], column: str | None) -> str | None:
    name = _text(values, column)
    if name is None:
        return None
    if name.strip().casefold() not in SPLIT_NAMES:
        raise ValueError(f"its {column} {reprlib.repr(name)} is none of train, validation and test")
    return SPLIT_NAMES[name.strip().casefold()]


def _number(values: Mapping[str, Any], column: str | None, kind: tuple[TypeAdapter[Any], str]) -> Any:
    """The number in a cell, which in a CSV is text; None if the cell is empty."""
    value = None if column is None else values[column]
    plain = value.strip().casefold() if isinstance(value, str) else value
    if plain in (None, ""):
        return None
    adapter, wanted = kind
    try:
        return adapter.validate_python(_WORDS.get(plain, plain) if isinstance(plain, str) else plain)
    except ValidationError:
        raise ValueError(f"its {column} is {reprlib.repr(value)}, and {wanted}") from None
