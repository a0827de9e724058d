"""`podium config`: shows the settings in this folder, and where each comes from."""

from __future__ import annotations

import json as json_
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from podium.cli.options import Flag
from podium.cli.printable import printable
from podium.cli.settings_file import OPTIONS, SettingsFile
from podium.cli.terminal import open_console
from podium.config import suggestion
from podium.errors import UsageError

_FLAGS = ("--early-stop", "--no-viewer")
"""Options without a value."""


def show(
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    config: Path | None = None,
    json: Flag = False,
) -> int:
    """Show every setting with its value, and where it comes from: a line of the file, an option, a variable of the
    environment, or the default. Shows a file that is not trusted too, and says so.

    Args:
        overrides: Options of a command, such as --budget-usd 0.10; they override the file.
        config: The file. Default: podium.toml in the working folder.
        json: Print a JSON array.
    """
    file = SettingsFile(config)
    settings = list(file.all(_read_options(overrides)))
    if file.is_found:
        print(printable(file.standing()), file=sys.stderr)
    if json:
        print(json_.dumps([asdict(setting) for setting in settings]))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("setting", "value", "from", "option"):
        table.add_column(column, overflow="fold")
    for setting in settings:
        style = "dim" if setting.origin == "default" else ""
        value = "" if setting.value is None else printable(str(setting.value))
        place = printable(setting.place) if setting.origin in ("file", "environment") else setting.origin
        table.add_row(*(Text(cell, style) for cell in (setting.key, value, place, setting.option)))
    open_console().print(table)
    return 0


def _read_options(tokens: tuple[str, ...]) -> dict[str, str]:
    """The options by name; `UsageError` if no setting has an option, or if an option lacks its value."""
    given: dict[str, str] = {}
    rest = list(tokens)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option not in OPTIONS.values():
            raise UsageError(
                f"No setting has the option {option!r}; {suggestion(option, list(OPTIONS.values()))}"
            )
        if option in _FLAGS:
            given[option] = "true"
            continue
        if not equals and not rest:
            raise UsageError(f"{option} lacks its value.")
        given[option] = value if equals else rest.pop(0)
    return given
