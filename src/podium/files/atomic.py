"""Writes files and folders whole, even if the process is killed: under a hidden name, then renamed. Locks folders."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podium.errors import StoreError, UsageError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """The hidden name under which the block writes a file that then takes the place of `path`. After a kill or an error
    there is the old file or the new one, never a part. Several processes may write the same file. A kill may leave the
    hidden one behind (`is_unfinished`)."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def named_file(path: Path) -> Iterator[Path]:
    """`atomic_file` of a file that the user named, or of the one that a link leads to. A pipe or a device is written as
    it is."""
    if path.exists() and not path.is_file():
        yield path
        return
    with atomic_file(Path(os.path.realpath(path))) as part:
        yield part


def replace_file(path: Path, content: bytes) -> None:
    """Write an `atomic_file`.

    Raises:
        StoreError: the disk is full or not writable.
    """
    try:
        with atomic_file(path) as part:
            part.write_bytes(content)
    except OSError as error:
        raise StoreError.of_file(path, error) from None


def is_unfinished(part: Path, path: Path) -> bool:
    """Whether `part` is the hidden name of an `atomic_file`, of any process, for `path`."""
    return part.name.startswith(f".{path.name}.") and part.suffix == ".part"


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """The hidden name under which the block makes a folder that then takes the place of `path`. A kill leaves no part
    of it at `path`; what it left elsewhere, the next call removes. One process at a time writes the folder."""
    part, old = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.old")
    shutil.rmtree(part, ignore_errors=True)
    yield part
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    part.rename(path)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Hold a folder for this process alone until the block or the process ends.

    Raises:
        UsageError: another process holds it.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"Another podium works in {path} at the moment; wait for it, or give another name."
            ) from None
        yield
    finally:
        os.close(folder)
