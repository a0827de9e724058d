"""The line of a TOML file in which a key is set: for errors, since the parser keeps none.

Only for text that is TOML: the parser itself says where other text stops being it. The file is cut
into its statements, and the parser reads each of them alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

Where = tuple[str | int, ...]
"""The way to a value from the top of the tables: keys, and numbers of items in lists."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>\n)",
    re.DOTALL,
)


def find_line(text: str, where: Where) -> int | None:
    """The line, from 1, of the value that the TOML in `text` has there.

    Where it has none: of the table around it. None where that is the whole file.
    """
    lines = _lines(text) if where else {}
    while where and where not in lines:
        where = where[:-1]
    return lines.get(where)


def _lines(text: str) -> dict[Where, int]:
    """Where everything in `text` is first named."""
    lines: dict[Where, int] = {}
    begun: dict[Where, int] = {}
    """Tables of each list of tables, so far."""
    table: Where = ()
    for line, statement in _statements(text):
        inner: Any = tomllib.loads(statement)
        if not statement.startswith("["):
            for way in _ways(inner):
                lines.setdefault(table + way, line)
            continue
        table = ()
        while isinstance(inner, dict) and inner:
            [(key, inner)] = inner.items()
            table += (key,)
            lines.setdefault(table, line)
            if isinstance(inner, list):
                begun[table] = begun.get(table, 0) + 1
            if table in begun:
                table += (begun[table] - 1,)
                lines.setdefault(table, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Every header, and every key with its value, and the line on which it begins."""
    text = text.replace("\r\n", "\n") + "\n"
    begin, line, depth = 0, 1, 0
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["end"] is None or depth:
            continue
        statement = text[begin : token.start()]
        if (said := statement.strip()) and not said.startswith("#"):
            yield line, said
        line += statement.count("\n") + 1
        begin = token.end()


def _ways(value: Any, way: Where = ()) -> Iterator[Where]:
    """The way to everything in `value`, outer things first."""
    if way:
        yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _ways(inner, (*way, key))
