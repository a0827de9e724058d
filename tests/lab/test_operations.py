"""What the operations compute, against values worked out by hand."""

from __future__ import annotations

from random import Random

import pytest

from podium.lab import VALUE_TYPES, chance, read_problem
from podium.lab.operations import spelled
from podium.lab.values import roman, unroman

WORKED = [
    ("Add 17 to 5.", "22"),
    ("Subtract 9 from 30.", "21"),
    ("Find the remainder of 29 after division by 6.", "5"),
    ("Add up the digits of 58.", "13"),
    ("Say how far apart 12 and 45 are.", "33"),
    ("Write 'lantern' backwards.", "nretnal"),
    ("Count the vowels in 'orchard'.", "2"),
    ("Remove the vowels from 'melon'.", "mln"),
    ("Pick letter number 3 of 'tiger'.", "g"),
    ("Put the letters of 'camel' in alphabetical order.", "acelm"),
    ("Swap the first and last letters of 'grape'.", "erapg"),
    ("Sort the items of [pear, fig, plum] alphabetically.", "[fig, pear, plum]"),
    ("Choose the longest item of [apple, violin, table].", "violin"),
    ("Take the largest number in [4, 19, 7].", "19"),
    ("Pick number 2 in the row [8, 3, 5].", "3"),
    ("Find the date 10 days after 25 December 2020.", "4 January 2021"),
    ("Name the weekday of 20 July 2021.", "Tuesday"),
    ("Give the day of the year for 1 March 2024.", "61"),
    ("Say how many days the month of 10 February 2023 has.", "28"),
    ("Name the month 5 months after October.", "March"),
    ("Name the weekday that comes 9 days after Monday.", "Wednesday"),
    ("Convert 4 feet to inches.", "48"),
    ("Say how many ounces make 3 pounds.", "48"),
    ("Write 49 in Roman numerals.", "XLIX"),
    ("Read the Roman numeral 'XIV'.", "14"),
    ("Write 10 in binary.", "1010"),
    ("Read the binary number '1101'.", "13"),
    ("Count the ones among the bits '10110'.", "3"),
    ("Put 42 into words, run together.", "fortytwo"),
    ("Name the capital of Norway.", "Oslo"),
    ("Name the country whose capital is Lima.", "Peru"),
    ("Name planet number 4 from the sun.", "Mars"),
    ("Say how many protons an atom of 'carbon' has.", "6"),
    ("Say how many legs the animal 'spider' has.", "8"),
    ("Name the young of the animal 'swan'.", "cygnet"),
    ("Give the opposite of 'wet'.", "dry"),
    ("Decide whether 51 is prime.", "no"),
    ("Decide whether 30 is greater than 12.", "yes"),
    ("Write 'tunnel' backwards. Then count the vowels in it.", "2"),
    ("Let A be what you get if you add 3 to 4. Let B be what you get if you square 3. "
     "Find the gap between A and B.", "2"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "answer"), WORKED)
def test_the_answer_is_the_one_worked_out_by_hand(question: str, answer: str) -> None:
    problem = read_problem(question)
    assert problem is not None
    assert problem.answer == answer


@pytest.mark.parametrize("kind", VALUE_TYPES.values(), ids=lambda kind: kind.name)
def test_a_slip_is_another_value_of_the_same_kind(kind) -> None:
    for seed in range(50):
        rng = Random(f"{kind.name}/{seed}")
        value = kind.draw(rng)
        slip = kind.slip(rng, value)
        assert slip != value
        assert kind.read(kind.write(slip)) == slip


@pytest.mark.parametrize("kind", VALUE_TYPES.values(), ids=lambda kind: kind.name)
def test_reading_what_was_written_gives_the_value(kind) -> None:
    for seed in range(50):
        value = kind.draw(Random(f"{kind.name}/{seed}"))
        assert kind.read(kind.write(value)) == value


def test_roman_numerals_come_back() -> None:
    assert [unroman(roman(number)) for number in range(1, 4000)] == list(range(1, 4000))


@pytest.mark.parametrize("text", ["", "iiii", "vx", "abc", "iix"])
def test_what_is_no_roman_numeral_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Roman numeral"):
        unroman(text)


def test_numbers_are_spelled_run_together() -> None:
    assert [spelled(n) for n in (0, 7, 13, 20, 99)] == ["zero", "seven", "thirteen", "twenty", "ninetynine"]


def test_chance_is_uniform_and_named() -> None:
    drawn = [chance("name", i) for i in range(20_000)]
    assert chance("name", 3) == drawn[3]
    assert all(0 <= number < 1 for number in drawn)
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.01
