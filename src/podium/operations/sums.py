"""Operations of the skill "sums": whole numbers."""

from __future__ import annotations

from podium.operations.operation import Operation


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
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
