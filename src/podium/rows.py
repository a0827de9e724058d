"""Rows of tables from JSONL, JSON, CSV and parquet files, read one by one; and templates that a row fills in.

Each row knows its place in the file. A row that cannot be read carries its fault, so that the caller may refuse it or
count it. A file in which nobody can tell any more where rows begin is refused as a whole. What the columns mean is the
caller's to know. A template names one column, or has columns in braces, as in "{problem}\\n{options}".
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
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from string import Formatter, ascii_uppercase
from typing import Any

from podium.config import suggestion
from podium.errors import UsageError

LONGEST = 2**28
"""Bytes of a line, at most: the longest of known data sets, with packed test cases, are a fifth of that."""
_BROKEN = (ValueError, OSError, EOFError, RecursionError, zlib.error, csv.Error)
"""What readers raise for a file that is broken as a whole."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    place: str
    """As in "questions.jsonl, line 3": where it begins."""
    values: dict[str, Any] = field(default_factory=dict)
    complaint: str = ""
    """Why the row cannot be read, in half a sentence; then it has no values."""


def read_rows(
    file: Path, columns: Collection[str] = (), *, gaps: bool = False, longest: int = LONGEST
) -> Iterator[Row]:
    """The rows of a table; memory holds one at a time, but for .json, which is read whole.

    Args:
        file: .jsonl, .json (a list of objects, or one a line), .csv or .parquet; all but the last may be packed (.gz).
        columns: those that every row must have; of a parquet file no others are read. None named: all.
        gaps: a row may lack a column that another has; it holds null there.
        longest: bytes of a line of JSONL, at most.

    Raises:
        UsageError: the file is missing, not of its kind, or no row of it has one of the columns.
    """
    kind = _kind(file)
    reader = _READERS.get(kind)
    try:
        if not file.is_file():
            raise UsageError(f"{file}: there is no such file; check the path.")
        if reader is None:
            raise UsageError(
                f"{file}: a table is .parquet, .jsonl, .json or .csv; convert it to one of them."
            )
        yield from _complete(file, columns, lambda: reader(file, columns, longest), gaps=gaps)
    except _BROKEN as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{file} cannot be read as {kind[1:]}: {reason}; mend or replace it.") from None


def is_table(file: Path) -> bool:
    """Whether a file is one, by its name."""
    return _kind(file) in _READERS


def _kind(file: Path) -> str:
    return (Path(file.stem) if file.suffix.lower() == ".gz" else file).suffix.lower()


def _complete(
    file: Path, columns: Collection[str], read: Callable[[], Iterator[Row]], *, gaps: bool
) -> Iterator[Row]:
    """Rows; one that lacks a column is filled up or complained of, and the file where no row has the column."""
    known: set[str] = set()
    for row in read():
        missing = [] if row.complaint else sorted(set(columns) - row.values.keys())
        if not missing:
            yield row
            continue
        known = known or {column for other in read() for column in other.values}
        _check(file, missing, known)
        if gaps:
            yield replace(row, values=row.values | dict.fromkeys(missing))
        else:
            yield Row(row.place, complaint=f"it has no column {missing[0]}")


def _check(file: Path, columns: Iterable[str], known: Collection[str]) -> None:
    for column in sorted(columns):
        if column not in known:
            raise UsageError(f"{file} has no column {column!r}; {suggestion(column, sorted(known))}")


def _open(file: Path) -> BufferedReader:
    # Python's gzip is a reader of bytes in all that is needed here, whatever its class says.
    return gzip.open(file, "rb") if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[return-value]


# --- JSON ----------------------------------------------------------------------------------------------


def _jsonl(file: Path, columns: Collection[str], longest: int) -> Iterator[Row]:
    with _open(file) as opened:
        for number, line in enumerate(_lines(opened, longest), 1):
            place = f"{file.name}, line {number}"
            if line is None:
                yield Row(place, complaint=f"it is longer than {longest:,} bytes")
            elif bare := line.removeprefix(codecs.BOM_UTF8).strip():
                yield _object(place, bare)


def _lines(opened: BufferedReader, longest: int) -> Iterator[bytes | None]:
    """The lines of a file; None for one that is too long, of which no more is held."""
    while line := opened.readline(longest + len("\r\n")):
        if len(line.rstrip(b"\r\n")) <= longest:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = opened.readline(longest)
        yield None


