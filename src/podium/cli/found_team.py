"""Finds the team file of a command: the one that its options name, or team.toml in the working folder."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cli.found_files import FILE
from podium.cli.team_options import TeamOptions
from podium.cli.trust import FoundTeam
from podium.config import SettingsSource
from podium.errors import UsageError
from podium.team.team_file import TeamReference, named_store, read_team, smaller_day_limit


def find_team(options: TeamOptions, overrides: Sequence[str] = ()) -> TeamReference:
    """The team that a command names, with what its options and `overrides` change."""
    if options.team is not None and options.no_team:
        raise UsageError(f"--team names {options.team}, and --no-team no file; give one of them.")
    if stray := next((text for text in overrides if "=" not in text), None):
        raise UsageError(
            f"{stray.strip()!r} is one argument too many; put a text of several words in quotes, and write a key as "
            "KEY=VALUE."
        )
    overrides = (*options.overrides(), *overrides)
    if options.team is not None:
        return TeamReference(options.team, overrides)
    found = None if options.no_team else FoundTeam.find()
    return TeamReference(None, overrides) if found is None else found.usable_team(overrides)


def found_store() -> str | None:
    """The store that team.toml of the working folder names, or None."""
    found = FoundTeam.find()
    if found is None or "store" not in found.source.tables:
        return None
    found.usable_team(())
    return named_store(found.source)


def found_day_usd() -> float | None:
    """The most dollars of a day: those of team.toml in the working folder, or of `$PODIUM_DAY_BUDGET_USD` if these are
    less. None if neither is set. No trust is needed."""
    found = FoundTeam.find()
    written = None if found is None else found.settings_by_key.get("budget.day_usd")
    settings = read_team(SettingsSource(FILE, {"budget": {"day_usd": written}}))
    return smaller_day_limit(settings.budget.day_usd)
