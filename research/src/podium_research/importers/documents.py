"""Reads and validates the JSON files of sources, in folders or zips, with one document in memory at a time."""

from __future__ import annotations

import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from podium.errors import UsageError

T = TypeVar("T")
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
"""The errors of reading a zip, besides ValueError. RuntimeError: it is encrypted or compressed in an unknown way, or
its JSON is nested too deep."""


class SourceDocument(BaseModel):
    """An object in the JSON of a source, with the fields that we read; other fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


def read_json(path: Path, form: TypeAdapter[T]) -> T:
    """The document in a file.

    Raises:
        UsageError: it is not JSON, or of another form.
    """
    try:
        return _parse(path.read_bytes(), form)
    except ValidationError as error:
        raise UsageError(f"{path} {_fault(error)}; fetch it again.") from None
    except (ValueError, OSError, RecursionError):
        raise UsageError(f"{path} is not a JSON file that can be read; fetch it again.") from None


def read_json_lines(path: Path, form: TypeAdapter[T]) -> Iterator[T]:
    """The documents in a file of JSON lines.

    Raises:
        UsageError: a line is not JSON, or of another form; the message names the line.
    """
    location = str(path)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                location = f"{path}, line {number},"
                if line.strip():
                    yield _parse(line, form)
    except ValidationError as error:
        raise UsageError(f"{location} {_fault(error)}; fetch it again.") from None
    except (ValueError, OSError, RecursionError):
        raise UsageError(f"{location} is not JSON that can be read; fetch it again.") from None


def zipped_json(path: Path, form: TypeAdapter[T]) -> Iterator[T]:
    """The JSON documents in a zip.

    Raises:
        UsageError: it is not a zip, or one of them is not JSON, or of another form.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".json") and not name.startswith("__MACOSX"):
                    yield _parse(archive.read(name), form)
    except ValidationError as error:
        raise UsageError(f"{path} {_fault(error)}; fetch it again.") from None
    except (ValueError, *_BROKEN):
        raise UsageError(f"{path} is not a zip of JSON files; fetch it again.") from None


def list_folders(path: Path, what: str) -> list[Path]:
    """The folders in `path`, in order.

    Raises:
        UsageError: there is none.
    """
    folders = sorted(inner for inner in path.iterdir() if inner.is_dir()) if path.is_dir() else []
    if not folders:
        raise UsageError(f"{path} holds no folders; give {what}.")
    return folders


def list_files(path: Path, pattern: str, what: str) -> list[Path]:
    """The files in `path` of that pattern, in order.

    Raises:
        UsageError: there is none.
    """
    files = sorted(path.glob(pattern)) if path.is_dir() else []
    if not files:
        raise UsageError(f"{path} holds no {pattern}; give {what}.")
    return files


def _parse(content: bytes, form: TypeAdapter[T]) -> T:
    # Python's reader accepts lone surrogates, as in texts that were cut within a character; pydantic's does not.
    whole = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    return form.validate_json(whole)


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    return f"is not of the expected form (at {key or 'its top'}: {first['msg']})"
