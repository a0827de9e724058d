"""Finds the line of a TOML file that sets a key, for messages, since the parser does not keep lines.

It cuts valid TOML into statements, and parses each alone. For invalid TOML the parser itself reports the line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

Where = tuple[str | int, ...]
"""The path to a value: keys of tables, and positions in lists."""

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
    """The line, from 1, that sets the value at `where`; else the line of the table that contains it.

    Returns None if no line sets it or a table that contains it.
    """
    lines = _lines(text) if where else {}
    while where and where not in lines:
        where = where[:-1]
    return lines.get(where)


def _lines(text: str) -> dict[Where, int]:
    """The first line that names each value in `text`."""
    lines: dict[Where, int] = {}
    table_counts: dict[Where, int] = {}
    """The number of tables of each list so far."""
    table: Where = ()
    for line, statement in _statements(text):
        inner: Any = tomllib.loads(statement)
        if not statement.startswith("["):
            for path, _ in walk(inner):
                lines.setdefault(table + path, line)
            continue
        table = ()
        while isinstance(inner, dict) and inner:
            [(key, inner)] = inner.items()
            table += (key,)
            lines.setdefault(table, line)
            if isinstance(inner, list):
                table_counts[table] = table_counts.get(table, 0) + 1
            if table in table_counts:
                table += (table_counts[table] - 1,)
                lines.setdefault(table, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement (a table header, or a key with its value), after the line on which it begins."""
    text = text.replace("\r\n", "\n") + "\n"
    begin, line, depth = 0, 1, 0
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["end"] is None or depth:
            continue
        statement = text[begin : token.start()]
        if (stripped := statement.strip()) and not stripped.startswith("#"):
            yield line, stripped
        line += statement.count("\n") + 1
        begin = token.end()


def walk(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Each value within a value with its path, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*where, key), inner
        yield from walk(inner, (*where, key))
