"""Writes the two files of a recording: rows (parquet) and header (JSON).

`RecordingWriter` decides what is in them. Both are written under temporary names and then renamed, so an interrupted
write leaves the old files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import ConfigError, StoreError
from podium.files import atomic_file
from podium.recordings.recording_model import RecordingHeader

if TYPE_CHECKING:
    import pyarrow as pa

RESPONSE_COLUMNS = (
    "worker", "sample", "response", "answer", "score", "input_tokens", "output_tokens", "estimated", "seconds",
)  # fmt: skip
"""The columns of a `RecordedResponse`, in the order of its fields."""
COLUMNS = ("question_id", "question", "gold", "family", "split", *RESPONSE_COLUMNS, "seen", "shown")
"""The columns of the parquet file, which has one row for each response. Rows of one question follow each other. The
last two are the key and the document of the `ShownContext`; both are null in the rows of bare questions."""

_GROUP_ROWS = 4096
"""The most rows of a row group. It is small enough that parquet stores each question's text once in a group."""
_GROUP_CHARS = 2**25
"""A row group ends after this many characters, because all of it is in memory several times."""

Rows = Iterable[tuple[Any, ...]]
"""Values in the order of `COLUMNS`."""


def require_pyarrow() -> None:
    """`ConfigError` if pyarrow is not installed. Asked before anything is paid that only pyarrow can write."""
    if find_spec("pyarrow") is None:
        raise ConfigError(
            "Recordings need pyarrow, which is not installed: pip install 'podium-conductor[recordings]'."
        )


def header_path(path: Path) -> Path:
    """Where the header of the recording at `path` is."""
    return path.with_suffix(".json")


def unfinished_path(recording: Path) -> Path:
    """The folder that keeps the answers of a recording until it is finished."""
    return recording.with_suffix(".partial")


def write_files(path: Path, rows: Rows, header: RecordingHeader) -> RecordingHeader:
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


def _write_rows(path: Path, rows: Rows) -> None:
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


def schema() -> pa.Schema:
    """Names and types of the columns, in order."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    types = {
        "sample": pa.int32(),
        "score": pa.float32(),
        "input_tokens": pa.int32(),
        "output_tokens": pa.int32(),
        "estimated": pa.bool_(),
        "seconds": pa.float32(),
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])


def to_batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Rows as one batch."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    form = schema()
    columns = list(zip(*rows, strict=True))
    estimated = COLUMNS.index("estimated")
    columns[estimated] = tuple(map(bool, columns[estimated]))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, form, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=form)
