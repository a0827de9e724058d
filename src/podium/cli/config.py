"""`podium config`: shows the settings of a team, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.cli.options import JSONArray
from podium.cli.printable import print_columns, say
from podium.cli.team_options import Override, PlannerOptions
from podium.cli.terminal import print_json
from podium.cli.trust import FoundTeam, flat_tables
from podium.team.settings import TeamSettings
from podium.team.team_file import TeamReference


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """One setting, with its value and where the value comes from."""

    key: str
    value: Any
    origin: Literal["file", "override", "environment", "default"]
    place: str
    """The file and its line, the override, or the variable; empty for a default."""


def show(*overrides: Override, team: PlannerOptions = PlannerOptions(), json: JSONArray = False) -> int:
    """Show every setting of the team with its value, and where it comes from: a line of the file, the command line, a
    variable of the environment, or the default. Shows a file that is not trusted too, and says so."""
    overrides = (*team.overrides(), *overrides)
    found = FoundTeam.find() if team.team is None and not team.no_team else None
    if found is not None:
        say(found.trust_status(), stderr=True)
    reference = TeamReference(team.team, overrides) if found is None else found.without_trust_check(overrides)
    settings = list(settings_of(reference))
    if json:
        print_json(settings)
        return 0
    rows = [
        (setting.key, "" if setting.value is None else str(setting.value), setting.place or setting.origin)
        for setting in settings
    ]
    print_columns([("key", "value", "from"), *rows])
    return 0


def settings_of(reference: TeamReference) -> Iterator[ResolvedSetting]:
    """Every setting of a team, in the order of the class. Of the workers there are the names."""
    team = reference.read()
    workers = ", ".join(worker.name for worker in team.worker)
    yield _setting(team, reference, ("worker",), workers or None)
    for where, value in flat_tables(team.model_dump(mode="json", exclude={"worker"})):
        yield _setting(team, reference, where, value)


def _setting(
    team: TeamSettings, reference: TeamReference, where: tuple[str, ...], value: Any
) -> ResolvedSetting:
    key, source = ".".join(where), team.source
    written: Any = {} if source is None else source.tables
    for part in where:
        written = written.get(part) if isinstance(written, dict) else None
    if written is None or source is None:
        return ResolvedSetting(key, value, "default", "")
    if reference.sets(key):
        return ResolvedSetting(key, value, "override", key)
    if key == "budget.day_usd" and value != written:
        return ResolvedSetting(key, value, "environment", "$PODIUM_DAY_BUDGET_USD")
    return ResolvedSetting(key, value, "file", source.location(where))
