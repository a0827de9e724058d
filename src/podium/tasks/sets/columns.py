"""The values of a row, by column: of the type that its dataset promises, or the row is broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text(values: Mapping[str, Any], column: str) -> str:
    """A text that is not empty.

    Raises:
        KeyError: there is no such column.
        ValueError: it holds none.
    """
    value = values[column]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"its {column} holds no text")
    return value


def texts(values: Mapping[str, Any], column: str) -> list[str]:
    """A list of texts, of which some or all may be missing; raises as `text`."""
    value = values[column]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"its {column} holds no list of texts")
    return value


def whole(values: Mapping[str, Any], column: str) -> int:
    """A whole number; raises as `text`."""
    value = values[column]
    if not isinstance(value, int):
        raise ValueError(f"its {column} holds no whole number")
    return value
