"""Operations: the small computations that embedded questions are made of, grouped by skill.

Each has at least three phrasings. No text may match phrasings of two operations.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from podium.lab.values import (
    ANIMALS,
    CAPITALS,
    ELEMENTS,
    MONTHS,
    OPPOSITES,
    PLANETS,
    WEEKDAYS,
    roman,
    unroman,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One computation, in one skill."""

    name: str
    skill: str
    takes: tuple[str, ...]
    """Types of its one or two inputs."""
    gives: str
    compute: Callable[..., Any]
    """(value, [second value,] [number]) -> result; ValueError outside its domain."""
    phrasings: tuple[str, ...]
    """Imperative clauses with {x}, {y} for values and {n} for the number; at least three."""
    number: range | None = None
    """The range from which {n} is drawn, if the operation has a number."""

    @property
    def joins(self) -> bool:
        """Whether it takes two values, so that it can join two branches."""
        return len(self.takes) == 2


def _sums() -> tuple[Operation, ...]:
    """Whole numbers."""
    return (
        Operation("add", "sums", ("int",), "int", lambda x, n: x + n,
                  ("add {n} to {x}", "increase {x} by {n}", "put {n} on top of {x}"), range(3, 60)),
        Operation("subtract", "sums", ("int",), "int", lambda x, n: _natural(x - n),
                  ("subtract {n} from {x}", "decrease {x} by {n}", "take {n} away from {x}"), range(2, 20)),
        Operation("multiply", "sums", ("int",), "int", lambda x, n: x * n,
                  ("multiply {x} by {n}", "scale {x} up by a factor of {n}", "work out {n} times {x}"), range(3, 13)),
        Operation("square", "sums", ("int",), "int", lambda x: x * x,
                  ("square {x}", "multiply {x} by itself", "raise {x} to the second power")),
        Operation("remainder", "sums", ("int",), "int", lambda x, n: x % n,
                  ("find the remainder of {x} after division by {n}", "reduce {x} modulo {n}",
                   "divide {x} by {n} and keep only the remainder"), range(3, 12)),
        Operation("digit_sum", "sums", ("int",), "int", lambda x: sum(map(int, str(x))),
                  ("add up the digits of {x}", "find the digit sum of {x}", "total the digits in {x}")),
        Operation("sum_of", "sums", ("int", "int"), "int", lambda x, y: x + y,
                  ("add {x} and {y} together", "find the sum of {x} and {y}", "total {x} and {y}")),
        Operation("gap", "sums", ("int", "int"), "int", lambda x, y: abs(x - y),
                  ("find the gap between {x} and {y}", "take the smaller of {x} and {y} from the other",
                   "say how far apart {x} and {y} are")),
    )  # fmt: skip


def _natural(number: int) -> int:
    if number < 0:
        raise ValueError("below zero")
    return number


VOWELS = frozenset("aeiou")


def _words() -> tuple[Operation, ...]:
    """Letters within one word."""
    return (
        Operation("reverse", "words", ("word",), "word", lambda x: x[::-1],
                  ("write {x} backwards", "reverse the letters of {x}", "spell {x} from back to front")),
        Operation("count_vowels", "words", ("word",), "int", lambda x: sum(c in VOWELS for c in x),
                  ("count the vowels in {x}", "say how many vowels {x} has", "tally the vowels of {x}")),
        Operation("count_letters", "words", ("word",), "int", len,
                  ("count the letters in {x}", "say how many letters {x} has", "measure the length of {x} in letters")),
        Operation("drop_vowels", "words", ("word",), "word",
                  lambda x: _nonempty_word("".join(c for c in x if c not in VOWELS)),
                  ("remove the vowels from {x}", "strip {x} of its vowels", "leave out every vowel of {x}")),
        Operation("nth_letter", "words", ("word",), "word", lambda x, n: _nonempty_word(x[n - 1 : n]),
                  ("pick letter number {n} of {x}", "take the letter at place {n} in {x}",
                   "name the letter in position {n} of {x}"), range(2, 5)),
        Operation("sort_letters", "words", ("word",), "word", lambda x: "".join(sorted(x)),
                  ("put the letters of {x} in alphabetical order", "sort the letters in {x}",
                   "arrange the letters of {x} from a to z")),
        Operation("swap_ends", "words", ("word",), "word", lambda x: x[-1] + x[1:-1] + x[0] if len(x) > 1 else x,
                  ("swap the first and last letters of {x}", "exchange the outer letters of {x}",
                   "let the first and last letter of {x} trade places")),
        Operation("glue", "words", ("word", "word"), "word", lambda x, y: x + y,
                  ("join {x} and {y} into one word", "append {y} to {x}", "glue {x} and {y} together")),
    )  # fmt: skip