def _object(place: str, text: bytes) -> Row:
    try:
        value = _parsed(text.decode())
    except UnicodeDecodeError:
        return Row(place, complaint="it is not UTF-8 text")
    except json.JSONDecodeError as error:
        return Row(place, complaint=f"it is not JSON: {error.msg} (at character {error.pos + 1})")
    except RecursionError:
        return Row(place, complaint="it is not JSON: it is nested too deeply")
    except ValueError:
        return Row(place, complaint="it is not JSON: a number in it has too many digits")
    return _row(place, value)


def _json(file: Path, columns: Collection[str], longest: int) -> Iterator[Row]:
    with _open(file) as opened:
        text = opened.read().decode("utf-8-sig")
    if not text.lstrip().startswith("["):
        yield from _jsonl(file, columns, longest)
        return
    for number, item in enumerate(_parsed(text), 1):
        yield _row(f"{file.name}, item {number}", item)


def _parsed(text: str) -> Any:
    """What a JSON text says. Halves of letters, which JSON can hold and nothing can send, become a mark."""
    value = json.loads(text)
    if not _HALF.search(text):
        return value
    mended = (
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return json.loads(mended)


def _row(place: str, value: object) -> Row:
    return Row(place, value) if isinstance(value, dict) else Row(place, complaint="it is not an object")


# --- CSV -----------------------------------------------------------------------------------------------


def _csv(file: Path, columns: Collection[str], longest: int) -> Iterator[Row]:
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
                yield Row(f"{file.name}, line {line}", complaint=f"it is not CSV: {error}")
            else:
                if cells:
                    yield _cells(f"{file.name}, line {line}", head, cells)


def _cells(place: str, head: list[str], cells: list[str]) -> Row:
    if len(cells) != len(head):
        return Row(place, complaint=f"it has {len(cells)} cells, and the head {len(head)}")
    if not _is_text(cells):
        return Row(place, complaint="it is not UTF-8 text")
    return Row(place, dict(zip(head, cells, strict=True)))


def _is_text(cells: list[str]) -> bool:
    """Whether no byte of them was left undecoded."""
    return not any("\udc80" <= letter <= "\udcff" for letter in "".join(cells))


# --- parquet -------------------------------------------------------------------------------------------


def _parquet(file: Path, columns: Collection[str], longest: int) -> Iterator[Row]:
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
        # Threads of Arrow that still live when a short process ends may end it with an abort.
        for batch in table.iter_batches(batch_size=1024, columns=sorted(columns) or None, use_threads=False):
            for values in batch.to_pylist():
                number += 1
                yield Row(f"{file.name}, row {number}", values)
    except pa.ArrowException as error:
        raise ValueError(error) from None


_Reader = Callable[[Path, Collection[str], int], Iterator[Row]]
_READERS: Mapping[str, _Reader] = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}


def template_columns(template: str) -> tuple[str, ...]:
    """The columns that a template names, each once.

    Raises:
        ValueError: its braces are not those of columns.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} is no template: {error}; write {{{{ for a brace") from None
    named = [name for _, name, _, _ in parts if name is not None]
    if not all(named) or any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{template!r} is no template: name a column in each pair of braces, and no more")
    return tuple(dict.fromkeys(named)) or (template,)


def fill_template(template: str, values: Mapping[str, Any]) -> str:
    """The text for a row.

    Raises:
        KeyError: a column that is not there.
        ValueError: one that is empty.
    """
    if template_columns(template) == (template,):
        return show_cell(values, template)
    return "".join(
        literal + (show_cell(values, column) if column else "")
        for literal, column, _, _ in Formatter().parse(template)
    )


def show_cell(values: Mapping[str, Any], column: str) -> str:
    """A cell as a question shows it: a list becomes lettered lines; raises as `fill_template`."""
    value = values[column]
    if isinstance(value, list) and value:
        if len(value) > len(ascii_uppercase):
            raise ValueError(f"its {column} has more options than there are letters")
        return "\n".join(f"({letter}) {item}" for letter, item in zip(ascii_uppercase, value, strict=False))
    return cell_text(values, column)


def cell_text(values: Mapping[str, Any], column: str) -> str:
    """A cell as text: numbers as people write them, lists and objects as JSON; raises as `fill_template`."""
    value = values[column]
    if is_empty(value):
        raise ValueError(f"its {column} is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def is_empty(value: object) -> bool:
    """Whether a cell holds nothing."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def cell_equals(value: object, wanted: str | float | bool) -> bool:
    """Whether a cell holds a value; in a CSV every cell is text."""
    if isinstance(value, str) and not isinstance(wanted, str):
        try:
            value = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return False
    return bool(value == wanted)
