"""`podium trust`: shows what a settings file would do, and keeps that the user wants it so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.cli.found_files import FILE
from podium.cli.options import Flag
from podium.cli.printable import counted, print_columns, printable
from podium.cli.team_file import FoundTeam
from podium.cli.terminal import confirm
from podium.cli.trust_store import all_trusted, revoke, trust, trusted
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
        print_columns([(trusted_file.since, printable(trusted_file.file)) for trusted_file in all_trusted()])
        return 0
    if revoke_:
        if not revoke(file):
            raise UsageError(f"{file} is not trusted; `podium trust --list` lists what is.")
        print(f"{printable(str(file))} is trusted no longer.")
        return 0
    team_file = FoundTeam(file)
    check_tables(team_file.source)
    before = trusted(team_file.files)
    if before is not None and not before.changes(team_file.files):
        print(f"{printable(str(file))} has been trusted since {before.since}.")
        return 0
    _show(team_file)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{file} is not trusted yet. To trust it without being asked, add --yes.")
        if not confirm("Trust it?"):
            raise UsageError(f"{file} is not trusted.")
    trust(team_file.files)
    print(f"Trusted, with {counted(len(team_file.files.digests), 'file')}, until one of them changes.")
    return 0


def _show(team_file: FoundTeam) -> None:
    lines = [
        f"{team_file.path} sets",
        *(f"  {key} = {value}" for key, value in team_file.settings_by_key.items()),
    ]
    if team_file.files.acts:
        lines += ["It and the files that it refers to", *(f"  {act}" for act in team_file.files.acts)]
    lines += ["Files", *(f"  {name}" for name in team_file.files.digests)]
    lines += [f"Other users of this machine can change {name}." for name in team_file.files.open_to_others]
    print("\n".join(printable(line).replace("\n", "␊") for line in lines))
