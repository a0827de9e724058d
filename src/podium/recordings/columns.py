"""The columns of a recording's parquet file: a row a response, rows of one question together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

NAMES = (
    "question_id", "question", "gold", "family", "split", "worker", "sample", "response", "answer", "score",
    "input_tokens", "output_tokens", "estimated", "seconds",
)  # fmt: skip


def schema() -> pa.Schema:
    """Names and types, in order."""
    types = {
        "sample": pa.int32(),
        "score": pa.float32(),
        "input_tokens": pa.int32(),
        "output_tokens": pa.int32(),
        "estimated": pa.bool_(),
        "seconds": pa.float32(),
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in NAMES])


def to_batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Rows in the order of `NAMES` as one batch."""
    columns = list(zip(*rows, strict=True))
    estimated = NAMES.index("estimated")
    columns[estimated] = tuple(map(bool, columns[estimated]))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema())
