"""The run folders under one folder, as their files say; read anew each time, for they may be written meanwhile.

A name is looked up among those that are found, so none leads out of the folder. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_METRICS, _CONFIG, _COMPARISON = "metrics.jsonl", "config.json", "comparison.json"
_DEEPEST = 3
_MOST = 2000
"""Runs that are listed."""
_LATEST = ("reward", "accuracy", "valid", "loss")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run folder."""

    name: str
    """Its path from the folder of runs, with slashes."""
    path: Path

    def summary(self) -> dict[str, Any]:
        """What a list shows of it."""
        content = _bytes(self.path / _METRICS)
        lines = content.split(b"\n")[:-1]
        comparison = None if lines else self.comparison()
        if lines:
            row = _json(lines[-1])
            latest = {key: row[key] for key in _LATEST if key in row} if isinstance(row, dict) else {}
        else:
            latest = _compared(comparison)
        return {
            "name": self.name,
            "kind": "training" if lines or comparison is None else "evaluation",
            "iterations": len(lines),
            "updated_at": datetime.fromtimestamp(self._changed(), UTC).isoformat(timespec="seconds"),
            "latest": latest,
        }

    def configuration(self) -> Any:
        """Its settings; None where it has none that can be read."""
        return _json(_bytes(self.path / _CONFIG))

    def comparison(self) -> Any:
        """What it was compared with; None where it was not."""
        return _json(_bytes(self.path / _COMPARISON))

    def compared_at(self) -> int:
        """When that was written, as a mark that changes with it; 0: never."""
        try:
            return (self.path / _COMPARISON).stat().st_mtime_ns
        except OSError:
            return 0

    def rows(self) -> RowsRead:
        """All whole rows of its metrics."""
        return RowsRead(self.path / _METRICS)

    def _changed(self) -> float:
        found = []
        for name in (_METRICS, _COMPARISON, _CONFIG):
            try:
                found.append((self.path / name).stat().st_mtime)
            except OSError:
                continue
        return max(found, default=0.0)


class RowsRead:
    """Reads a file of rows on and on, as it grows. A line that is not whole yet waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._file = 0
        """The file's number: another, when it was written anew."""

    def read(self) -> tuple[bool, list[Any]]:
        """Whether it was written anew, so that what was read before no longer holds; and the rows since then."""
        try:
            with self._path.open("rb") as file:
                at = os.fstat(file.fileno())
                anew = bool(self._file) and (at.st_ino != self._file or at.st_size < self._place)
                if anew:
                    self._place = 0
                self._file = at.st_ino
                file.seek(self._place)
                content = file.read()
        except OSError:
            return False, []
        whole = content[: content.rfind(b"\n") + 1]
        self._place += len(whole)
        return anew, [_json(line) for line in whole.split(b"\n")[:-1]]


def find_runs(folder: Path) -> dict[str, RunFiles]:
    """The run folders under `folder` by name, the latest first."""
    found = list(_found(folder, folder, _DEEPEST))
    found.sort(key=lambda run: (-run._changed(), run.name))
    return {run.name: run for run in found[:_MOST]}


def _found(folder: Path, root: Path, depth: int) -> Iterator[RunFiles]:
    try:
        with os.scandir(folder) as entries:
            folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in folders:
        path = folder / name
        if name.startswith("."):
            continue
        if any((path / file).is_file() for file in (_METRICS, _COMPARISON)):
            yield RunFiles(path.relative_to(root).as_posix(), path)
        elif depth > 1:
            yield from _found(path, root, depth - 1)


def _compared(comparison: Any) -> dict[str, float]:
    try:
        return {"accuracy": float(comparison["rows"][0]["accuracy"]["mean"])}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _json(content: bytes) -> Any:
    """What it says, with null for what JSON has no word for; None where it says nothing."""
    try:
        return json.loads(content, parse_constant=lambda word: None)
    except ValueError:
        return None
