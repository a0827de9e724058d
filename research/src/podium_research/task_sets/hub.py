"""Task sets whose rows are a dataset on the Hugging Face hub.

A file is searched in `$PODIUM_DATA/OWNER/NAME/` (in the dataset's own layout), then in the hub's cache, and only then
fetched from the hub. If it cannot be fetched, the error says which files to put where. The cache is never refreshed: if
a dataset has changed on the hub, fetch it again by hand.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from podium.errors import ConfigError
from podium.files.tables import Row, read_rows
from podium.plugin_api.tasks import GraderSettings, Sample, TaskSetSpec
from podium.tasks.sets.base import BadRow, LoadedSplit, read_tasks
from podium.tasks.task import SPLITS

DATA_VARIABLE = "PODIUM_DATA"
"""The environment variable that names the user's folder of datasets."""
_PIECE = re.compile(r"(.*)-(\d{5})-of-(\d{5})(?=[-.])")
"""The name of one piece of a file."""


class HubSet(TaskSetSpec):
    """A task set on the hub. A subclass names its dataset, its files and its grader, and reads a row."""

    source: ClassVar[str]
    """OWNER/NAME of the dataset, or of the main one if there are several."""
    licence: ClassVar[str]
    on_bad_row: BadRow = "skip"

    @property
    @abstractmethod
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """The files of each split of the dataset, as patterns, because a name may end in a hash of its content."""

    def source_of(self, split: str) -> str:
        """OWNER/NAME of the dataset that holds a split."""
        return self.source

    @property
    @abstractmethod
    def grader(self) -> GraderSettings: ...

    @abstractmethod
    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        """The sample in a row, or None if the row is left out. Raises ValueError or KeyError if the row is broken."""

    @property
    def source_splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split in self.files)

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        return {split: self._read(split) for split in splits}

    def _read(self, split: str) -> LoadedSplit:
        return read_tasks(
            self._rows(split), self.record_to_sample, self.grader, name=self.set, on_bad_row=self.on_bad_row
        )

    def _rows(self, split: str) -> Iterator[Row]:
        for pattern in self.files[split]:
            for file in find_files(self.source_of(split), pattern):
                yield from read_rows(file)


def find_files(repo: str, pattern: str) -> list[Path]:
    """Find the files of a dataset whose names match, in order: in the user's folder, else on the hub.

    Raises:
        ConfigError: files or pieces of them are missing and cannot be fetched; the message says what to put where.
    """
    folder = os.environ.get(DATA_VARIABLE)
    local_files = _matching(Path(folder).expanduser() / repo, pattern) if folder else []
    return local_files or _fetched(repo, pattern)


def _fetched(repo: str, pattern: str) -> list[Path]:
    """Find the files in the hub's cache, else fetch them from the hub."""
    try:
        from huggingface_hub import errors as hub  # noqa: PLC0415
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - takes a while to load
    except ImportError:
        raise ConfigError(_absent(repo, pattern, "huggingface_hub is not installed")) from None
    reason = ""
    for cached in (True, False):
        try:
            fetched = snapshot_download(
                repo, repo_type="dataset", allow_patterns=pattern, local_files_only=cached
            )
        except hub.GatedRepoError:
            raise ConfigError(
                f"{pattern} of the dataset {repo} is not on this machine, and the hub gives it only to users who "
                f"accept its terms: do so at https://huggingface.co/datasets/{repo}, then: hf auth login."
            ) from None
        except (hub.RepositoryNotFoundError, hub.RevisionNotFoundError):
            reason = "the hub knows no such dataset, or does not show it to you"
        except hub.LocalEntryNotFoundError:
            reason = "the hub is not reached"
        except (hub.HTTPError, OSError, ValueError, RuntimeError) as error:  # type: ignore[attr-defined]
            reason = f"the hub does not give it ({str(error).partition(chr(10))[0]})"
        else:
            if fetched_files := _matching(Path(fetched), pattern):
                return fetched_files
            reason = "the hub does not give such a file"
    raise ConfigError(_absent(repo, pattern, reason))


def _matching(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder whose names match, in order; none if pieces of one are missing."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    matching_names = sorted(name for name in names if fnmatchcase(name, pattern))
    pieces = [piece.groups() for name in matching_names if (piece := _PIECE.match(name))]
    piece_count = sum(int(of) for _, of in {(whole, of) for whole, _, of in pieces})
    return [names[name] for name in matching_names] if len(pieces) == piece_count else []


def _absent(repo: str, pattern: str, reason: str) -> str:
    return (
        f"{pattern} of the dataset {repo} is not on this machine, or only in part, and {reason}; on a "
        f"machine that reaches the hub, run: hf download {repo} --repo-type dataset --local-dir DATA/{repo}; "
        f"then set {DATA_VARIABLE}=DATA."
    )


def text_column(values: Mapping[str, Any], column: str) -> str:
    """The text of a column, which must not be empty.

    Raises:
        KeyError: there is no such column.
        ValueError: it holds no text.
    """
    value = values[column]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"its {column} holds no text")
    return value


def list_column(values: Mapping[str, Any], column: str) -> list[str]:
    """The list of texts of a column; it may be empty. Raises what `text_column` raises."""
    value = values[column]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"its {column} holds no list of texts")
    return value


def int_column(values: Mapping[str, Any], column: str) -> int:
    """The whole number of a column. Raises what `text_column` raises."""
    value = values[column]
    if not isinstance(value, int):
        raise ValueError(f"its {column} holds no whole number")
    return value
