"""Which team files of folders the user trusts: `podium trust`, and what commands may use of a file that they found.

A team file that lies in the working folder, and that the user did not name, may have come with a cloned repository.
Only its limits hold before `podium trust` has kept its content, and that of the files that it refers to
(`found_files`), in a JSON file of digests.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from cyclopts import Parameter

from podium.cli.found_files import FILE, FoundFiles, read_regular
from podium.cli.options import Flag
from podium.cli.printable import counted, print_columns, printable, say
from podium.cli.terminal import require_yes
from podium.config import SettingsSource, read_file, to_overrides
from podium.errors import ConfigError, UsageError
from podium.files.atomic import atomic_file
from podium.files.locations import data_folder
from podium.team.team_file import TeamReference, check_tables, smaller_day_limit

_LIMITS = frozenset(f"budget.{key}" for key in ("calls", "tokens", "usd", "seconds", "run_usd", "day_usd"))
"""The keys that need no trust: each can only make a command do less."""


def trust_file(
    file: Path = Path(FILE),
    /,
    *,
    list_: Annotated[Flag, Parameter(name="--list")] = False,
    revoke_: Annotated[Flag, Parameter(name="--revoke")] = False,
    yes: Flag = False,
) -> int:
    """Let the commands obey the team.toml of a folder, until it or a file that it refers to changes.

    Args:
        file: The team file of a folder.
        list_: List the trusted files.
        revoke_: Trust the file no longer.
        yes: Trust it without asking.
    """
    if list_:
        print_columns([(kept.since, name) for name, kept in trusted_files().items()])
        return 0
    if revoke_:
        if not revoke(file):
            raise UsageError(f"{file} is not trusted; `podium trust --list` lists what is.")
        say(f"{file} is trusted no longer.")
        return 0
    found = FoundTeam(file)
    check_tables(found.source)
    before = found.trusted_before
    if before is not None and not before.changes(found.files):
        say(f"{file} has been trusted since {before.since}.")
        return 0
    files = found.files
    lines = [f"{file} sets", *(f"  {key} = {value}" for key, value in found.settings_by_key.items())]
    if files.effects:
        lines += ["It and the files that it refers to", *(f"  {effect}" for effect in files.effects)]
    lines += ["Files", *(f"  {name}" for name in files.digests)]
    lines += [f"Other users of this machine can change {name}." for name in files.open_to_others]
    print("\n".join(printable(line).replace("\n", "␊") for line in lines))
    if not yes:
        require_yes("Trust it?", f"{file} is not trusted.")
    trust(files)
    say(f"Trusted, with {counted(len(files.digests), 'file')}, until one of them changes.")
    return 0


class FoundTeam:
    """A team file that a folder has, and that the user did not name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = read_regular(path)
        if self._content is None and path.exists():
            raise ConfigError(f"{path}: cannot be read; make it a file that you may read.")
        files = {} if self._content is None else {path.absolute(): self._content}
        self.source = SettingsSource.read(path, files=files)

    @classmethod
    def find(cls) -> Self | None:
        """The file of the working folder, or None if there is none."""
        return cls(Path(FILE)) if Path(FILE).is_file() else None

    @cached_property
    def files(self) -> FoundFiles:
        """The file, and all that it refers to."""
        return FoundFiles(self.path, self._content)

    @cached_property
    def trusted_before(self) -> TrustedFile | None:
        """What the user trusted of this file, at whatever content."""
        return trusted_files().get(_key(self.path))

    @cached_property
    def settings_by_key(self) -> dict[str, Any]:
        """What the file sets, by dotted key; of workers their names."""
        found = {".".join(where): value for where, value in flat_tables(self.source.tables)}
        if isinstance(workers := found.get("worker"), list):
            named = [str(worker.get("name", "")) for worker in workers if isinstance(worker, Mapping)]
            found["worker"] = ", ".join(named)
        return found

    def without_trust_check(self, overrides: Sequence[str] = ()) -> TeamReference:
        """The team of the file, trusted or not, read from the bytes that `files` has."""
        return TeamReference(str(self.path), tuple(overrides), self.files.toml)

    def usable_team(self, overrides: Sequence[str]) -> TeamReference:
        """The team as far as a command may use it. Standard error says which file it is."""
        needing = [key for key in self.settings_by_key if key not in _LIMITS]
        if not needing:
            say(f"Read ./{FILE}: limits alone, which need no trust.", stderr=True)
            return self.without_trust_check(overrides)
        if self.trusted_before is not None and not self.trusted_before.changes(self.files):
            pool = self.source.tables.get("pool")
            pool_named = f", pool {pool}" if pool else ""
            say(f"Read ./{FILE} (trusted on {self.trusted_before.since}){pool_named}.", stderr=True)
            return self.without_trust_check(overrides)
        check_tables(self.source)  # A wrong key is said first.
        keys = ", ".join(needing)
        if any(text.startswith("pool=") for text in overrides):
            say(f"./{FILE} is not trusted, and the command names its own pool: left out {keys}.", stderr=True)
            limits = {key: value for key, value in self.settings_by_key.items() if key in _LIMITS}
            if "budget.day_usd" in limits:
                limits["budget.day_usd"] = smaller_day_limit(limits["budget.day_usd"])
            return TeamReference(None, (*to_overrides(limits), *overrides))
        raise UsageError(
            f"{self.trust_status()} It {_join_at_most((f'sets {keys}', *self.files.effects), 4)}. "
            f"`podium trust ./{FILE}` shows all of it and asks; --no-team works without it."
        )

    def trust_status(self) -> str:
        """Whether the user trusts this file, in one sentence."""
        if self.trusted_before is None:
            return f"./{FILE} lies in this folder and is not trusted."
        since = self.trusted_before.since
        if changes := self.trusted_before.changes(self.files):
            return f"./{FILE} is not trusted any more: since {since}, {_join_at_most(changes, 3)}."
        return f"./{FILE} was trusted on {since}."


