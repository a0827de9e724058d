"""Reads rows of JSONL, JSON, CSV and parquet files one by one, and fills templates with their cells.

Each row knows its location. A row that cannot be read has an `error`, so the caller can refuse it or count it.
A file in which it is unclear where rows begin is refused as a whole. The meaning of columns is the caller's.

A template names one column, or has columns in braces, as in "{problem}\\n{options}".
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from string import Formatter, ascii_uppercase
from typing import Any

from podium.config import suggestion
from podium.errors import UsageError

MAX_LINE_BYTES = 2**28
"""The most bytes of a line. The longest line of known data sets, with packed test cases, has a fifth of that."""
_READ_ERRORS = (ValueError, OSError, EOFError, RecursionError, zlib.error, csv.Error)
"""Raised by readers for a file that is broken as a whole."""
_HALF_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    location: str
    """Where it begins, as in "questions.jsonl, line 3"."""
    values: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    """Why the row cannot be read, in half a sentence; then it has no values."""


def read_rows(file: Path, columns: Collection[str] = (), *, allow_missing: bool = False) -> Iterator[Row]:
    """The rows of a table. They are read one at a time, but a .json file is read as a whole.

    Args:
        file: .jsonl, .json (a list of objects, or an object a line), .csv or .parquet; the first three also as .gz.
        columns: required in every row; of a parquet file, only these are read. Empty: all are read.
        allow_missing: whether a row may lack a column that another row has; its cell is then null.

    Raises:
        UsageError: the file is missing, is not what its name says, or has a required column in no row.
    """
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file; check the path.")
    if not is_table(file):
        raise UsageError(f"{file}: a table is .parquet, .jsonl, .json or .csv; convert it to one of them.")
    kind, known = _kind(file), set[str]()
    read = partial(_READERS[kind], file, columns)
    try:
        for row in read():
            missing = [] if row.error else sorted(set(columns) - row.values.keys())
            if missing:
                known = known or {column for other in read() for column in other.values}
                _check(file, missing, known)
            if missing and allow_missing:
                yield replace(row, values=row.values | dict.fromkeys(missing))
            else:
                yield Row(row.location, error=f"it has no column {missing[0]}") if missing else row
    except _READ_ERRORS as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{file} cannot be read as {kind[1:]}: {reason}; fix or replace it.") from None


def is_table(file: Path) -> bool:
    """Whether a file is a table, by its name."""
    return _kind(file) in _READERS


def _kind(file: Path) -> str:
    return (Path(file.stem) if file.suffix.lower() == ".gz" else file).suffix.lower()


def _check(file: Path, columns: Iterable[str], known: Collection[str]) -> None:
    for column in sorted(columns):
        if column not in known:
            raise UsageError(f"{file} has no column {column!r}; {suggestion(column, sorted(known))}")


def _open(file: Path) -> BufferedReader:
    # GzipFile has all methods of a BufferedReader that are used here, but is no subclass.
    return gzip.open(file, "rb") if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[return-value]


# --- JSON ----------------------------------------------------------------------------------------------


def _jsonl(file: Path, columns: Collection[str]) -> Iterator[Row]:
    with _open(file) as opened:
        for number, line in enumerate(_lines(opened), 1):
            location = f"{file.name}, line {number}"
            if line is None:
                yield Row(location, error=f"it is longer than {MAX_LINE_BYTES:,} bytes")
            elif bare := line.removeprefix(codecs.BOM_UTF8).strip():
                yield _object(location, bare)


def _lines(opened: BufferedReader) -> Iterator[bytes | None]:
    """The lines of a file; None for a line that is too long, which is skipped."""
    while line := opened.readline(MAX_LINE_BYTES + len("\r\n")):
        if len(line.rstrip(b"\r\n")) <= MAX_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = opened.readline(MAX_LINE_BYTES)
        yield None


def _object(location: str, text: bytes) -> Row:
    try:
        value = _parsed(text.decode())
    except UnicodeDecodeError:
        return Row(location, error="it is not UTF-8 text")
    except json.JSONDecodeError as error:
        return Row(location, error=f"it is not JSON: {error.msg} (at character {error.pos + 1})")
    except RecursionError:
        return Row(location, error="it is not JSON: it is nested too deeply")
    except ValueError:
        return Row(location, error="it is not JSON: a number in it has too many digits")
    return _row(location, value)


def _json(file: Path, columns: Collection[str]) -> Iterator[Row]:
    with _open(file) as opened:
        text = opened.read().decode("utf-8-sig")
    if not text.lstrip().startswith("["):
        yield from _jsonl(file, columns)
        return
    for number, item in enumerate(_parsed(text), 1):
        yield _row(f"{file.name}, item {number}", item)


def _parsed(text: str) -> Any:
    """Parse JSON. Halves of surrogate pairs, which UTF-8 cannot contain, become replacement characters."""
    value = json.loads(text)
    if not _HALF_SURROGATE.search(text):
        return value
    replaced = (
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return json.loads(replaced)


def _row(location: str, value: object) -> Row:
    return Row(location, value) if isinstance(value, dict) else Row(location, error="it is not an object")


# --- CSV -----------------------------------------------------------------------------------------------


def _csv(file: Path, columns: Collection[str]) -> Iterator[Row]:
    with TextIOWrapper(_open(file), encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        reader = csv.reader(opened, strict=True)
        head = next(reader, [])
        if not _is_text(head):
            raise ValueError("its head is not UTF-8 text")
        twice = [name for name, count in Counter(head).items() if name and count > 1]
        if twice:
            raise ValueError(f"two of its columns are called {twice[0]!r}")
        _check(file, columns, head)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if str(error).startswith(("unexpected end", "field larger")):
                    long = f"{csv.field_size_limit():,} characters"
                    raise ValueError(f"a quote in line {line} is not closed, or holds over {long}") from None
                yield Row(f"{file.name}, line {line}", error=f"it is not CSV: {error}")
            else:
                if cells:
                    yield _cells(f"{file.name}, line {line}", head, cells)


def _cells(location: str, head: list[str], cells: list[str]) -> Row:
    if len(cells) != len(head):
        return Row(location, error=f"it has {len(cells)} cells, and the head {len(head)}")
    if not _is_text(cells):
        return Row(location, error="it is not UTF-8 text")
    return Row(location, dict(zip(head, cells, strict=True)))


def _is_text(cells: list[str]) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in "".join(cells))


# --- parquet -------------------------------------------------------------------------------------------


def _parquet(file: Path, columns: Collection[str]) -> Iterator[Row]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            f"{file}: parquet needs pyarrow, which is not installed: pip install 'podium-conductor[tasks]'."
        ) from None
    number = 0
    try:
        table = pq.ParquetFile(file)
        _check(file, columns, table.schema_arrow.names)
        # Arrow's threads may abort a short process if they still run at its end.
        for batch in table.iter_batches(batch_size=1024, columns=sorted(columns) or None, use_threads=False):
            for values in batch.to_pylist():
                number += 1
                yield Row(f"{file.name}, row {number}", _decoded(values))
    except pa.ArrowException as error:
        raise ValueError(error) from None


def _decoded(value: Any) -> Any:
    """The value, with binary text as text at any depth. Bytes that are not UTF-8 stay bytes."""
    if isinstance(value, dict):
        return {key: _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


_READERS: Mapping[str, Callable[[Path, Collection[str]], Iterator[Row]]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


# --- cells ---------------------------------------------------------------------------------------------


def template_columns(template: str) -> tuple[str, ...]:
    """The columns that a template names, each once. If its braces do not name columns, a `ValueError` is raised."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} is no template: {error}; write {{{{ for a brace") from None
    named = [name for _, name, _, _ in parts if name is not None]
    if not all(named) or any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{template!r} is no template: name a column in each pair of braces, and no more")
    return tuple(dict.fromkeys(named)) or (template,)


