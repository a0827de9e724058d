"""A run's folder: the run's configuration, its rows of metrics, and any other files of its caller.

Evaluations and trainings write one. A folder refuses to resume a run with another configuration. It knows nothing about
checkpoints: the caller that resumes a run says how many rows to keep.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from podium.errors import RunMismatchError, StoreError
from podium.files.atomic import is_unfinished, replace_file
from podium.rollout.data_fingerprint import DataFingerprint

CONFIG, _DATA = "config.json", "data.json"
TRACES = "traces.sqlite"
"""The file in a run's folder that holds the traces of its rollouts."""


class JsonLines:
    """An append-only JSONL file. A last line that a kill left incomplete is ignored.

    Its methods raise a `StoreError` if the file cannot be written, and a `RunMismatchError` if it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """All complete rows, in order. There are none if the file does not exist."""
        rows = []
        for number, line in enumerate(self._lines(), 1):
            try:
                rows.append(json.loads(line))
            except ValueError:
                raise RunMismatchError(
                    f"{self.path}, line {number}: this is no row of metrics; restore the file, or choose a new folder."
                ) from None
        return rows

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row to disk before returning."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            with self.path.open("a+b") as file:
                cut_torn_line(self.path)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError.of_file(self.path, error) from None

    def truncate(self, rows: int) -> None:
        """Keep only the first `rows` rows. A resumed run writes the rows after its checkpoint again."""
        lines = self._lines()[:rows]
        if len(lines) < rows:
            raise RunMismatchError(
                f"{self.path} has {len(lines)} rows, and the checkpoint beside it follows {rows}; restore the file, or "
                "choose a new folder."
            )
        replace_file(self.path, b"".join(line + b"\n" for line in lines))

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []


class RunFolder:
    """One run, training or evaluation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(
        cls,
        path: Path,
        configuration: Mapping[str, Any] | BaseModel,
        *,
        changeable: Collection[str] = (),
        data: DataFingerprint | None = None,
        begun: bool = True,
    ) -> Self:
        """Begin the run, or resume it if the folder holds a run of the same configuration and data.

        Args:
            configuration: all settings of the run, as a model or a JSON value.
            changeable: dotted keys whose values may differ from those with which the run began, such as a time limit.
            data: the questions and workers of the run. If it is None, they are not compared.
            begun: whether the run already has results. If not, its configuration and data replace the stored ones.

        Raises:
            RunMismatchError: the folder was made with another configuration or other data, or is not a run's folder.
        """
        wanted = cls.check(path, configuration, changeable=changeable, begun=begun)
        run, has_data = cls(path), (path / _DATA).exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError.of_file(path, error) from None
        if data is not None and has_data:
            run.check_or_store_data(data, begun=begun)
        # Without this file, a full disk would leave a folder that holds something other than a run.
        replace_file(path / CONFIG, json.dumps(wanted, indent=2, ensure_ascii=False).encode() + b"\n")
        if data is not None and not has_data:
            run.check_or_store_data(data)
        return run

    @staticmethod
    def check(
        path: Path,
        configuration: Mapping[str, Any] | BaseModel,
        *,
        changeable: Collection[str] = (),
        begun: bool = True,
    ) -> dict[str, Any]:
        """Check, without writing, that `open` would accept the folder. Returns the configuration as JSON.

        Raises:
            RunMismatchError: see `open`.
        """
        wanted = (
            configuration.model_dump(mode="json")
            if isinstance(configuration, BaseModel)
            else json.loads(json.dumps(configuration))
        )
        file = path / CONFIG
        # Look at the folder before the file, since another process may write the file meanwhile.
        holds_something = path.exists() and (
            not path.is_dir() or any(not is_unfinished(entry, file) for entry in path.iterdir())
        )
        if file.is_file():
            stored = _stored(file)
            if begun or stored.keys() != wanted.keys():  # A run of another kind has other keys.
                _refuse_difference(path, stored, wanted, changeable)
        elif holds_something:
            raise RunMismatchError(
                f"{path} holds something other than a run (it has no {CONFIG}); choose a new folder."
            )
        return wanted

    def check_or_store_data(self, data: DataFingerprint, *, begun: bool = True) -> None:
        """Store the fingerprint of the run's questions and workers, or compare it with the stored fingerprint.

        Args:
            begun: whether the run already has results. If not, the new fingerprint replaces a stored one.

        Raises:
            RunMismatchError: the two differ. The message names what changed.
        """
        file = self.path / _DATA
        if not begun or not file.exists():
            replace_file(file, data.model_dump_json(indent=2).encode() + b"\n")
            return
        try:
            changes = DataFingerprint.model_validate_json(file.read_bytes()).changes(data)
        except (OSError, ValidationError):
            raise RunMismatchError(
                f"{file} does not say which questions the run has; choose a new folder."
            ) from None
        if changes:
            raise RunMismatchError(
                f"{self.path} is a run with other data: changed since it began: {'; '.join(changes)}. Choose a new "
                "folder, or restore what the run began with."
            )

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration that the run was last opened with."""
        return _stored(self.path / CONFIG)

    def rows(self, name: str = "metrics") -> JsonLines:
        """The rows in `<name>.jsonl`."""
        return JsonLines(self.path / f"{name}.jsonl")


def _stored(file: Path) -> dict[str, Any]:
    try:
        stored = json.loads(file.read_bytes())
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        raise RunMismatchError(f"{file} is not a run's configuration; choose a new folder.")
    return stored


def _refuse_difference(
    path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any], changeable: Collection[str]
) -> None:
    before, now = dict(_flat(stored)), dict(_flat(wanted))
    absent = object()
    differing = [
        key
        for key in sorted(before.keys() | now.keys())
        if key not in changeable and before.get(key, absent) != now.get(key, absent)
    ]
    if not differing:
        return
    shown = "; ".join(f"{key} was {_show(before, key)} and is now {_show(now, key)}" for key in differing[:5])
    rest = f"; and {len(differing) - 5} more" if len(differing) > 5 else ""
    raise RunMismatchError(
        f"{path} is a run of another configuration: {shown}{rest}. "
        "Choose a new folder, or give the settings with which the run began."
    )


def _show(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key], ensure_ascii=False) if key in values else "not set"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and their values. Tables are flattened, but lists and empty tables are values."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item


def cut_torn_line(path: Path) -> None:
    """Remove an incomplete last line, which a killed writer leaves."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