def flat_tables(
    tables: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of a table and of the tables in it; of deeper tables, the whole."""
    for key, value in tables.items():
        if isinstance(value, Mapping) and not above:
            yield from flat_tables(value, (key,))
        else:
            yield (*above, key), value


def _join_at_most(texts: Sequence[str], most: int) -> str:
    unlisted = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {unlisted} more" if unlisted > 0 else "")


@dataclass(frozen=True)
class TrustedFile:
    """A settings file as the user trusted it."""

    digests: Mapping[str, str]
    """The digests of all files that were trusted, as `FoundFiles.digests` gives them."""
    since: str
    """The day, as 2026-11-27 (UTC)."""

    def changes(self, files: FoundFiles) -> tuple[str, ...]:
        """What is not as it was trusted, as "team.toml has changed". Empty if all is."""
        now, then = files.digests, self.digests
        return (
            *(f"{_short_path(name)} has changed" for name in now if name in then and now[name] != then[name]),
            *(f"{_short_path(name)} is new" for name in now if name not in then),
            *(f"{_short_path(name)} is gone" for name in then if name not in now),
        )


def trusted_path() -> Path:
    """`trusted.json` in the folder for data. PODIUM_STORE has no say: a relative one would lead into a found folder."""
    folder = data_folder()
    if not folder.is_absolute():
        raise UsageError(f"{folder} is not absolute; set XDG_DATA_HOME to an absolute path.")
    return folder / "trusted.json"


def trusted_files() -> dict[str, TrustedFile]:
    """All trusted settings files, by their real folder and name."""
    path = trusted_path()
    if not path.exists():
        return {}
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"Others can write {path}, so it says nothing of what you trust; remove it, and trust again."
        )
    try:
        return {file: TrustedFile(**entry) for file, entry in json.loads(read_file(path)).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read ({error}); remove it, and trust again.") from None


def trust(files: FoundFiles) -> None:
    """Keep that the user trusts these files, as they were read."""
    today = datetime.now(UTC).date().isoformat()
    _write(trusted_files() | {_key(files.path): TrustedFile(files.digests, today)})


def revoke(path: Path) -> bool:
    """Trust a settings file no longer; it need not exist. False: it was not trusted."""
    kept = trusted_files()
    if kept.pop(_key(path), None) is None:
        return False
    _write(kept)
    return True


def _write(kept: Mapping[str, TrustedFile]) -> None:
    path = trusted_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.touch(mode=0o600)
            part.write_text(json.dumps({file: asdict(entry) for file, entry in sorted(kept.items())}))
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}); set XDG_DATA_HOME.") from None


def _key(path: Path) -> str:
    """Where a settings file lies: the real path of its folder, and its name. If it is a link, its target is among the
    digests, and the paths in the file are seen from the link's folder."""
    return str(Path(os.path.realpath(path.parent)) / path.name)


def _short_path(name: str) -> str:
    """A path for a sentence: seen from the working folder where it is below it."""
    path, working_folder = Path(name), Path(os.path.realpath("."))
    return str(path.relative_to(working_folder)) if path.is_relative_to(working_folder) else name
