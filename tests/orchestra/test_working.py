"""The written working of a join leads to the answer."""

import re
from random import Random

from podium.lab.world import world
from podium.orchestra.working import join_working
from podium.tasks.world import draw_problem

FACTS = world()


def test_the_letter_of_a_verdict_leads_to_the_thing_with_the_better_number():
    rng, seen = Random("verdict"), set()
    while len(seen) < 40:
        problem = draw_problem(rng, rng.choice((3, 4, 5)), FACTS)
        if problem.join not in ("earlier", "larger"):
            continue
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        found = {
            letter: (thing, int(value))
            for letter, thing, value in re.findall(r"(.): (.+?), (\d+)\.", working)
        }
        letter, verdict = re.search(r"([AB]) is (smaller|larger)\.$", working).groups()
        values = [value for _, value in found.values()]
        assert found[letter] == (answer, min(values) if problem.join == "earlier" else max(values))
        assert verdict == ("smaller" if problem.join == "earlier" else "larger")
        seen.add(problem.key)


def test_places_add_up_to_the_answer():
    rng, seen = Random("places"), set()
    while len(seen) < 40:
        problem = draw_problem(rng, rng.choice((3, 4, 5)), FACTS)
        if problem.join not in ("sum", "difference"):
            continue
        working, answer = join_working(problem, FACTS).split("\nAnswer: ")
        steps = re.findall(r"(\d+) ([+-]) (\d+) = (\d+)(?: and 1 is (\d+))?", working.partition(": ")[2])
        digits = []
        for first, sign, second, result, carried in steps:
            assert int(result) == (int(first) + int(second) if sign == "+" else int(first) - int(second))
            digits.append(
                int(carried or result) % 10 if sign == "-" or len(digits) == 0 else int(carried or result)
            )
        assert sum(digit * 10**place for place, digit in enumerate(digits)) == int(answer)
        seen.add(problem.key)
