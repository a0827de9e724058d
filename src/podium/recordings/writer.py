"""Collects the responses of a recording in any order, and writes the recording.

A temporary SQLite file has them, so that memory stays small. `write` sorts them into one parquet file, and writes its
header. Both are written under temporary names and then renamed, so an interrupted write leaves the old files.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from podium.errors import StoreError, UsageError
from podium.files.atomic import atomic_file
from podium.recordings.recording_model import (
    COLUMNS,
    RecordedQuestion,
    RecordedResponse,
    RecordedWorker,
    RecordingHeader,
    ShownContext,
    header_path,
    require_pyarrow,
    schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP_ROWS = 4096
"""The most rows of a row group. It is small enough that parquet stores each question's text once in a group."""
_GROUP_CHARS = 2**25
"""A row group ends after this many characters, because all of it is in memory several times."""
_TABLES = (
    "create table question (id text primary key, text text, gold text, family text, split text)",
    # `seen` is empty where the worker was asked the bare question: a key with null would not be unique.
    """create table response (
      question text, worker text, sample integer, text text, answer text, score real,
      input_tokens integer, output_tokens integer, estimated integer, seconds real, seen text, shown text,
      primary key (question, worker, seen, sample)
    ) without rowid""",
)
_DISK_ERRORS = ("FULL", "IOERR", "READONLY", "CANTOPEN")
"""Errors of SQLite that mean a full disk or one that is not writable, without their prefix."""
_ROWS = """
select q.id, q.text, q.gold, q.family, q.split, r.worker,
  row_number() over (partition by r.question, r.worker, r.seen order by r.sample) - 1, r.text, r.answer, r.score,
  r.input_tokens, r.output_tokens, r.estimated, r.seconds, nullif(r.seen, ''), r.shown
from question q join response r on r.question = q.id order by q.id, r.worker, r.seen, r.sample
"""
_WORKERS = """
select worker, count(*), count(nullif(seen, '')), count(case when seen = '' then score end),
  avg(case when seen = '' and score is not null then score >= 0.999 end)
from response r join question on question.id = r.question group by worker order by worker
"""


