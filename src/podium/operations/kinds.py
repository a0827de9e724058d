"""Kinds of values that operations take and give: how each is drawn, written, read, and got slightly wrong.

Inside the house a value is a Python int, str, date or tuple; in text it is what `write` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any

from podium.operations.lore import (
    ANIMALS,
    CAPITALS,
    ELEMENTS,
    MONTHS,
    OPPOSITES,
    PLANETS,
    WEEKDAYS,
    WORDS,
    roman,
    unroman,
)

Value = Any
LARGEST_INT = 99_999
"""Results beyond it are outside every operation's domain: questions stay readable."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value."""

    name: str
    draw: Callable[[Random], Value]
    """A value to ask about."""
    write: Callable[[Value], str]
    """As it stands in an answer."""
    read: Callable[[str], Value]
    """The inverse of `write`; ValueError when the text is no such value."""
    slip: Callable[[Random, Value], Value]
    """A plausible wrong value: never the one given."""
    literal: str = "{}"
    """As it stands in a question."""
    parent: str | None = None
    """A wider kind whose operations take this one too."""


def _slip_int(rng: Random, value: int) -> int:
    digits = str(value)
    candidates = {value + 1, value - 1, value + 2, value + 10, value - 10, value * 2, int(digits[::-1])}
    return rng.choice(sorted(c for c in candidates if c != value and c >= 0))


def _slip_word(rng: Random, value: str) -> str:
    at = rng.randrange(len(value)) if value else 0
    candidates = {
        value[:at] + value[at + 1 :],
        value[:at] + value[at : at + 1] * 2 + value[at + 1 :],
        value[:at] + value[at : at + 2][::-1] + value[at + 2 :],
    }
    return rng.choice(sorted(c for c in candidates if c not in {value, ""}) or [value + "e"])


def _slip_tuple(rng: Random, value: tuple[Value, ...]) -> tuple[Value, ...]:
    at = rng.randrange(len(value) - 1) if len(value) > 1 else 0
    swapped = (*value[:at], *reversed(value[at : at + 2]), *value[at + 2 :])
    return swapped if swapped != value else value[:-1]


def _read_int(text: str) -> int:
    return int(text.strip().replace(",", ""))


def _read_word(text: str) -> str:
    word = text.strip().strip("'\"").lower()
    if not word or not word.isalnum():
        raise ValueError(f"not a word: {text!r}")
    return word


def _items(text: str) -> list[str]:
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"not a list: {text!r}")
    return [item.strip() for item in inner[1:-1].split(",") if item.strip()]


def _write_items(value: tuple[Value, ...]) -> str:
    return "[" + ", ".join(map(str, value)) + "]"


def _write_date(value: date) -> str:
    return f"{value.day} {MONTHS[value.month - 1].capitalize()} {value.year}"


def _read_date(text: str) -> date:
    day, month, year = text.split()
    try:
        return date(int(year), MONTHS.index(month.lower()) + 1, int(day))
    except ValueError as error:
        raise ValueError(f"not a date: {text!r}") from error


def _draw_words(rng: Random) -> tuple[str, ...]:
    return tuple(rng.sample(WORDS, rng.randint(3, 5)))


def _draw_ints(rng: Random) -> tuple[int, ...]:
    return tuple(rng.sample(range(2, 60), rng.randint(3, 5)))


def _named(name: str, table: tuple[str, ...], *, proper: bool = True) -> Kind:
    """A kind whose values are the entries of a small table: proper names, or quoted words."""

    def read(text: str) -> str:
        word = text.strip().strip("'\"").lower()
        if word not in table:
            raise ValueError(f"not one of the {name}s: {text!r}")
        return word

    def slip(rng: Random, value: str) -> str:
        return rng.choice([entry for entry in table if entry != value])

    write, literal = (str.capitalize, "{}") if proper else (str, "'{}'")
    return Kind(name, lambda rng: rng.choice(table), write, read, slip, literal, parent="word")


def _other_numeral(write: Callable[[int], str], read: Callable[[str], int]) -> Callable[[Random, str], str]:
    return lambda rng, value: write(max(1, read(value) + rng.choice((1, 2, 10))))


def _kinds() -> tuple[Kind, ...]:
    return (
        Kind("int", lambda rng: rng.randint(3, 60), str, _read_int, _slip_int),
        Kind("word", lambda rng: rng.choice(WORDS), str, _read_word, _slip_word, literal="'{}'"),
        Kind(
            "words", _draw_words, _write_items, lambda t: tuple(_read_word(w) for w in _items(t)), _slip_tuple
        ),
        Kind("ints", _draw_ints, _write_items, lambda t: tuple(_read_int(n) for n in _items(t)), _slip_tuple),
        Kind(
            "date",
            lambda rng: date(2001, 1, 1) + timedelta(days=rng.randrange(9000)),
            _write_date,
            _read_date,
            lambda rng, value: value + timedelta(days=rng.choice((-30, -1, 1, 2, 7, 30))),
        ),
        Kind(
            "yesno",
            lambda rng: rng.random() < 0.5,
            lambda value: "yes" if value else "no",
            lambda text: {"yes": True, "no": False}[text.strip().lower()],
            lambda _, value: not value,
        ),
        Kind(
            "roman",
            lambda rng: roman(rng.randint(4, 90)),
            str.upper,
            lambda text: roman(unroman(text.strip().strip("'").lower())),
            _other_numeral(roman, unroman),
            literal="'{}'",
            parent="word",
        ),
        Kind(
            "binary",
            lambda rng: format(rng.randint(5, 60), "b"),
            str,
            lambda text: format(int(text.strip().strip("'"), 2), "b"),
            _other_numeral(lambda n: format(n, "b"), lambda text: int(text, 2)),
            literal="'{}'",
        ),
        _named("planet", PLANETS),
        _named("month", MONTHS),
        _named("weekday", WEEKDAYS),
        _named("country", tuple(CAPITALS)),
        _named("city", tuple(CAPITALS.values())),
        _named("element", ELEMENTS, proper=False),
        _named("animal", tuple(ANIMALS), proper=False),
        _named("quality", tuple(OPPOSITES), proper=False),
    )


KINDS: dict[str, Kind] = {kind.name: kind for kind in _kinds()}


def takes(wanted: str, given: str) -> bool:
    """Whether an operation on `wanted` may be given a value of kind `given`."""
    return wanted == given or KINDS[given].parent == wanted
