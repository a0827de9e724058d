"""Operations of the skill "lists": items in a row."""

from __future__ import annotations

from typing import Any

from podium.operations.operation import Operation


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
    return (
        Operation("sort_items", "lists", ("words",), "words", lambda x: tuple(sorted(x)),
                  ("sort the items of {x} alphabetically", "put the list {x} in dictionary order",
                   "arrange the items in {x} by the alphabet")),
        Operation("reverse_items", "lists", ("words",), "words", lambda x: tuple(reversed(x)),
                  ("turn the list {x} around", "list the items of {x} in the opposite order",
                   "flip the order of the items in {x}")),
        Operation("drop_first", "lists", ("words",), "words", lambda x: _some(x[1:]),
                  ("drop the first item of {x}", "leave out the item that opens {x}",
                   "remove the head of the list {x}")),
        Operation("nth_item", "lists", ("words",), "word", lambda x, n: _some(x[n - 1 : n])[0],
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
        Operation("nth_number", "lists", ("ints",), "int", lambda x, n: _some(x[n - 1 : n])[0],
                  ("pick number {n} in the row {x}", "take the entry at place {n} of the row {x}",
                   "read off what stands in place {n} of {x}"), range(1, 4)),
    )  # fmt: skip


def _some(items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not items:
        raise ValueError("nothing is left")
    return items
