"""The written working of a join leads to the answer."""

import re
from random import Random

from podium_lab.exercises.working import join_working
from podium_lab.world import world
from podium_lab.world.tasks import draw_problem

FACTS = world()


def drawn(name, *joins):
    """Forty different problems with one of these joins."""
    rng, problems = Random(name), {}
    while len(problems) < 40:
        problem = draw_problem(rng, rng.choice((3, 4, 5)), FACTS)
        if problem.join in joins:
            problems[problem.key] = problem
    return problems.values()


def test_a_verdict_repeats_the_letter_and_the_name_of_the_answer():
    for problem in drawn("verdict", "earlier", "larger"):
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        form = r"Compare A (.+): (\d+), B (.+): (\d+)\. The (smaller|larger) one is ([AB]) (.+)\."
        one, first, other, second, verdict, letter, best = re.fullmatch(form, working).groups()
        assert best == answer == {"A": one, "B": other}[letter]
        wins, loses = (int(first), int(second)) if letter == "A" else (int(second), int(first))
        assert wins < loses if verdict == "smaller" else wins > loses
        assert verdict == ("smaller" if problem.join == "earlier" else "larger")


def test_written_digits_of_a_sum_add_up_to_the_answer():
    for problem in drawn("places", "sum", "difference"):
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        steps = re.findall(r"(\d+) ([+-]) (\d+) = (\d+)(?: and 1 is (\d+))?", working.partition(": ")[2])
        digits = []
        for first, sign, second, result, carried in steps:
            assert int(result) == (int(first) + int(second) if sign == "+" else int(first) - int(second))
            digits.append(
                int(carried or result) % 10 if sign == "-" or len(digits) == 0 else int(carried or result)
            )
        assert sum(digit * 10**place for place, digit in enumerate(digits)) == int(answer)


def test_written_count_carries_a_running_total_to_the_answer():
    for problem in drawn("count", "count"):
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        entries = re.findall(r"[^:]+: ([^,]+), (yes|no), (\d)\.", working)
        assert len(entries) == len(problem.paths)
        count = 0
        for value, verdict, told in entries:
            assert verdict == ("yes" if value == problem.counted else "no")
            count += verdict == "yes"
            assert int(told) == count
        assert int(answer) == count


def test_working_of_a_pair_names_the_owner_of_each_value():
    for problem in drawn("pair", "pair"):
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        assert re.fullmatch(r"(.+): (.+)\. (.+): (.+)\.", working).group(2, 4) == tuple(answer.split(" and "))
