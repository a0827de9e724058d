"""`podium trust`: shows what a settings file would do, and keeps that the user wants it so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.cli.found_files import FILE
from podium.cli.options import Flag
from podium.cli.printable import counted, print_columns, printable, say
from podium.cli.team_file import FoundTeam
from podium.cli.terminal import insist
from podium.cli.trust_store import all_trusted, revoke, trust
from podium.errors import UsageError
from podium.team.team_file import check_tables


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
        print_columns([(kept.since, name) for name, kept in all_trusted().items()])
        return 0
    if revoke_:
        if not revoke(file):
            raise UsageError(f"{file} is not trusted; `podium trust --list` lists what is.")
        say(f"{file} is trusted no longer.")
        return 0
    team_file = FoundTeam(file)
    check_tables(team_file.source)
    before = team_file.trusted_before
    if before is not None and not before.changes(team_file.files):
        say(f"{file} has been trusted since {before.since}.")
        return 0
    files = team_file.files
    lines = [f"{file} sets", *(f"  {key} = {value}" for key, value in team_file.settings_by_key.items())]
    if files.acts:
        lines += ["It and the files that it refers to", *(f"  {act}" for act in files.acts)]
    lines += ["Files", *(f"  {name}" for name in files.digests)]
    lines += [f"Other users of this machine can change {name}." for name in files.open_to_others]
    print("\n".join(printable(line).replace("\n", "␊") for line in lines))
    if not yes:
        insist("Trust it?", f"{file} is not trusted.")
    trust(files)
    say(f"Trusted, with {counted(len(files.digests), 'file')}, until one of them changes.")
    return 0
