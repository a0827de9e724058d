"""The types of values that operations take and return: how each is drawn, written, read, and made slightly wrong.

Here a value is a Python object (int, bool, str, date or tuple); `write` turns it into text. This module also has the
tables from which values are drawn, and `chance`, from which all simulations take their randomness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import blake2b
from random import Random
from typing import Any

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PLANETS = ("mercury", "venus", "earth", "mars", "jupiter", "saturn", "uranus", "neptune")
ELEMENTS = (
    "hydrogen", "helium", "lithium", "beryllium", "boron", "carbon", "nitrogen", "oxygen", "fluorine", "neon",
    "sodium", "magnesium", "aluminium", "silicon", "phosphorus", "sulfur", "chlorine", "argon", "potassium",
    "calcium",
)  # fmt: skip
"""In the order of their atomic numbers, from 1."""
CAPITALS = {
    "france": "paris", "italy": "rome", "spain": "madrid", "portugal": "lisbon", "germany": "berlin",
    "austria": "vienna", "poland": "warsaw", "norway": "oslo", "sweden": "stockholm", "finland": "helsinki",
    "greece": "athens", "egypt": "cairo", "kenya": "nairobi", "japan": "tokyo", "china": "beijing",
    "peru": "lima", "chile": "santiago", "cuba": "havana", "canada": "ottawa", "ireland": "dublin",
}  # fmt: skip
ANIMALS = {
    "horse": (4, "foal"), "cow": (4, "calf"), "dog": (4, "puppy"), "cat": (4, "kitten"), "sheep": (4, "lamb"),
    "goose": (2, "gosling"), "duck": (2, "duckling"), "frog": (4, "tadpole"), "goat": (4, "kid"),
    "swan": (2, "cygnet"), "deer": (4, "fawn"), "eagle": (2, "eaglet"), "spider": (8, "spiderling"),
    "butterfly": (6, "caterpillar"), "bee": (6, "larva"), "owl": (2, "owlet"),
}  # fmt: skip
"""Each with its number of legs and the name of its young."""
OPPOSITES = {
    "hot": "cold", "cold": "hot", "big": "small", "small": "big", "early": "late", "late": "early",
    "wet": "dry", "dry": "wet", "dark": "light", "light": "dark", "open": "shut", "shut": "open",
    "full": "empty", "empty": "full", "soft": "hard", "hard": "soft", "fast": "slow", "slow": "fast",
}  # fmt: skip
WORDS = (
    "planet", "garden", "window", "bridge", "candle", "pepper", "silver", "marble", "ribbon", "tunnel",
    "lantern", "harvest", "blanket", "compass", "cottage", "village", "thunder", "whisper", "journey", "pilgrim",
    "river", "stone", "cloud", "bread", "chair", "apple", "table", "music", "paper", "grape",
    "orchard", "mountain", "notebook", "sandwich", "umbrella", "elephant", "hospital", "triangle", "dinosaur",
    "calendar", "lemon", "melon", "olive", "onion", "tiger", "zebra", "camel", "piano", "violin", "trumpet",
    "anchor", "basket", "button", "carpet", "desert", "engine", "feather", "guitar", "hammer", "island",
    "jacket", "kettle", "ladder", "magnet", "needle", "orange", "pencil", "rabbit", "saddle", "temple",
)  # fmt: skip
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def roman(number: int) -> str:
    """`number` (1 to 3999) in lower-case Roman numerals."""
    if not 1 <= number <= 3999:
        raise ValueError(f"no Roman numeral for {number}")
    written = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        written.append(letters * count)
    return "".join(written)


def unroman(text: str) -> int:
    """The number that lower-case Roman numerals stand for; ValueError when they are not canonical."""
    values = {letters: value for value, letters in _ROMAN if len(letters) == 1}
    if not text or any(letter not in values for letter in text):
        raise ValueError(f"not a Roman numeral: {text!r}")
    numbers = [values[letter] for letter in text]
    total = sum(-one if one < after else one for one, after in zip(numbers, [*numbers[1:], 0], strict=True))
    if roman(total) != text:
        raise ValueError(f"not a Roman numeral: {text!r}")
    return total


def chance(*name: object) -> float:
    """A uniform number in [0, 1), the same for the same name on every machine."""
    digest = blake2b("\x1f".join(map(str, name)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


AnyValue = Any
LARGEST_INT = 99_999
"""No operation gives a larger number, so that questions stay readable."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type of value."""

    name: str
    draw: Callable[[Random], AnyValue]
    """Draws a value for a question."""
    write: Callable[[AnyValue], str]
    """Writes a value as it is in an answer."""
    read: Callable[[str], AnyValue]
    """The inverse of `write`; ValueError if the text is no such value."""
    slip: Callable[[Random, AnyValue], AnyValue]
    """Returns a plausible wrong value, which is never the one given."""
    literal: str = "{}"
    """The format of a written value in a question."""
    parent: str | None = None
    """A wider type, whose operations also take values of this type."""


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


