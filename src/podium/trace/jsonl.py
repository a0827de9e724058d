"""Traces as JSONL: one trace a line, in UTF-8, read and written one at a time.

The text form of a trace for files, pipes and the store. It opens no file and keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from podium.errors import UsageError
from podium.trace.model import Trace


def to_json(trace: Trace) -> str:
    """One line of JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    try:
        return trace.model_dump_json()
    except PydanticSerializationError:
        return clean(json.dumps(trace.model_dump(), ensure_ascii=False, separators=(",", ":")))


def clean(text: str) -> str:
    """`text` without half surrogate pairs, which some models write and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write(traces: Iterable[Trace], stream: TextIO) -> int:
    """Write each trace as one line; returns how many."""
    count = 0
    for trace in traces:
        stream.write(to_json(trace) + "\n")
        count += 1
    return count


def read(lines: Iterable[str | bytes], source: str) -> Iterator[Trace]:
    """The traces of `lines`; blank lines are passed over.

    Raises:
        UsageError: a line is not a trace; names `source`, the line (from 1) and the field.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield Trace.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            where = f" at {field}" if field else ""
            raise UsageError(f"{source}, line {number}: not a trace{where} ({first['msg']}).") from error
