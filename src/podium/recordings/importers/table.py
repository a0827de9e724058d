"""Imports any table (parquet, JSONL or CSV). A TOML file, the mapping, says which column is what:

name = "my recording"
source = "where it is from, with the version"
licence = "Apache-2.0"

[questions]
file = "questions.parquet"          # in the folder of the TOML file
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

import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import Field

from podium.config import Settings, load
from podium.errors import UsageError
from podium.recordings.importers.cells import (
    read_count,
    read_sample,
    read_score,
    read_seconds,
    read_split,
    read_text,
    read_verbatim,
)
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, split_by_hash
from podium.recordings.writer import RecordingWriter
from podium.rows import Row, cell_equals, fill_template, read_rows, template_columns
from podium.types import estimate_tokens

_STRAYS = "responses to questions that are not there"


class QuestionColumns(Settings):
    """Where the questions are: a file, and its columns."""

    file: Path
    id: str
    text: str
    gold: str | None = None
    family: str | None = None
    split: str | None = None
    """A column with train, validation (or val, dev) or test. Where it is empty, or None, a hash of the id decides."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows are kept whose columns have these values."""


class ResponseColumns(Settings):
    """Where the responses are: a file, and its columns."""

    file: Path
    question: str
    """The question's id."""
    worker: str
    sample: str | None = None
    """A column with any numbers, such as seeds or temperatures; in their order, samples are numbered from 0. Without
    it, each worker has one response to a question."""
    text: str | None = None
    """The column of the whole response. None if there are only answers."""
    answer: str | None = None
    score: str | None = None
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
    _add_responses(mapping, one_wording, writer, import_report)
    return import_report


def _add_questions(
    questions: QuestionColumns, writer: RecordingWriter, import_report: ImportReport
) -> dict[str, bool]:
    """Add the questions, each with its first wording; returns by id whether the table has only that wording."""
    one_wording: dict[str, bool] = {}
    for row in _rows(questions.file, _columns(questions)):
        with _naming_row(questions.file, row):
            question_id = read_text(row.values, questions.id)
        if not _named(row, questions.where):
            import_report.left_out["questions that `where` does not name"] += 1
        elif question_id is None:
            import_report.left_out["questions without an id"] += 1
        else:
            with _naming_row(questions.file, row):
                question = RecordedQuestion(
                    question_id,
                    fill_template(questions.text, row.values),
                    read_text(row.values, questions.gold),
                    read_text(row.values, questions.family),
                    read_split(row.values, questions.split) or split_by_hash(question_id),
                )
            fits = writer.add_question(question)
            one_wording[question_id] = fits and one_wording.get(question_id, True)
    return one_wording


def _add_responses(
    mapping: TableMapping, one_wording: dict[str, bool], writer: RecordingWriter, import_report: ImportReport
) -> None:
    questions, responses = mapping.questions, mapping.responses
    named = _columns(responses)
    # If questions and responses are in the same rows, a row shows which wording its response answers.
    both = not all(one_wording.values()) and responses.file.resolve() == questions.file.resolve()
    if both:
        named |= _columns(questions)

    def fits(question_id: str, row: Row) -> bool:
        if one_wording[question_id]:
            return True
        if not both or not _named(row, questions.where):
            return False
        with _naming_row(questions.file, row):
            return not writer.has_other_wording(question_id, fill_template(questions.text, row.values))

    any_added, stray = False, None
    for row in _rows(responses.file, named):
        with _naming_row(responses.file, row):
            question_id = read_text(row.values, responses.question)
            worker = read_text(row.values, responses.worker)
        if not _named(row, responses.where):
            import_report.left_out["responses that `where` does not name"] += 1
        elif question_id is None or question_id not in one_wording:
            import_report.left_out[_STRAYS] += 1
            stray = stray or question_id
        elif worker is None:
            import_report.left_out["responses without a worker"] += 1
        elif not fits(question_id, row):
            import_report.left_out["answers to another wording of a question"] += 1
        elif not _add(writer, question_id, worker, row, responses):
            import_report.left_out["responses whose question, worker and sample came before"] += 1
        else:
            any_added = True
    if stray and one_wording and not any_added:
        reason = f"{_STRAYS}, as to {reprlib.repr(stray)} where questions have {reprlib.repr(next(iter(one_wording)))}"
        import_report.left_out[reason] = import_report.left_out.pop(_STRAYS)


def rows(file: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table with these columns; None where a row lacks a column that another has.

    Raises:
        UsageError: the file is missing, is not what its name says, has no rows, lacks a column, or has a line that
            cannot be read.
    """
    return (row.values for row in _rows(file, columns))


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
    """All columns that a mapping reads from one file."""
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


def _add(writer: RecordingWriter, question_id: str, worker: str, row: Row, columns: ResponseColumns) -> bool:
    with _naming_row(columns.file, row):
        response = _response(worker, row.values, columns)
        number = read_sample(row.values, columns.sample)
    return writer.add(question_id, response, sample=number)


def _response(worker: str, values: dict[str, Any], columns: ResponseColumns) -> RecordedResponse:
    """The response in a row; `_add` reads the sample."""
    answer = read_verbatim(values, columns.answer)
    text = read_verbatim(values, columns.text)
    output_tokens, chars = read_count(values, columns.output_tokens), read_count(values, columns.chars)
    estimated = output_tokens is None
    if output_tokens is None and (chars is not None or text is not None):
        output_tokens = -(-chars // 4) if chars is not None else estimate_tokens(text or "")
    if text is None:
        text = "" if answer is None else f"<answer>{answer}</answer>"
    return RecordedResponse(
        worker,
        0,
        text,
        answer,
        read_score(values, columns.score),
        read_count(values, columns.input_tokens),
        output_tokens,
        estimated and output_tokens is not None,
        read_seconds(values, columns.seconds),
    )
