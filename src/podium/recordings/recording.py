"""A recording, open for reading. It finds a question's recorded responses by the question's wording, and conditioned
ones also by what the worker saw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self
from weakref import WeakValueDictionary

from pydantic import ValidationError

from podium.errors import ConfigError
from podium.recordings.recording_model import (
    COLUMNS,
    RESPONSE_COLUMNS,
    RecordedQuestion,
    RecordedResponse,
    RecordingHeader,
    ShownContext,
    header_path,
    require_pyarrow,
    schema,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Recording:
    """The questions and responses of one file. A text stays in the file's compact form until it is read."""

    def __init__(self, path: Path, header: RecordingHeader, table: pa.Table) -> None:
        self.path = path
        self.header = header
        self._table = table
        ids = table.column("question_id").to_pylist()
        starts = [row for row, id_ in enumerate(ids) if not row or id_ != ids[row - 1]]
        self._row_ranges = [*pairwise([*starts, len(ids)])]
        texts = table.column("question").take(starts).to_pylist()
        self._by_text: dict[str, int] = {}
        for number, text in enumerate(texts):
            self._by_text.setdefault(text.strip(), number)
        self._responses: dict[int, dict[tuple[str, str | None], tuple[RecordedResponse, ...]]] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the recording at `path`, and its header from the `.json` file of the same name.

        If the same unchanged recording is already open, the open one is returned, because its texts take much memory.

        Raises:
            ConfigError: a file is missing or something else, or pyarrow is not installed.
        """
        require_pyarrow()
        import pyarrow as pa  # noqa: PLC0415 - an optional extra

        if path.suffix == ".json":
            raise ConfigError(
                f"{path} is a header's name; give the recording itself, {path.with_suffix('.parquet')}."
            )
        if not path.is_file():
            raise _missing(path)
        header_file = header_path(path)
        about, header_text = path.stat(), _content(header_file)
        key = path.resolve(), about.st_ino, about.st_size, about.st_mtime_ns, header_text
        opened = _in_use.get(key)
        if isinstance(opened, cls):
            return opened
        try:
            header = RecordingHeader.model_validate_json(header_text)
        except ValidationError:
            raise ConfigError(
                f"{header_file} is not the header of a recording; import the source again."
            ) from None
        content = _content(path)
        if hashlib.sha256(content).hexdigest() != header.sha256:
            raise ConfigError(f"{path} does not fit its header {header_file}; import the source again.")
        try:
            opened = _in_use[key] = cls(path, header, _rows(content))
        except (KeyError, pa.ArrowException):
            raise ConfigError(
                f"{path} does not have the columns of a recording; import the source again."
            ) from None
        return opened

    @property
    def name(self) -> str:
        return self.header.name

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(worker.name for worker in self.header.workers)

    @property
    def conditioned(self) -> bool:
        return bool(self.header.conditioned)

    def samples(self, worker: str) -> int:
        """The most responses of a worker to one bare question; 0 if there is none."""
        return self._most_samples.get(worker, 0)

    @cached_property
    def _most_samples(self) -> dict[str, int]:
        # Rows are counted, since the sample numbers of a file may be seeds, or begin at 1.
        rows = self._table.select(["question_id", "worker", "seen"])
        rows = rows.filter(rows.column("seen").is_null())
        # Without threads as in `_rows`.
        counts = rows.group_by(["question_id", "worker"], use_threads=False).aggregate([([], "count_all")])
        most = counts.group_by("worker", use_threads=False).aggregate([("count_all", "max")])
        return {row["worker"]: row["count_all_max"] for row in most.to_pylist()}

    @cached_property
    def questions(self) -> tuple[RecordedQuestion, ...]:
        columns = ("question_id", "question", "gold", "family", "split")
        first = self._table.select(columns).take([start for start, _ in self._row_ranges]).to_pylist()
        return tuple(RecordedQuestion(*(row[column] for column in columns)) for row in first)

    def questions_of(self, split: str) -> Iterator[RecordedQuestion]:
        return (question for question in self.questions if question.split == split)

    def find(self, text: str) -> RecordedQuestion | None:
        """The question of this wording, space around it aside; of several the first."""
        number = self._by_text.get(text.strip())
        return None if number is None else self.questions[number]

    def responses(self, text: str) -> dict[str, tuple[RecordedResponse, ...]]:
        """All samples of each worker, in order, to the bare question of this wording; empty when it is not here."""
        return {worker: samples for (worker, seen), samples in self._by_worker(text).items() if seen is None}

    def conditioned_responses(
        self, text: str, worker: str, seen: ShownContext
    ) -> tuple[RecordedResponse, ...]:
        """All samples in order that a worker gave to the question of this wording when it saw this."""
        return self._by_worker(text).get((worker, seen.key), ())

    def all_responses(self, text: str) -> Iterator[RecordedResponse]:
        return chain.from_iterable(self._by_worker(text).values())

    def _by_worker(self, text: str) -> dict[tuple[str, str | None], tuple[RecordedResponse, ...]]:
        """The responses to a question, by worker and key of what it saw, which is None for the bare question."""
        number = self._by_text.get(text.strip())
        if number is None:
            return {}
        if number not in self._responses:
            start, stop = self._row_ranges[number]
            responses: dict[tuple[str, str | None], list[RecordedResponse]] = {}
            for row in self._table.slice(start, stop - start).to_pylist():
                response = RecordedResponse(*(row[column] for column in RESPONSE_COLUMNS))
                responses.setdefault((row["worker"], row["seen"]), []).append(response)
            self._responses[number] = {key: tuple(samples) for key, samples in responses.items()}
        return self._responses[number]


def _missing(file: Path) -> ConfigError:
    return ConfigError(f"{file}: there is no such file; a recording is NAME.parquet and NAME.json.")


def _content(file: Path) -> bytes:
    if not file.is_file():
        raise _missing(file)
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror}); correct that and try again.") from None


def _rows(content: bytes) -> pa.Table:
    """The rows in our columns; KeyError or an error of Arrow's where they have others."""
    import pyarrow as pa  # noqa: PLC0415 - as in `open`
    import pyarrow.parquet as pq  # noqa: PLC0415

    # What workers were shown is for readers of the file; the key alone finds a response.
    names = [name for name in COLUMNS if name != "shown"]
    # Threads of Arrow that still live when a short process ends may end it with an abort.
    read = pq.ParquetFile(pa.BufferReader(content)).read(columns=names, use_threads=False)
    form = schema()
    return read.select(names).cast(pa.schema([form.field(name) for name in names]))


_in_use: WeakValueDictionary[tuple[object, ...], Recording] = WeakValueDictionary()
"""The open recordings, by path and state of their file, and by their header."""