def _nonempty_word(text: str) -> str:
    if not text:
        raise ValueError("nothing is left")
    return text


def _lists() -> tuple[Operation, ...]:
    """Items in a row."""
    return (
        Operation("sort_items", "lists", ("words",), "words", lambda x: tuple(sorted(x)),
                  ("sort the items of {x} alphabetically", "put the list {x} in dictionary order",
                   "arrange the items in {x} by the alphabet")),
        Operation("reverse_items", "lists", ("words",), "words", lambda x: tuple(reversed(x)),
                  ("turn the list {x} around", "list the items of {x} in the opposite order",
                   "flip the order of the items in {x}")),
        Operation("drop_first", "lists", ("words",), "words", lambda x: _nonempty_items(x[1:]),
                  ("drop the first item of {x}", "leave out the item that opens {x}",
                   "remove the head of the list {x}")),
        Operation("nth_item", "lists", ("words",), "word", lambda x, n: _nonempty_items(x[n - 1 : n])[0],
                  ("pick item number {n} of {x}", "take the item at place {n} in {x}",
                   "choose the entry in position {n} of {x}"), range(1, 4)),
        Operation("longest_item", "lists", ("words",), "word", lambda x: max(x, key=len),
                  ("choose the longest item of {x}", "pick the item with the most letters in {x}",
                   "find the entry of {x} that is longest")),
        Operation("largest", "lists", ("ints",), "int", max,
                  ("take the largest number in {x}", "pick the greatest entry of {x}", "find the maximum of {x}")),
        Operation("smallest", "lists", ("ints",), "int", min,
                  ("take the smallest number in {x}", "pick the least entry of {x}", "find the minimum of {x}")),
        Operation("sort_numbers", "lists", ("ints",), "ints", lambda x: tuple(sorted(x)),
                  ("sort the numbers {x} upwards", "put the numbers {x} in rising order",
                   "arrange the numbers in {x} from low to high")),
        Operation("nth_number", "lists", ("ints",), "int", lambda x, n: _nonempty_items(x[n - 1 : n])[0],
                  ("pick number {n} in the row {x}", "take the entry at place {n} of the row {x}",
                   "read off what stands in place {n} of {x}"), range(1, 4)),
    )  # fmt: skip