class RecordingWriter:
    """The questions and responses of a recording that is being made.

    All methods raise:
        UsageError: pyarrow is not installed.
        StoreError: the disk is full.
    """

    def __init__(self) -> None:
        require_pyarrow()
        with _store_errors():
            self._db = sqlite3.connect("", isolation_level=None)
            self._db.create_function("bare", 1, str.strip, deterministic=True)
            for statement in (*_TABLES, "pragma synchronous = off", "begin"):
                self._db.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add_question(self, question: RecordedQuestion) -> bool:
        """Save a question, unless one with its id is saved. Returns False if the saved one has another wording. Space
        around the text does not count."""
        cursor = self._execute("insert or ignore into question values (?, ?, ?, ?, ?)", astuple(question))
        if cursor.rowcount > 0:
            return True
        wording = "select bare(text) = bare(?) from question where id = ?"
        return bool(self._execute(wording, (question.text, question.id)).fetchone()[0])

    def add(
        self,
        question_id: str,
        response: RecordedResponse,
        *,
        sample: float | None = None,
        seen: ShownContext | None = None,
    ) -> bool:
        """Save a response. Returns False if one of the same question, worker, context and sample is saved already.

        Args:
            sample: replaces the response's number by the source's own, which may be a fraction.
            seen: what the worker saw besides the question, or None if it was asked the bare question.
        """
        worker, number, *rest = astuple(response)
        context = ("", None) if seen is None else (seen.key, seen.document)
        cursor = self._execute(
            "insert or ignore into response values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (question_id, worker, number if sample is None else sample, *rest, *context),
        )
        return cursor.rowcount > 0

    def find(
        self, question_id: str, worker: str, sample: int, seen: ShownContext | None = None
    ) -> RecordedResponse | None:
        row = self._execute(
            "select * from response where question = ? and worker = ? and sample = ? and seen = ?",
            (question_id, worker, sample, seen.key if seen else ""),
        ).fetchone()
        if row is None:
            return None
        _, name, number, text, answer, score, sent, made, estimated, seconds, *_ = row
        return RecordedResponse(name, number, text, answer, score, sent, made, bool(estimated), seconds)

    def _drop_repeats(self) -> int:
        """Remove questions whose wording an earlier question has too. Returns their number.

        A replay worker finds a question by its text without the space around it, so it would find only one of them.
        """
        repeated = (
            "select id from question where id not in (select min(id) from question group by bare(text))"
        )
        count: int = self._execute(f"select count(*) from ({repeated})").fetchone()[0]
        self._execute(f"delete from response where question in ({repeated})")
        self._execute(f"delete from question where id in ({repeated})")
        return count

    def write(
        self,
        path: Path,
        *,
        name: str,
        source: str = "",
        licence: str = "",
        left_out: Sequence[str] = (),
        known: Mapping[str, RecordedWorker] | None = None,
    ) -> RecordingHeader:
        """Write the recording to `path` and its header next to it: both whole, or neither.

        The samples of each worker to each question and context are renumbered from 0, in their order. Sources number
        them by seeds, or from 1, or with gaps.

        Raises:
            UsageError: there is no response.
            StoreError: the disk is full or not writable. A recording that was there stays.
        """
        without_response = "delete from question where id not in (select question from response)"
        unanswered = self._execute(without_response).rowcount
        notes = list(left_out)
        if repeats := self._drop_repeats():
            notes.append(f"questions whose wording another one has too ({repeats})")
        if unanswered:
            notes.append(f"questions that no worker answered ({unanswered})")
        workers, conditioned = self._workers(known or {})
        if not workers:
            reasons = f": left out are {'; '.join(notes)}" if notes else ""
            raise UsageError(f"There is no response to write{reasons}; check what was given as the source.")
        splits = self._execute("select split, count(*) from question where split is not null group by 1")
        (questions,) = self._execute("select count(*) from question").fetchone()
        header = RecordingHeader(
            name=name,
            source=source,
            licence=licence,
            workers=workers,
            questions=questions,
            responses=sum(worker.responses for worker in workers),
            splits=dict(splits.fetchall()),
            left_out=tuple(notes),
            conditioned=conditioned,
            sha256="",
        )
        with _store_errors():
            return _write_files(path, self._db.execute(_ROWS), header)

    def _workers(
        self, known: Mapping[str, RecordedWorker]
    ) -> tuple[tuple[RecordedWorker, ...], dict[str, int]]:
        rows = self._execute(_WORKERS).fetchall()
        workers = tuple(
            known.get(worker, RecordedWorker(name=worker)).model_copy(
                update={"responses": count, "judged": judged, "accuracy": share}
            )
            for worker, count, _, judged, share in rows
        )
        return workers, {worker: count for worker, _, count, _, _ in rows if count}

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        with _store_errors():
            return self._db.execute(statement, _storable(values))


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "_").split("_")[1] not in _DISK_ERRORS:
            raise
        raise StoreError(
            f"A temporary file cannot be written ({error}); make room there, and give the same command again."
        ) from None


def _storable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with unpaired surrogates replaced: a text that was cut may end in one, and UTF-8 cannot encode it."""
    return tuple(
        value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in row
    )


def _write_files(path: Path, rows: Iterable[tuple[Any, ...]], header: RecordingHeader) -> RecordingHeader:
    """Write `rows` to `path` and the header next to it; returns the header with the SHA-256 of the rows.

    Args:
        rows: those of one question follow each other. One row group is in memory at a time.

    Raises:
        StoreError: the disk is full, or the folder cannot be written.
    """
    try:
        with atomic_file(header_path(path)) as header_part, atomic_file(path) as rows_part:
            _write_rows(rows_part, rows)
            with rows_part.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            whole = header.model_copy(update={"sha256": digest})
            text = json.dumps(whole.model_dump(mode="json"), indent=2, ensure_ascii=False)
            header_part.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise StoreError.of_file(path, error) from None
    return whole


def _write_rows(path: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an optional extra

    with pq.ParquetWriter(path, schema(), compression="zstd", compression_level=9) as writer:
        group: list[tuple[Any, ...]] = []
        chars = 0
        for row in rows:
            group.append(row)
            chars += sum(len(value) for value in row if isinstance(value, str))
            if len(group) == _GROUP_ROWS or chars >= _GROUP_CHARS:
                writer.write_batch(to_batch(group))
                group.clear()
                chars = 0
        if group:
            writer.write_batch(to_batch(group))


def to_batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    form = schema()
    columns = list(zip(*rows, strict=True))
    estimated = COLUMNS.index("estimated")
    columns[estimated] = tuple(map(bool, columns[estimated]))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, form, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=form)
