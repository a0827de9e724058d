"""Operations of the skill "words": letters within one word."""

from __future__ import annotations

from podium.operations.operation import Operation

VOWELS = frozenset("aeiou")


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
    return (
        Operation("reverse", "words", ("word",), "word", lambda x: x[::-1],
                  ("write {x} backwards", "reverse the letters of {x}", "spell {x} from back to front")),
        Operation("count_vowels", "words", ("word",), "int", lambda x: sum(c in VOWELS for c in x),
                  ("count the vowels in {x}", "say how many vowels {x} has", "tally the vowels of {x}")),
        Operation("count_letters", "words", ("word",), "int", len,
                  ("count the letters in {x}", "say how many letters {x} has", "measure the length of {x} in letters")),
        Operation("drop_vowels", "words", ("word",), "word",
                  lambda x: _some("".join(c for c in x if c not in VOWELS)),
                  ("remove the vowels from {x}", "strip {x} of its vowels", "leave out every vowel of {x}")),
        Operation("nth_letter", "words", ("word",), "word", lambda x, n: _some(x[n - 1 : n]),
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


def _some(text: str) -> str:
    if not text:
        raise ValueError("nothing is left")
    return text
