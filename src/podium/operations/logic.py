"""Operations of the skill "logic": yes and no."""

from __future__ import annotations

from podium.operations.operation import Operation


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
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