def _nonempty_items(items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not items:
        raise ValueError("nothing is left")
    return items


def _dates() -> tuple[Operation, ...]:
    """The calendar."""
    return (
        Operation("days_later", "dates", ("date",), "date", lambda x, n: x + timedelta(days=n),
                  ("find the date {n} days after {x}", "move {x} forward by {n} days",
                   "say which date comes {n} days later than {x}"), range(3, 70)),
        Operation("weekday_of", "dates", ("date",), "weekday", lambda x: WEEKDAYS[x.weekday()],
                  ("name the weekday of {x}", "say on which day of the week {x} falls",
                   "tell the day of the week for {x}")),
        Operation("month_of", "dates", ("date",), "month", lambda x: MONTHS[x.month - 1],
                  ("name the month of {x}", "say in which month {x} lies", "tell the calendar month of {x}")),
        Operation("day_of_year", "dates", ("date",), "int", lambda x: x.timetuple().tm_yday,
                  ("give the day of the year for {x}", "say which day of its year {x} is",
                   "count the days from New Year up to {x}")),
        Operation("days_in_month", "dates", ("date",), "int", lambda x: monthrange(x.year, x.month)[1],
                  ("say how many days the month of {x} has", "count the days in the month around {x}",
                   "give the length of the month that holds {x}")),
        Operation("months_after", "dates", ("month",), "month",
                  lambda x, n: MONTHS[(MONTHS.index(x) + n) % 12],
                  ("name the month {n} months after {x}", "go {n} months on from {x}",
                   "say which month comes {n} months later than {x}"), range(2, 12)),
        Operation("weekdays_after", "dates", ("weekday",), "weekday",
                  lambda x, n: WEEKDAYS[(WEEKDAYS.index(x) + n) % 7],
                  ("name the weekday {n} days after {x}", "go {n} days on from {x}",
                   "say which weekday comes {n} days later than {x}"), range(2, 20)),
        Operation("from_monday", "dates", ("int",), "weekday", lambda x: WEEKDAYS[x % 7],
                  ("name the weekday that comes {x} days after Monday", "start on Monday and go on for {x} days",
                   "say which weekday follows Monday by {x} days")),
    )  # fmt: skip


def _conversion(name: str, big: str, small: str, factor: int) -> Operation:
    return Operation(
        name,
        "units",
        ("int",),
        "int",
        lambda x: x * factor,
        (
            f"convert {{x}} {big} to {small}",
            f"express {{x}} {big} in {small}",
            f"say how many {small} make {{x}} {big}",
        ),
    )


def _units() -> tuple[Operation, ...]:
    """Conversions between measures."""
    return (
        _conversion("metres", "metres", "centimetres", 100),
        _conversion("hours", "hours", "minutes", 60),
        _conversion("minutes", "minutes", "seconds", 60),
        _conversion("weeks", "weeks", "days", 7),
        _conversion("feet", "feet", "inches", 12),
        _conversion("yards", "yards", "feet", 3),
        _conversion("dozens", "dozens", "pieces", 12),
        _conversion("pounds", "pounds", "ounces", 16),
        _conversion("gallons", "gallons", "pints", 8),
    )


_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def _numerals() -> tuple[Operation, ...]:
    """Ways of writing a number."""
    return (
        Operation("to_roman", "numerals", ("int",), "roman", roman,
                  ("write {x} in Roman numerals", "turn {x} into a Roman numeral", "put {x} as the Romans wrote it")),
        Operation("from_roman", "numerals", ("roman",), "int", unroman,
                  ("read the Roman numeral {x}", "turn {x} from Roman into ordinary digits",
                   "give the value of the Roman number {x}")),
        Operation("to_binary", "numerals", ("int",), "binary", lambda x: format(x, "b"),
                  ("write {x} in binary", "turn {x} into base two", "give the binary digits of {x}")),
        Operation("from_binary", "numerals", ("binary",), "int", lambda x: int(x, 2),
                  ("read the binary number {x}", "turn {x} from base two into base ten",
                   "give the decimal value of the bits {x}")),
        Operation("count_ones", "numerals", ("binary",), "int", lambda x: x.count("1"),
                  ("count the ones among the bits {x}", "say how many ones stand in the bits {x}",
                   "tally the bits set in {x}")),
        Operation("spell", "numerals", ("int",), "word", spelled,
                  ("spell {x} out as a word without hyphens", "write the number {x} in letters",
                   "put {x} into words, run together")),
    )  # fmt: skip


def spelled(number: int) -> str:
    """`number` (0 to 99) in English, run together: 42 is "fortytwo"."""
    if not 0 <= number < 100:
        raise ValueError(f"no word for {number}")
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] + (_ONES[ones] if ones else "")


