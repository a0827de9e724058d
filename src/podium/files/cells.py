"""The cells of a row that `tables` has read: as text, compared with a value, and filled into a template.

A template names one column, or has columns in braces, as in "{problem}\\n{options}".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from string import Formatter, ascii_uppercase
from typing import Any


def template_columns(template: str) -> tuple[str, ...]:
    """The columns that a template names, each once. If its braces do not name columns, a `ValueError` is raised."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} is no template: {error}; write {{{{ for a brace") from None
    named = [name for _, name, _, _ in parts if name is not None]
    if not all(named) or any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{template!r} is no template: name a column in each pair of braces, and no more")
    return tuple(dict.fromkeys(named)) or (template,)


def fill_template(template: str, values: Mapping[str, Any]) -> str:
    """The template, filled in with the cells of a row.

    Raises:
        KeyError: the row lacks a column.
        ValueError: a cell is empty, or holds bytes that are not UTF-8.
    """
    if template_columns(template) == (template,):
        return show_cell(values, template)
    return "".join(
        literal + (show_cell(values, column) if column else "")
        for literal, column, _, _ in Formatter().parse(template)
    )


def show_cell(values: Mapping[str, Any], column: str) -> str:
    """A cell as a question shows it, a list as lettered lines. If there is no such column, a `KeyError` is raised, and
    a `ValueError` if the cell is empty, is not UTF-8, or has more options than there are letters."""
    value = values[column]
    if isinstance(value, list) and value:
        if len(value) > len(ascii_uppercase):
            raise ValueError(f"its {column} has more options than there are letters")
        return "\n".join(
            f"({letter}) {_text(item, column)}" for letter, item in zip(ascii_uppercase, value, strict=False)
        )
    return cell_text(values, column)


def cell_text(values: Mapping[str, Any], column: str) -> str:
    """A cell as text: whole numbers without a point, lists and objects as JSON. If there is no such
    column, a `KeyError` is raised, and a `ValueError` if the cell is empty or is not UTF-8."""
    value = values[column]
    if is_empty(value):
        raise ValueError(f"its {column} is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=lambda item: _text(item, column))
    return _text(value, column)


def _text(value: object, column: str) -> str:
    if isinstance(value, bytes):
        raise ValueError(f"its {column} is not UTF-8 text")
    return str(value)


def is_empty(value: object) -> bool:
    """Whether a cell is empty."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def cell_equals(value: object, wanted: str | float | bool) -> bool:
    """Whether a cell equals a value; text from a CSV is read as JSON first."""
    if isinstance(value, str) and not isinstance(wanted, str):
        try:
            value = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return False
    return bool(value == wanted)
