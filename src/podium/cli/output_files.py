"""Checks and makes the path that a verb writes to, so that no file is overwritten by mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from podium.errors import UsageError
from podium.recordings import header_path


def check_recording_path(out: Path) -> None:
    """Refuse a path that does not end in .parquet; or if it, or the same path with .json, is a folder."""
    if out.suffix != ".parquet":
        raise UsageError(f"{out}: a recording's file is called NAME.parquet.")
    for file in (out, header_path(out)):
        try:
            folder = file.is_dir()
        except OSError as error:
            raise UsageError(f"{file}: this path cannot be used: {error.strerror}.") from None
        if folder:
            raise UsageError(f"{file} is a folder; give another name.")


def refuse_existing(files: Sequence[Path], way_out: str, *, option: str | None = None) -> None:
    """Raise a `UsageError` that names the files that exist.

    Args:
        way_out: what the user can do instead of giving another name; "{them}" stands for the files, as in
            "remove {them}".
        option: the option that names the file.
    """
    there = [str(file) for file in files if file.exists()]
    if there:
        exist, them = ("exist", "them") if len(there) > 1 else ("exists", "it")
        named = "" if option is None else f" with {option}"
        raise UsageError(
            f"{' and '.join(there)} {exist} already; give another name{named}, or {way_out.format(them=them)}."
        )


@contextmanager
def parent_folder(file: Path) -> Iterator[None]:
    """Make the folder of a file that will be written. If the block fails, remove the folders that were made."""
    missing = [folder for folder in file.parents if not folder.exists()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{file.parent}: this folder cannot be made: {error.strerror}.") from None
    try:
        yield
    except BaseException:
        with suppress(OSError):  # A folder that is not empty stays.
            for folder in missing:
                folder.rmdir()
        raise
