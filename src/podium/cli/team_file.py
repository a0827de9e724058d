"""Finds the team file of a command: the one that its options name, or team.toml in the working folder.

A file that was found, and not named, may have come with a cloned repository: until the user trusts it (`trust_store`),
only its limits hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from podium.cli.found_files import FILE, FoundFiles, read_regular
from podium.cli.printable import say
from podium.cli.team_options import TeamOptions
from podium.config import SettingsSource, to_overrides
from podium.errors import ConfigError, UsageError
from podium.team.team_file import TeamFile, check_tables, named_store, read_team, smaller_day_limit

if TYPE_CHECKING:
    from podium.cli.trust_store import Trusted

_LIMITS = frozenset(f"budget.{key}" for key in ("calls", "tokens", "usd", "seconds", "run_usd", "day_usd"))
"""The keys that need no trust: each can only make a command do less."""


def find_team(options: TeamOptions, keys: Sequence[str] = ()) -> TeamFile:
    """The team that a command names, with what its options and `keys` override."""
    if options.team is not None and options.no_team:
        raise UsageError(f"--team names {options.team}, and --no-team no file; give one of them.")
    if stray := next((text for text in keys if "=" not in text), None):
        raise UsageError(
            f"{stray.strip()!r} is one argument too many; put a text of several words in quotes, and write a key as "
            "KEY=VALUE."
        )
    overrides = (*options.overrides(), *keys)
    if options.team is not None:
        return TeamFile(options.team, overrides)
    team_file = None if options.no_team else FoundTeam.find()
    return TeamFile(None, overrides) if team_file is None else team_file.usable_team(overrides)


def found_store() -> str | None:
    """The store that team.toml of the working folder names, or None."""
    team_file = FoundTeam.find()
    if team_file is None or "store" not in team_file.source.tables:
        return None
    team_file.usable_team(())
    return named_store(team_file.source)


def found_day_usd() -> float | None:
    """The most dollars of a day: those of team.toml in the working folder, or of `$PODIUM_DAY_BUDGET_USD` if these are
    less. None if neither is set. No trust is needed."""
    team_file = FoundTeam.find()
    written = None if team_file is None else team_file.settings_by_key.get("budget.day_usd")
    settings = read_team(SettingsSource(FILE, {"budget": {"day_usd": written}}))
    return smaller_day_limit(settings.budget.day_usd)


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
    def trusted_before(self) -> Trusted | None:
        """What the user trusted of this file, at whatever content."""
        from podium.cli.trust_store import all_trusted  # noqa: PLC0415 - loads sqlite3

        return all_trusted().get(self.files.key)

    @cached_property
    def settings_by_key(self) -> dict[str, Any]:
        """What the file sets, by dotted key; of workers their names."""
        found = {".".join(where): value for where, value in flat_tables(self.source.tables)}
        if isinstance(workers := found.get("worker"), list):
            named = [str(worker.get("name", "")) for worker in workers if isinstance(worker, Mapping)]
            found["worker"] = ", ".join(named)
        return found

    def without_trust_check(self, overrides: Sequence[str] = ()) -> TeamFile:
        """The team of the file, trusted or not, read from the bytes that `files` has."""
        return TeamFile(str(self.path), tuple(overrides), self.files.toml)

    def usable_team(self, overrides: Sequence[str]) -> TeamFile:
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
            return TeamFile(None, (*to_overrides(limits), *overrides))
        raise UsageError(
            f"{self.trust_status()} It {_join_at_most((f'sets {keys}', *self.files.acts), 4)}. "
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
