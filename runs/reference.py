"""The command reference as Markdown, made from the verbs themselves.

`python runs/reference.py docs/reference.md` writes it; a test keeps the file equal to it.
"""

from __future__ import annotations

import sys
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, Argument

from podium.cli.app import VERBS, build_app

_HEAD = """# Commands

`python runs/reference.py docs/reference.md` makes this page. To change it, change a verb's help and run that.

Every verb has `--help`. Exit status: 0: success; 1: it failed; 2: wrong usage; 130: interrupted.
Verbs with the option `--team` take any key of a [team file](team.md) as `KEY=VALUE`; without the option they read
`team.toml` in the working folder, which needs `podium trust`. Some options are short for a key, named behind them.
Errors are one sentence on standard error.
"""
_TYPES = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "FILE"}


def reference() -> str:
    """The whole page."""
    app = build_app()
    sections = [_section(app, verb.words, verb.help, verb.example) for verb in VERBS]
    return "\n".join([_HEAD, *sections])


def _section(app: App, words: str, help_: str, example: str) -> str:
    _, apps, _ = app.parse_commands(words.split())
    arguments = [a for a in apps[-1].assemble_argument_collection(parse_docstring=True) if a.show]
    positional = "".join(f" {a.name}" if a.required else f" [{a.name}]" for a in arguments if not _named(a))
    options = " [OPTIONS]" if any(map(_named, arguments)) else ""
    lines = [f"## podium {words}", "", help_, "", f"    podium {words}{positional}{options}", ""]
    lines += [_line(argument) for argument in arguments]
    lines += ["", "For example:", "", *(f"    {line}" for line in example.splitlines()), ""]
    return "\n".join(lines)


def _named(argument: Argument) -> bool:
    return argument.name.startswith("-")


def _line(argument: Argument) -> str:
    metavar = _metavar(argument.hint) if _named(argument) else ""
    default = argument.field_info.default
    shown = (
        "" if argument.required or default in (None, False, (), Parameter.empty) else f" Default: {default}."
    )
    help_ = " ".join((argument.parameter.help or "").split())
    return f"- `{', '.join(argument.names)}{metavar}`: {help_}{shown}"


def _metavar(hint: Any) -> str:
    """The placeholder for an option's value, by the value's type; empty for a flag."""
    if hint is bool:
        return ""
    if get_origin(hint) is Literal:
        return " " + "|".join(get_args(hint))
    if get_origin(hint) is tuple:
        return "".join(_metavar(part) for part in get_args(hint))
    inner = [part for part in get_args(hint) if part is not NoneType]
    return _metavar(inner[0]) if inner else f" {_TYPES[hint]}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