def _slip_tuple(rng: Random, value: tuple[AnyValue, ...]) -> tuple[AnyValue, ...]:
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


def _write_items(value: tuple[AnyValue, ...]) -> str:
    return "[" + ", ".join(map(str, value)) + "]"


def _write_date(value: date) -> str:
    return f"{value.day} {MONTHS[value.month - 1].capitalize()} {value.year}"


def _read_date(text: str) -> date:
    day, month, year = text.split()
    try:
        return date(int(year), MONTHS.index(month.lower()) + 1, int(day))
    except ValueError as error:
        raise ValueError(f"not a date: {text!r}") from error


def _read_yesno(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("yes", "no"):
        raise ValueError(f"neither yes nor no: {text!r}")
    return word == "yes"


def _draw_words(rng: Random) -> tuple[str, ...]:
    return tuple(rng.sample(WORDS, rng.randint(3, 5)))


def _draw_ints(rng: Random) -> tuple[int, ...]:
    return tuple(rng.sample(range(2, 60), rng.randint(3, 5)))


def _named(name: str, table: tuple[str, ...], *, proper: bool = True) -> ValueType:
    """A type whose values are the entries of a table. In questions `proper` names are capitalised, others quoted."""

    def read(text: str) -> str:
        word = text.strip().strip("'\"").lower()
        if word not in table:
            raise ValueError(f"not one of the {name}s: {text!r}")
        return word

    def slip(rng: Random, value: str) -> str:
        return rng.choice([entry for entry in table if entry != value])

    write, literal = (str.capitalize, "{}") if proper else (str, "'{}'")
    return ValueType(name, lambda rng: rng.choice(table), write, read, slip, literal, parent="word")


def _numeral_slip(write: Callable[[int], str], read: Callable[[str], int]) -> Callable[[Random, str], str]:
    return lambda rng, value: write(max(1, read(value) + rng.choice((1, 2, 10))))


def _value_types() -> tuple[ValueType, ...]:
    return (
        ValueType("int", lambda rng: rng.randint(3, 60), str, _read_int, _slip_int),
        ValueType("word", lambda rng: rng.choice(WORDS), str, _read_word, _slip_word, literal="'{}'"),
        ValueType(
            "words", _draw_words, _write_items, lambda t: tuple(_read_word(w) for w in _items(t)), _slip_tuple
        ),
        ValueType(
            "ints", _draw_ints, _write_items, lambda t: tuple(_read_int(n) for n in _items(t)), _slip_tuple
        ),
        ValueType(
            "date",
            lambda rng: date(2001, 1, 1) + timedelta(days=rng.randrange(9000)),
            _write_date,
            _read_date,
            lambda rng, value: value + timedelta(days=rng.choice((-30, -1, 1, 2, 7, 30))),
        ),
        ValueType(
            "yesno",
            lambda rng: rng.random() < 0.5,
            lambda value: "yes" if value else "no",
            _read_yesno,
            lambda _, value: not value,
        ),
        ValueType(
            "roman",
            lambda rng: roman(rng.randint(4, 90)),
            str.upper,
            lambda text: roman(unroman(text.strip().strip("'").lower())),
            _numeral_slip(roman, unroman),
            literal="'{}'",
            parent="word",
        ),
        ValueType(
            "binary",
            lambda rng: format(rng.randint(5, 60), "b"),
            str,
            lambda text: format(int(text.strip().strip("'"), 2), "b"),
            _numeral_slip(lambda n: format(n, "b"), lambda text: int(text, 2)),
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


VALUE_TYPES: dict[str, ValueType] = {one.name: one for one in _value_types()}


def fits(given: str, wanted: str) -> bool:
    """Whether an operation that takes the type `wanted` also takes a value of the type `given`."""
    return wanted == given or VALUE_TYPES[given].parent == wanted
