"""Operations of the skill "numerals": ways of writing a number."""

from __future__ import annotations

from podium.operations.lore import roman, unroman
from podium.operations.operation import Operation

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
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
