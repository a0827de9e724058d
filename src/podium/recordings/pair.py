"""The two files of a recording, rows and header: written beside their places, then put there together.

What is in them is the gathering's business. A writing that breaks off leaves what was there, and no part of a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from podium.errors import StoreError
from podium.recordings.model import Header

_GROUP_ROWS = 4096
"""Rows of a row group: few enough that each question's text is stored once in a group."""
_GROUP_LETTERS = 2**25
"""Letters of a row group, which is held in memory as a whole, in several forms."""

Rows = Iterable[tuple[Any, ...]]
"""Values in the order of `columns.NAMES`."""


def header_path(path: Path) -> Path:
    """Where the header of the recording at `path` is."""
    return path.with_suffix(".json")


def write_pair(path: Path, rows: Rows, header: Header) -> Header:
    """Write `rows` to `path` and the header beside it; returns it with their SHA-256.

    Args:
        rows: those of one question together. A row group is in memory at a time.

    Raises:
        StoreError: the place is full, or nothing may be written there.
    """
    beside = header_path(path)
    rows_part, header_part = (file.with_name(f".{file.name}.part") for file in (path, beside))
    try:
        _write_rows(rows_part, rows)
        with rows_part.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        whole = header.model_copy(update={"sha256": digest})
        text = json.dumps(whole.model_dump(mode="json"), indent=2, ensure_ascii=False)
        header_part.write_text(f"{text}\n", encoding="utf-8")
        rows_part.replace(path)
        header_part.replace(beside)
    except OSError as error:
        raise StoreError.of_file(path, error) from None
    finally:
        for part in (rows_part, header_part):
            with suppress(OSError):
                part.unlink()
    return whole


def _write_rows(path: Path, rows: Rows) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an optional extra

    from podium.recordings.columns import schema, to_batch  # noqa: PLC0415

    with pq.ParquetWriter(path, schema(), compression="zstd", compression_level=9) as writer:
        group: list[tuple[Any, ...]] = []
        letters = 0
        for row in rows:
            group.append(row)
            letters += sum(len(value) for value in row if isinstance(value, str))
            if len(group) == _GROUP_ROWS or letters >= _GROUP_LETTERS:
                writer.write_batch(to_batch(group))
                group.clear()
                letters = 0
        if group:
            writer.write_batch(to_batch(group))
