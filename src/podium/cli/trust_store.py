"""Which found settings files the user trusts: a JSON file keeps the digests of what the user has seen.

A settings file that lies in the working folder may have come with a cloned repository. Nobody obeys it before
`podium trust` has kept its content here, and the content of the files that it refers to (`found_files`).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.cli.found_files import FoundFiles, settings_key
from podium.config import read_file
from podium.errors import UsageError
from podium.files import atomic_file
from podium.sqlite_files import data_folder


@dataclass(frozen=True)
class Trusted:
    """A settings file as the user trusted it."""

    digests: Mapping[str, str]
    """The digests of all files that were trusted, as `FoundFiles.digests` gives them."""
    since: str
    """The day, as 2026-11-27 (UTC)."""

    def changes(self, files: FoundFiles) -> tuple[str, ...]:
        """What is not as it was trusted, as "team.toml has changed". Empty if all is."""
        now, then = files.digests, self.digests
        return (
            *(f"{_short(name)} has changed" for name in now if name in then and now[name] != then[name]),
            *(f"{_short(name)} is new" for name in now if name not in then),
            *(f"{_short(name)} is gone" for name in then if name not in now),
        )


def trusted_path() -> Path:
    """`trusted.json` in the folder for data. PODIUM_STORE has no say: a relative one would lead into a found folder."""
    folder = data_folder()
    if not folder.is_absolute():
        raise UsageError(f"{folder} is not absolute; set XDG_DATA_HOME to an absolute path.")
    return folder / "trusted.json"


def all_trusted() -> dict[str, Trusted]:
    """All trusted settings files, by `FoundFiles.key`."""
    path = trusted_path()
    if not path.exists():
        return {}
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"Others can write {path}, so it says nothing of what you trust; remove it, and trust again."
        )
    try:
        return {file: Trusted(**entry) for file, entry in json.loads(read_file(path)).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read ({error}); remove it, and trust again.") from None


def trust(files: FoundFiles) -> None:
    """Keep that the user trusts these files, as they were read."""
    _write(all_trusted() | {files.key: Trusted(files.digests, datetime.now(UTC).date().isoformat())})


def revoke(path: Path) -> bool:
    """Trust a settings file no longer; it need not exist. False: it was not trusted."""
    kept = all_trusted()
    if kept.pop(settings_key(path), None) is None:
        return False
    _write(kept)
    return True


def _write(kept: Mapping[str, Trusted]) -> None:
    path = trusted_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.touch(mode=0o600)
            part.write_text(json.dumps({file: asdict(entry) for file, entry in sorted(kept.items())}))
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}); set XDG_DATA_HOME.") from None


def _short(name: str) -> str:
    """A path for a sentence: seen from the working folder where it is below it."""
    path, working_folder = Path(name), Path(os.path.realpath("."))
    return str(path.relative_to(working_folder)) if path.is_relative_to(working_folder) else name
