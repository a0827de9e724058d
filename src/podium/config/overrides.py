"""Overrides: `key=value` texts that are written into the tables of a file before it is judged."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from podium.config.lines import Where
from podium.config.names import suggestion
from podium.config.showing import item_name, show
from podium.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Placed:
    """An override that was written into the tables."""

    text: str
    where: Where

    @property
    def key(self) -> str:
        """As it was typed."""
        return self.text.partition("=")[0]


def override(tables: dict[str, Any], text: str, source: str) -> Placed:
    """Write one `key=value` into `tables`. Items of a list of tables are addressed by name or number.

    Raises:
        ConfigError: it is not of that form, or names nothing that is there; `source` says where.
    """
    path, equals, value = text.partition("=")
    parts = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."]+)', path.strip())]
    if not equals or not parts:
        raise ConfigError(f"Override {text!r} is not of the form key=value, as in train.lr=1e-4.")
    place: Any = tables
    key: list[str] = []
    where: Where = ()
    while parts:
        part: int | str = parts[0]
        name, taken = parts[0], 1
        if isinstance(place, list):
            part, taken = _item(place, parts, text, ".".join(key), source)
            name = item_name(place, part)
        key.append(name)
        where += (part,)
        parts = parts[taken:]
        if not parts:
            place[part] = _value(value.strip())
        elif isinstance(place, dict):
            place = place.setdefault(part, {})
        else:
            place = place[part]
        if parts and not isinstance(place, dict | list):
            raise ConfigError(
                f"Override {text!r}: {'.'.join(key)} is {show(key, place)}, which has no keys of its own."
            )
    return Placed(text, where)


def _item(items: list[Any], parts: list[str], text: str, key: str, source: str) -> tuple[int, int]:
    """Index of the item that the first of `parts` name, and how many of them its name takes up."""
    names = [item_name(items, i) for i in range(len(items))]
    for taken in range(len(parts), 0, -1):  # a name may hold dots, as in gpt-4.1
        wanted = ".".join(parts[:taken])
        if wanted in names:
            return names.index(wanted), taken
    if parts[0].isdecimal() and int(parts[0]) < len(items):
        return int(parts[0]), 1
    raise ConfigError(
        f"Override {text!r}: {source} has no {key} named {parts[0]!r}; {suggestion(parts[0], names)}"
    )


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if list(parsed) == ["value"] else text
