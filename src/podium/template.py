"""Text that a row fills in: one column by its name, or text with columns in braces, as "{problem}\\n{options}"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from string import Formatter, ascii_uppercase
from typing import Any


def columns(template: str) -> tuple[str, ...]:
    """The columns that a template names, each once.

    Raises:
        ValueError: its braces are not those of columns.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} is no template: {error}; write {{{{ for a brace") from None
    named = [name for _, name, _, _ in parts if name is not None]
    if not all(named) or any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{template!r} is no template: name a column in each pair of braces, and no more")
    return tuple(dict.fromkeys(named)) or (template,)


def filled(template: str, values: Mapping[str, Any]) -> str:
    """The text for a row.

    Raises:
        KeyError: a column that is not there.
        ValueError: one that is empty.
    """
    if columns(template) == (template,):
        return shown(values, template)
    return "".join(
        literal + (shown(values, column) if column else "")
        for literal, column, _, _ in Formatter().parse(template)
    )


def shown(values: Mapping[str, Any], column: str) -> str:
    """A cell as a question shows it: a list becomes lettered lines; raises as `filled`."""
    value = values[column]
    if isinstance(value, list) and value:
        if len(value) > len(ascii_uppercase):
            raise ValueError(f"its {column} has more options than there are letters")
        return "\n".join(f"({letter}) {item}" for letter, item in zip(ascii_uppercase, value, strict=False))
    return text(values, column)


def text(values: Mapping[str, Any], column: str) -> str:
    """A cell as text: numbers as people write them, lists and objects as JSON; raises as `filled`."""
    value = values[column]
    if empty(value):
        raise ValueError(f"its {column} is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def empty(value: object) -> bool:
    """Whether a cell holds nothing."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def equals(value: object, wanted: str | float | bool) -> bool:
    """Whether a cell holds a value; in a CSV every cell is text."""
    if isinstance(value, str) and not isinstance(wanted, str):
        try:
            value = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return False
    return bool(value == wanted)
