"""Sets whose files are a dataset on the Hugging Face hub: taken from a folder of the user's, or fetched.

A file is looked for in `$PODIUM_DATA/OWNER/NAME/` (the dataset's own layout), then in the hub's cache, then on the hub.
So nothing is fetched where the files are there, and where they cannot be fetched the error says what to put where.
What is in the cache is taken as it is: a dataset that has changed since then is not seen until it is fetched again.
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
from podium.rows import Row, read_rows
from podium.tasks.graders.base import GraderSettings
from podium.tasks.sets.base import (
    BadRow,
    LoadedSplit,
    Sample,
    TaskSetSpec,
    available_splits,
    read_disjoint,
    read_tasks,
)

DATA_VARIABLE = "PODIUM_DATA"
"""The environment variable that names the user's folder of datasets."""
_PIECE = re.compile(r"(.*)-(\d{5})-of-(\d{5})(?=[-.])")
"""The name of a file that comes in pieces."""


class HubSet(TaskSetSpec):
    """A dataset of the hub.

    A set with training questions and no validation split keeps a tenth of them for it, by a hash of their text. A
    question of a later split (test, then validation) is left out of the earlier ones, by its text.
    """

    source: ClassVar[str]
    """OWNER/NAME of the dataset; where there are several, of the one that the set is known by."""
    licence: ClassVar[str]
    on_bad_row: BadRow = "skip"

    @property
    @abstractmethod
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """For each split that the dataset has its files, as patterns: a name may end in a hash of its content."""

    def source_of(self, split: str) -> str:
        """OWNER/NAME of the dataset that holds a split, under these settings."""
        return self.source

    @property
    @abstractmethod
    def grader(self) -> GraderSettings: ...

    @abstractmethod
    def record_to_sample(self, values: Mapping[str, Any]) -> Sample | None:
        """What a row says; None: it is not wanted. Raises ValueError or KeyError where the row is broken."""

    @property
    def splits(self) -> tuple[str, ...]:
        return available_splits(self.files)

    def read(self, split: str) -> LoadedSplit:
        return self.read_splits((split,))[split]

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        return read_disjoint(self.files, splits, self._read)

    def _read(self, split: str) -> LoadedSplit:
        return read_tasks(
            self._rows(split), self.record_to_sample, self.grader, name=self.set, on_bad_row=self.on_bad_row
        )

    def _rows(self, split: str) -> Iterator[Row]:
        for pattern in self.files[split]:
            for file in find_files(self.source_of(split), pattern):
                yield from read_rows(file)


def find_files(repo: str, pattern: str) -> list[Path]:
    """The files of a dataset whose names match, in order; the user's own before the hub's.

    Raises:
        ConfigError: there are none, or not all pieces of them, and they cannot be fetched, with what to put where.
    """
    folder = os.environ.get(DATA_VARIABLE)
    found = _matching(Path(folder).expanduser() / repo, pattern) if folder else []
    return found or _fetched(repo, pattern)


def _fetched(repo: str, pattern: str) -> list[Path]:
    """The same of the hub's cache, and then of the hub."""
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
                f"{pattern} of the dataset {repo} is not here, and the hub gives it to those alone who accept its "
                f"terms: do so at https://huggingface.co/datasets/{repo}, then: hf auth login."
            ) from None
        except (hub.RepositoryNotFoundError, hub.RevisionNotFoundError):
            reason = "the hub knows no such dataset, or does not show it to you"
        except hub.LocalEntryNotFoundError:
            reason = "the hub is not reached"
        except (hub.HTTPError, OSError, ValueError, RuntimeError) as error:  # type: ignore[attr-defined]
            reason = f"the hub does not give it ({str(error).partition(chr(10))[0]})"
        else:
            if found := _matching(Path(fetched), pattern):
                return found
            reason = "the hub does not give such a file"
    raise ConfigError(_absent(repo, pattern, reason))


def _matching(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder whose names match, in order; none where pieces of one are missing."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found = sorted(name for name in names if fnmatchcase(name, pattern))
    pieces = [piece.groups() for name in found if (piece := _PIECE.match(name))]
    wanted = sum(int(of) for _, of in {(whole, of) for whole, _, of in pieces})
    return [names[name] for name in found] if len(pieces) == wanted else []


def _absent(repo: str, pattern: str, reason: str) -> str:
    return (
        f"{pattern} of the dataset {repo} is not here, or not all of it, and {reason}; on a machine that reaches the "
        f"hub: hf download {repo} --repo-type dataset --local-dir DATA/{repo}; then set {DATA_VARIABLE}=DATA."
    )
