"""Files that importers read: JSON in folders and in zips, one document in memory at a time, checked against a form."""

from __future__ import annotations

import hashlib
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
"""What reading a zip raises in addition to ValueError. RuntimeError: it is encrypted, packed in an unknown way, or its
JSON is nested too deeply."""


class Document(BaseModel):
    """A part of a source's JSON: the fields that we read; others are ignored."""

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


def folders(path: Path, what: str) -> list[Path]:
    """The folders in `path`, in order.

    Raises:
        UsageError: there is none.
    """
    found = sorted(inner for inner in path.iterdir() if inner.is_dir()) if path.is_dir() else []
    if not found:
        raise UsageError(f"{path} holds no folders; give {what}.")
    return found


def files(path: Path, pattern: str, what: str) -> list[Path]:
    """The files in `path` of that pattern, in order.

    Raises:
        UsageError: there is none.
    """
    found = sorted(path.glob(pattern)) if path.is_dir() else []
    if not found:
        raise UsageError(f"{path} holds no {pattern}; give {what}.")
    return found


def identity(*parts: str) -> str:
    """A short name for what these words say, the same for ever: 16 hex digits."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _parse(content: bytes, form: TypeAdapter[T]) -> T:
    # Through Python's reader first: a text that was cut in the middle of a letter is no reason to stop.
    whole = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    return form.validate_json(whole)


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"is of another form than expected (at {place or 'its top'}: {first['msg']})"