def _facts() -> tuple[Operation, ...]:
    """Common knowledge."""
    lands = {city: country for country, city in CAPITALS.items()}
    return (
        Operation("capital_of", "facts", ("country",), "city", lambda x: CAPITALS[x],
                  ("name the capital of {x}", "say which city governs {x}", "give the seat of government of {x}")),
        Operation("land_of", "facts", ("city",), "country", lambda x: lands[x],
                  ("name the country whose capital is {x}", "say which country {x} governs",
                   "give the land that {x} is the capital of")),
        Operation("planet_at", "facts", ("int",), "planet", lambda x: _table_entry(PLANETS, x),
                  ("name planet number {x} from the sun", "say which planet is in place {x} from the sun",
                   "give the planet with number {x} in the solar system")),
        Operation("planet_number", "facts", ("planet",), "int", lambda x: PLANETS.index(x) + 1,
                  ("say what number {x} has, counted from the sun", "give the place of {x} among the planets",
                   "count the planets from the sun up to {x}")),
        Operation("element_at", "facts", ("int",), "element", lambda x: _table_entry(ELEMENTS, x),
                  ("name the element with atomic number {x}", "say which element has {x} protons",
                   "give the chemical element in place {x} of the periodic table")),
        Operation("atomic_number", "facts", ("element",), "int", lambda x: ELEMENTS.index(x) + 1,
                  ("give the atomic number of {x}", "say how many protons an atom of {x} has",
                   "find the place of {x} in the periodic table")),
        Operation("legs_of", "facts", ("animal",), "int", lambda x: ANIMALS[x][0],
                  ("say how many legs the animal {x} has", "count the legs of the animal {x}",
                   "give the number of legs of the animal {x}")),
        Operation("young_of", "facts", ("animal",), "word", lambda x: ANIMALS[x][1],
                  ("name the young of the animal {x}", "say what the young of the animal {x} is called",
                   "give the word for the offspring of the animal {x}")),
        Operation("opposite_of", "facts", ("quality",), "quality", lambda x: OPPOSITES[x],
                  ("give the opposite of {x}", "name the contrary of {x}", "say what is the reverse of being {x}")),
    )  # fmt: skip


def _table_entry(table: tuple[str, ...], place: int) -> str:
    if not 1 <= place <= len(table):
        raise ValueError(f"no place {place}")
    return table[place - 1]


def _logic() -> tuple[Operation, ...]:
    """Yes and no."""
    return (
        Operation("is_even", "logic", ("int",), "yesno", lambda x: x % 2 == 0,
                  ("decide whether {x} is even", "judge if {x} can be halved evenly",
                   "settle whether two divides {x}")),
        Operation("is_prime", "logic", ("int",), "yesno",
                  lambda x: x > 1 and all(x % d for d in range(2, int(x**0.5) + 1)),
                  ("decide whether {x} is prime", "judge if {x} is a prime number",
                   "settle whether {x} has no divisor but one and itself")),
        Operation("exceeds", "logic", ("int",), "yesno", lambda x, n: x > n,
                  ("decide whether {x} is greater than {n}", "judge if {x} exceeds {n}",
                   "settle whether {x} lies above {n}"), range(5, 60)),
        Operation("negate", "logic", ("yesno",), "yesno", lambda x: not x,
                  ("negate {x}", "turn {x} into its logical contrary", "take the logical not of {x}")),
        Operation("choose", "logic", ("yesno",), "int", lambda x, n: n if x else 2 * n,
                  ("take {n} if {x} is yes and twice that otherwise",
                   "answer {n} when {x} is yes, else double that number",
                   "keep {n} in case {x} means yes, or else twice as much"), range(3, 30)),
        Operation("both", "logic", ("yesno", "yesno"), "yesno", lambda x, y: x and y,
                  ("decide whether {x} and {y} are both yes", "judge if {x} and {y} hold together",
                   "take the logical and of {x} and {y}")),
        Operation("larger", "logic", ("int", "int"), "yesno", lambda x, y: x > y,
                  ("decide whether {x} beats {y}", "judge if {x} outranks {y}",
                   "settle whether {x} comes out above {y}")),
        Operation("same", "logic", ("word", "word"), "yesno", lambda x, y: len(x) == len(y),
                  ("decide whether {x} and {y} are equally long", "judge if {x} and {y} have the same length",
                   "settle whether {x} matches {y} in length")),
    )  # fmt: skip


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.name: operation
        for skill in (_sums, _words, _lists, _dates, _units, _numerals, _facts, _logic)
        for operation in skill()
    }
)
SKILLS: tuple[str, ...] = tuple(dict.fromkeys(operation.skill for operation in OPERATIONS.values()))
