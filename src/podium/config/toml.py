"""Writes tables as TOML, and finds the line of a TOML file that sets a key, for messages.

The standard library only reads TOML, and keeps no lines.

Only the outer lists of tables get headers, as [[worker]] in a team file; tables within them are written on one line.
To find lines, valid TOML is cut into statements, each parsed alone. For invalid TOML the parser reports the line.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: Mapping[str, Any]) -> str:
    """The tables as TOML. `tomllib` reads the same values from it. Values are JSON's, without null."""
    plain = [
        f"{toml_key(key)} = {toml_value(value)}" for key, value in tables.items() if not _has_header(value)
    ]
    parts = ["\n".join(plain)] if plain else []
    for key, value in tables.items():
        if _has_header(value):
            listed = isinstance(value, list)
            header = f"[[{toml_key(key)}]]" if listed else f"[{toml_key(key)}]"
            for table in value if listed else (value,):
                rows = (f"{toml_key(name)} = {toml_value(inner)}" for name, inner in table.items())
                parts.append("\n".join([header, *rows]))
    return "\n\n".join(parts) + "\n"


def _has_header(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def toml_value(value: Any) -> str:
    """A value on one line. What is None in a table is left out, and what was not set in a model."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        items = (
            f"{toml_key(str(key))} = {toml_value(item)}" for key, item in value.items() if item is not None
        )
        return f"{{ {', '.join(items)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return _string(str(value)) if isinstance(value, str | PurePath) else json.dumps(value)


def toml_key(key: str) -> str:
    """A key, in quotes if it needs them."""
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    # A string of JSON is one of TOML, which also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


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
