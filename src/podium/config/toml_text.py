"""Writes tables as TOML text: the standard library only reads it.

Only the outer lists of tables get headers, as [[worker]] in a team file; tables within them are written on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
