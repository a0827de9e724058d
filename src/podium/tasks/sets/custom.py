"""A user's own questions: a table with a question and its right answer in each row, and how answers are graded.

set = "own"
file = "questions.jsonl"            # .csv and .parquet too; paths are relative to the task file's folder
question = "{problem}\\n{options}"   # a column, or columns in braces; a list becomes (A), (B), ...
gold = "answer"
grader = { kind = "numeric" }

A table whose columns are called question and answer needs no task file: `CustomSet.from_table`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from podium.config import Settings, build
from podium.errors import ConfigError
from podium.files.tables import (
    cell_equals,
    cell_text,
    fill_template,
    is_empty,
    read_rows,
    show_cell,
    template_columns,
)
from podium.recordings import SPLIT_NAMES, split_by_hash
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.registry import AnyGrader
from podium.tasks.graders.text_graders import Exact
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import BadRow, LoadedSplit, Sample, TaskSetSpec, read_tasks
from podium.tasks.sets.prompts import content_id, strip_prompt
from podium.tasks.task import SPLITS, Split

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?")
"""No unit and no leading zero, which belong to a text such as `5 km` or `02139`."""


class _Graded(Settings):
    """The content of a cell in the grader's column."""

    grader: AnyGrader


class CustomSet(TaskSetSpec):
    """A user's own data, `set = "own"` in task files.

    If neither `files` nor `split` name the split of a question, a hash of its text does: 70 % are train, 15 %
    validation and 15 % test. So equal questions never fall into two splits.
    """

    set: Literal["own"] = "own"
    name: str | None = Field(default=None, min_length=1)
    """Its name in reports and task ids. Default: the name of its file."""
    file: Path | None = None
    files: dict[Split, Path] = Field(default_factory=dict)
    """Instead of `file`: one for each split. Without validation, a tenth of train becomes validation."""
    question: str = Field(default="question", min_length=1)
    """A column; or a template with columns in braces, and the prompt around them."""
    gold: str = Field(default="answer", min_length=1)
    """The column of the right answer; a list or an object is given to the grader as JSON."""
    first_option: int | None = None
    """If the right answer is the number of an option: the number of the first one. It becomes a letter."""
    id: str | None = None
    """The column of unique ids. Without it, a hash of the question is its id."""
    split: str | None = None
    """The column that says train, validation (or val, dev) or test; where it is empty, the hash decides."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Only rows whose columns have these values are used."""
    family: str | None = None
    """The column of the kind of question, by which reports group."""
    facts: tuple[str, ...] = ()
    """More columns for reports. Planners do not see them."""
    grader: AnyGrader = Exact()
    grader_column: str | None = None
    """The column of the grader of each row: a kind, or an object (in a CSV: as JSON) with its settings. Where it is
    empty, `grader` judges."""
    on_bad_row: BadRow = "refuse"

    _graders: dict[str, GraderSettings] = PrivateAttr(default_factory=dict)
    """The graders that rows name. Equal ones are one object, so that a judge shares its connections."""

    @classmethod
    def from_table(cls, file: Path) -> Self:
        """The set of a table with the columns question and answer, and split and grader where it has them.

        If every right answer is a plain number, rows that name no grader are judged by `numeric`, also where a sentence
        ends in the number; else by `exact`.

        Raises:
            UsageError: the table cannot be read.
            ConfigError: it has no such columns.
        """
        columns, numbers = set[str](), True
        for row in read_rows(file):
            columns.update(row.values)
            gold = row.values.get("answer")
            numbers = numbers and (is_empty(gold) or _NUMBER.fullmatch(str(gold).strip()) is not None)
        if lacking := [column for column in ("question", "answer") if column not in columns]:
            raise ConfigError(
                f"{file} has no column {lacking[0]!r}; it has {', '.join(sorted(columns)) or 'none'}. Rename one, or "
                'say which it is in a task file, NAME.toml, with set = "own".'
            )
        optional = {"split": "split", "grader_column": "grader"}
        table: dict[str, Any] = {key: column for key, column in optional.items() if column in columns}
        if numbers:
            table["grader"] = Numeric(answer="stated", sentences=True)
        return cls.model_validate({"file": file} | table)

    @field_validator("question")
    @classmethod
    def _is_template(cls, question: str) -> str:
        template_columns(question)
        return question

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if (self.file is None) == (not self.files):
            raise ValueError("own data is a file, or files (one for each split); give one of the two.")
        if self.split is not None and self.files:
            raise ValueError("split names a column of a file; with files, their keys say it.")
        return self

    @property
    def label(self) -> str:
        first = self.file or next(iter(self.files.values()))
        return self.name or Path(first.name.removesuffix(".gz")).stem

    @property
    def source_splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split in self.files) if self.files else SPLITS

    def with_base_dir(self, folder: Path) -> Self:
        files = {split: folder / file for split, file in self.files.items()}
        return self.model_copy(update={"file": self.file and folder / self.file, "files": files})

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        if self.file is not None:
            divided = self._divide(self.file)
            return {split: divided[split] for split in splits}
        # Two files may use the same id, so the split is part of the task id.
        return {
            split: self._read(file, f"{self.label}/{split}", self.record_to_sample)
            for split, file in self.files.items()
            if split in splits
        }

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        """The sample that a row states, or None if it is not wanted. Raises ValueError or KeyError if it is broken."""
        if not all(cell_equals(values[column], wanted) for column, wanted in self.where.items()):
            return None
        content = strip_prompt(
            "\n".join(show_cell(values, column) for column in template_columns(self.question))
        )
        return Sample(
            fill_template(self.question, values),
            self._gold(values),
            content_id(content) if self.id is None else cell_text(values, self.id),
            self._facts(values),
            content,
            self._grader(values),
        )

    def _divide(self, file: Path) -> Mapping[str, LoadedSplit]:
        """Divide one file into splits."""
        split_of: dict[str, str] = {}

        def record_to_sample(values: Mapping[str, Any]) -> Sample | None:
            sample = self.record_to_sample(values)
            if sample is not None:
                split_of.setdefault(f"{self.label}/{sample.id}", self._split_of(values, sample.content))
            return sample

        reading = self._read(file, self.label, record_to_sample)
        return {
            split: LoadedSplit(tuple(t for t in reading.tasks if split_of[t.id] == split), reading.skipped)
            for split in SPLITS
        }

    def _read(
        self, file: Path, name: str, record_to_sample: Callable[[Mapping[str, Any]], Sample | None]
    ) -> LoadedSplit:
        rows = read_rows(file, self._columns)
        return read_tasks(rows, record_to_sample, self.grader, name=name, on_bad_row=self.on_bad_row)

    @property
    def _columns(self) -> frozenset[str]:
        named = (self.gold, self.id, self.split, self.family, self.grader_column)
        columns = (*template_columns(self.question), *named, *self.where, *self.facts)
        return frozenset(column for column in columns if column is not None)

    def _split_of(self, values: Mapping[str, Any], content: str) -> str:
        name = "" if self.split is None or values[self.split] is None else str(values[self.split]).strip()
        if not name:
            return split_by_hash(question_key(content))
        if name.casefold() not in SPLIT_NAMES:
            raise ValueError(f"its split {name!r} is none of train, validation and test")
        return SPLIT_NAMES[name.casefold()]

    def _gold(self, values: Mapping[str, Any]) -> str:
        gold = cell_text(values, self.gold)
        if self.first_option is None:
            return gold
        letters = {str(self.first_option + index): letter for index, letter in enumerate(ascii_uppercase)}
        if gold not in letters:
            raise ValueError(f"its {self.gold} {gold!r} is the number of no option")
        return letters[gold]

    def _grader(self, values: Mapping[str, Any]) -> GraderSettings | None:
        """The grader that a row names, if it does.

        Raises:
            ValueError: there is no such grader, in half a sentence.
        """
        if self.grader_column is None or is_empty(values[self.grader_column]):
            return None
        cell = values[self.grader_column]
        text = json.dumps(cell) if isinstance(cell, Mapping) else str(cell).strip()
        if text not in self._graders:
            try:
                table = json.loads(text) if text.startswith("{") else {"kind": text}
                self._graders[text] = build({"grader": table}, _Graded, source="row").grader
            except json.JSONDecodeError:
                raise ValueError(f"its {self.grader_column} {text!r} is no JSON object") from None
            except ConfigError as error:
                raise ValueError(f"its {str(error).removeprefix('row: ').rstrip('.?')}") from None
        return self._graders[text]

    def _facts(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        columns = {column: column for column in self.facts}
        if self.family is not None:
            columns["family"] = self.family
        return {
            fact: cell_text(values, column)
            for fact, column in columns.items()
            if not is_empty(values[column])
        }