def fill_template(template: str, values: Mapping[str, Any]) -> str:
    """The template, filled in with the cells of a row.

    Raises:
        KeyError: the row lacks a column.
        ValueError: a cell is empty, or holds bytes that are not UTF-8.
    """
    if template_columns(template) == (template,):
        return show_cell(values, template)
    return "".join(
        literal + (show_cell(values, column) if column else "")
        for literal, column, _, _ in Formatter().parse(template)
    )


def show_cell(values: Mapping[str, Any], column: str) -> str:
    """A cell as a question shows it, a list as lettered lines. If there is no such column, a `KeyError` is raised, and
    a `ValueError` if the cell is empty, is not UTF-8, or has more options than there are letters."""
    value = values[column]
    if isinstance(value, list) and value:
        if len(value) > len(ascii_uppercase):
            raise ValueError(f"its {column} has more options than there are letters")
        return "\n".join(
            f"({letter}) {_text(item, column)}" for letter, item in zip(ascii_uppercase, value, strict=False)
        )
    return cell_text(values, column)


def cell_text(values: Mapping[str, Any], column: str) -> str:
    """A cell as text: whole numbers without a point, lists and objects as JSON. If there is no such
    column, a `KeyError` is raised, and a `ValueError` if the cell is empty or is not UTF-8."""
    value = values[column]
    if is_empty(value):
        raise ValueError(f"its {column} is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=lambda item: _text(item, column))
    return _text(value, column)


def _text(value: object, column: str) -> str:
    if isinstance(value, bytes):
        raise ValueError(f"its {column} is not UTF-8 text")
    return str(value)


def is_empty(value: object) -> bool:
    """Whether a cell is empty."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def cell_equals(value: object, wanted: str | float | bool) -> bool:
    """Whether a cell equals a value; text from a CSV is read as JSON first."""
    if isinstance(value, str) and not isinstance(wanted, str):
        try:
            value = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return False
    return bool(value == wanted)
