"""Reads single cells of a user's table: texts, splits, scores and numbers, each checked against its bounds.

For a cell that cannot be used, a function raises ValueError; `table` adds the file and the line to its message.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import nan
from typing import Any

from podium.recordings.recording_model import SPLIT_NAMES
from podium.rows import cell_text, is_empty

_SCORE_OF_WORD = {"true": 1, "false": 0}
_UPPER_BOUND = 2**31
"""Numbers are below this, as the 32-bit columns of a recording require."""

Values = Mapping[str, Any]


def read_text(values: Values, column: str | None) -> str | None:
    """A cell as text: numbers as people write them, lists and objects as JSON; None if the cell is empty."""
    return None if column is None or is_empty(values[column]) else cell_text(values, column)


def read_verbatim(values: Values, column: str | None) -> str | None:
    """The text of a cell; unlike `read_text`, an empty text stays an empty text."""
    value = None if column is None else values[column]
    return value if isinstance(value, str) else read_text(values, column)


def read_split(values: Values, column: str | None) -> str | None:
    """The split that a cell names; None if the cell is empty.

    Raises:
        ValueError: it names no split.
    """
    name = read_text(values, column)
    if name is None:
        return None
    if name.strip().casefold() not in SPLIT_NAMES:
        raise ValueError(f"its {column} {reprlib.repr(name)} is none of train, validation and test")
    return SPLIT_NAMES[name.strip().casefold()]


def read_score(values: Values, column: str | None) -> float | None:
    """A score in [0, 1]; None if the cell is empty; ValueError for anything else."""
    number = _number(values, column, lambda number: 0 <= number <= 1, "scores are from 0 to 1")
    return None if number is None else float(number)


def read_seconds(values: Values, column: str | None) -> float | None:
    """A time in seconds; None and ValueError as for `read_score`."""
    return _number(values, column, lambda number: 0 <= number < _UPPER_BOUND, "seconds are from 0 to 2**31")


def read_count(values: Values, column: str | None) -> int | None:
    """A number of tokens or characters; None and ValueError as for `read_score`."""
    number = _number(
        values,
        column,
        lambda number: 0 <= number < _UPPER_BOUND and number == int(number),
        "counts are whole numbers from 0, below 2**31",
    )
    return None if number is None else int(number)


def read_sample(values: Values, column: str | None) -> float:
    """The number by which a worker's responses to one question are ordered; 0 if the cell is empty.

    Raises:
        ValueError: the cell is not a number of 64 bits.
    """
    # Whole numbers stay ints, since seeds may have more digits than a float.
    wanted = "samples are numbers of 64 bits"
    return _number(values, column, lambda number: -(2**63) <= number < 2**63, wanted) or 0


def _number(values: Values, column: str | None, fits: Callable[[float], bool], wanted: str) -> float | None:
    value = None if column is None else values[column]
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = _read(value)
    if not fits(number):
        raise ValueError(f"its {column} is {reprlib.repr(value)}, and {wanted}")
    return number


def _read(value: Any) -> float:
    """The number in a cell, which in a CSV is text. Anything else gives NaN, which is within no bounds."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        value = value.strip().casefold()
        if value in _SCORE_OF_WORD:
            return _SCORE_OF_WORD[value]
        with suppress(ValueError):
            return int(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return nan
