"""Joins in writing: how found values are compared, added, subtracted or counted, digit by digit.

Small models cannot compute in the head, but they can learn to write down a computation that is short at every place.
"""

from __future__ import annotations

from itertools import accumulate

from podium_lab.world import Problem, World


def join_working(problem: Problem, facts: World) -> str:
    """The working of a join over the values of its paths, and the answer. ValueError: it has no join, or compares equal
    values."""
    # Small models copy what followed a token before: so a name stands before its value and right after its letter, with
    # no mark between, and a count is kept as it grows.
    path_values = [(path.subject(facts), path.values(facts)[-1]) for path in problem.paths]
    answer = problem.answer(facts)
    match problem.join:
        case "pair":
            lines = [f"{thing}: {value}." for thing, value in path_values]
        case "earlier" | "larger":
            (first_name, first), (second_name, second) = path_values
            verdict = "smaller" if problem.join == "earlier" else "larger"
            letter = "A" if answer == first_name else "B"
            lines = [
                f"Compare A {first_name}: {first}, B {second_name}: {second}. The {verdict} one is {letter} {answer}."
            ]
        case "sum":
            lines = [addition(*(int(value) for _, value in path_values))]
        case "difference":
            lines = [subtraction(*(int(value) for _, value in path_values))]
        case "count":
            matches = accumulate(int(value == problem.counted) for _, value in path_values)
            lines = [
                f"{thing}: {value}, {'yes' if value == problem.counted else 'no'}, {count}."
                for (thing, value), count in zip(path_values, matches, strict=True)
            ]
        case _:
            raise ValueError(f"{problem.key} has no join")
    return f"{' '.join(lines)}\nAnswer: {answer}"


def addition(first: int, second: int) -> str:
    """The sum of two numbers below 100, ones before tens."""
    ones, tens = first % 10 + second % 10, first // 10 + second // 10
    carried = f" and 1 is {tens + 1}" if ones > 9 else ""
    working = f"{first % 10} + {second % 10} = {ones}, {first // 10} + {second // 10} = {tens}{carried}"
    return f"{first} + {second}: {working}."


def subtraction(first: int, second: int) -> str:
    """The distance of two years of one millennium: ones, tens, hundreds. A digit that borrows has 10 more, and the next
    one 1 less."""
    low, high = sorted((first, second))
    differences, borrowed = [], 0
    for unit in (1, 10, 100):
        above, below = high // unit % 10 - borrowed, low // unit % 10
        borrowed = int(above < below)
        above += 10 * borrowed
        differences.append(f"{above} - {below} = {above - below}")
    return f"{high} - {low}: {', '.join(differences)}."
