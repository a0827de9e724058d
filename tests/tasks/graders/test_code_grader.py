"""Right and wrong programs of each form, and gold answers that are none."""

from __future__ import annotations

import asyncio
import json
import warnings
from functools import cache
from random import Random
from textwrap import dedent
from typing import Any

import pytest

from podium.tasks.graders.code_grader import Code

GRADER = Code(allow_weak_sandbox=True, seconds=20)

ADD = {"form": "programs", "inputs": ["1 2\n", "30 12"], "outputs": ["3\n", "42\n"]}
HALVES = {"form": "programs", "inputs": ["3"], "outputs": ["0.5\n1.0\n1.5\n"]}
SORT = {"form": "calls", "function": "order", "inputs": [[[3, 1, 2]], [[]]], "outputs": [[1, 2, 3], []]}
COUNT = {"form": "calls", "function": "count", "inputs": [["abca"]], "outputs": [{"a": 2, "b": 1, "c": 1}]}
BIG = {"form": "calls", "function": "power", "inputs": [[3, 900]], "outputs": [3**900]}
EVEN = {
    "form": "asserts",
    "setup": "from typing import List\n\n\ndef halved(x: int) -> int:\n    return x // 2\n",
    "tests": dedent("""
        def check(candidate):
            assert candidate([1, 2, 4]) == [2, 4]
            assert halved(candidate([6])[0]) == 3


        check(even)
    """),
}
TREE = {
    "form": "asserts",
    "setup": "root = Node(5)\nroot.left = Node(1)\nroot.left.right = Node(2)\n",
    "tests": "assert total(root) == 8\nassert total(root.left) == 3\nassert root.left.value == 1\n",
}
SUMMED = {
    **TREE,
    "setup": f"def grown(node: Node) -> Node:\n    node.left = Node(3)\n    return node\n{TREE['setup']}",
    "tests": f"{TREE['tests']}assert total(grown(root)) == 8\n",
}
TYPED = {
    "form": "asserts",
    "tests": "def typed(x: int): pass\nassert same(typed.__annotations__['x'] is int)",
}
SUM = {"form": "asserts", "tests": "assert sum(10, 15) == 6\nassert sum(100, 150) == 93\n"}
RAISES = {
    "form": "asserts",
    "tests": dedent("""
        try:
            root(-1)
        except ValueError as error:
            assert 'negative' in str(error)
        else:
            assert False
        assert root(4) == 2
    """),
}
SUITE = {
    "form": "unittest",
    "setup": "import os\nLIMIT = 10\n",
    "tests": """
import json
import unittest


class Base(unittest.TestCase):
    def setUp(self):
        self.names = ["a", "bbb"]

    def test_limit(self):
        self.assertEqual(longest(self.names), 3)


class TestCases(Base):
    def test_each(self):
        for names, wanted in (({"one", "three"}, 5), (["a" * 20], LIMIT)):
            with self.subTest(names=names):
                self.assertEqual(longest(names), wanted)

    def test_json(self):
        with self.assertRaises(json.JSONDecodeError):
            longest("{")

    def test_none(self):
        with self.assertRaises(ValueError):
            longest([])
""",
}

RIGHT: dict[str, tuple[dict[str, Any], str]] = {
    "a program": (ADD, "a, b = map(int, input().split())\nprint(a + b)"),
    "a program that reads /dev/stdin": (ADD, "print(sum(map(int, open('/dev/stdin').read().split())))"),
    "a program that exits": (ADD, "print(sum(map(int, input().split())))\nexit(1)"),
    "a program that ends in a thread": (
        ADD,
        "import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
    ),
    "a program that flushes at its end": (
        ADD,
        dedent("""
            import atexit, io, os, sys
            out = io.StringIO()
            atexit.register(lambda: os.write(1, out.getvalue().encode()))
            sys.stdout = out
            print(sum(map(int, input().split())))
        """),
    ),
    "a program that reads its annotations": (
        ADD,
        "def add(a: int, b: int): return a + b\n"
        "print(add(*(add.__annotations__[name](x) for name, x in zip('ab', input().split()))))",
    ),
    "a program without its imports": (ADD, "print(reduce(operator.add, map(int, sys.stdin.read().split())))"),
    "decimals and space": (HALVES, "print('0.50 ')\nprint(' 1')\nprint('1.500\\n\\n')"),
    "deep recursion": (
        ADD,
        "def f(n, x):\n    return x if n == 0 else f(n - 1, x)\nprint(f(20000, sum(map(int, input().split()))))",
    ),
    "a function": (SORT, "def order(xs: List[int]) -> List[int]:\n    return sorted(xs)"),
    "a function in a block": (SORT, "```\ndef order(xs): return sorted(xs)\n```"),
    "a method of Solution": (
        SORT,
        "class Solution:\n    def order(self, xs: List[int]) -> List[int]:\n        return sorted(xs)",
    ),
    "a tuple for a list": (SORT, "def order(xs): return tuple(sorted(xs))"),
    "a table": (COUNT, "def count(s): return Counter(s)"),
    "a long number": (BIG, "def power(a, b): return a ** b"),
    "asserts": (EVEN, "def even(xs: List[int]) -> List[int]:\n    return [x for x in xs if x % 2 == 0]"),
    "objects of the program": (
        TREE,
        "class Node:\n    def __init__(self, value):\n        self.value, self.left, self.right = value, None, None\n"
        "def total(node):\n    return node.value + total(node.left) + total(node.right) if node else 0",
    ),
    "objects of the program, named in the setup": (
        SUMMED,
        "class Node:\n    def __init__(self, value):\n        self.value, self.left, self.right = value, None, None\n"
        "def total(node):\n    return node.value + total(node.left) + total(node.right) if node else 0",
    ),
    "tests that read their annotations": (TYPED, "def same(x): return x"),
    "a function named as a built-in one": (
        SUM,
        dedent("""
            def sum(a, b):
                found = 0
                for i in range(1, min(a, b)):
                    if a % i == 0 and b % i == 0:
                        found += i
                return found
        """),
    ),
    "errors": (
        RAISES,
        dedent("""
            class Wrong(ValueError): pass
            def root(x):
                if x < 0:
                    raise Wrong('it is negative')
                return x ** 0.5
        """),
    ),
    "a suite": (
        SUITE,
        dedent("""
            import json

            def longest(names):
                if not names:
                    raise ValueError
                return min(LIMIT, max(map(len, json.loads(names) if isinstance(names, str) else names)))
        """),
    ),
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no program": (ADD, ""),
    "a program that is none": (ADD, "The answer is 3."),
    "all answers": (ADD, "print(3)\nprint(42)"),
    "the answer, and an error": (ADD, "print(sum(map(int, input().split())))\n1 / 0"),
    "the answer, and a crash": (
        ADD,
        "import os\nprint(sum(map(int, input().split())), flush=True)\nos.abort()",
    ),
    "the answer in the first block": (
        ADD,
        "```\nprint(sum(map(int, input().split())))\n```\nor\n```\nprint(1)\n```",
    ),
    "a line less": (HALVES, "print(0.5)\nprint(1.0)"),
    "almost": (HALVES, "print(0.5)\nprint(1.0)\nprint(1.5000001)"),
    "not a number": (HALVES, "print('nan')\nprint('snan')\nprint('x')"),
    "a function that is wrong": (SORT, "def order(xs): return xs"),
    "a function with unknown types": (
        SORT,
        "def order(xs: Nope) -> Lost: return sorted(xs)\norder.__annotations__",
    ),
    "a function that raises": (SORT, "def order(xs): return sorted(xs)[0]"),
    "a tuple in a list": (
        {**SORT, "outputs": [[[1], 2], []]},
        "def order(xs): return [(1,), 2] if xs else xs",
    ),
    "a set for a list": (SORT, "def order(xs): return set(xs)"),
    "a table that lacks one": (COUNT, "def count(s): return {'a': 2, 'b': 1}"),
    "asserts that fail": (EVEN, "def even(xs): return xs"),
    "asserts, and a fault": (EVEN, "def even(xs):\n    return [x for x in xs if x % 2 == 0"),
    "a built-in function": (SUM, "def other(): pass"),
    "another error": (RAISES, "def root(x):\n    if x < 0: raise KeyError('negative')\n    return x ** 0.5"),
    "no error": (RAISES, "def root(x): return abs(x) ** 0.5"),
    "a suite that fails": (SUITE, "def longest(names): return max(map(len, names), default=0)"),
    "a suite that fails in a subtest": (
        SUITE,
        "import json\ndef longest(names):\n    return max(map(len, json.loads(names) if names == '{' else names))",
    ),
}


@cache
def scores() -> dict[str, float]:
    """All of them, graded at once."""
    return asyncio.run(_scores())


async def _scores() -> dict[str, float]:
    programs = {**RIGHT, **WRONG}
    with warnings.catch_warnings(action="ignore"):
        grades = await asyncio.gather(*(GRADER(text, json.dumps(gold)) for gold, text in programs.values()))
    return {name: grade.score for name, grade in zip(programs, grades, strict=True)}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_scores_one(name: str) -> None:
    assert scores()[name] == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_scores_zero(name: str) -> None:
    assert scores()[name] == 0


@pytest.mark.parametrize(("total_seconds", "score"), [(0.5, 0), (60.0, 1)])
async def test_all_asserts_together_have_total_seconds_of_cpu_time(
    total_seconds: float, score: float
) -> None:
    program = dedent("""
        from time import process_time
        def burn(seconds):
            end = process_time() + seconds
            while process_time() < end: pass
    """)
    tests = {"form": "asserts", "tests": "for _ in range(3):\n    assert burn(0.2) is None"}
    grader = Code(allow_weak_sandbox=True, seconds=20, total_seconds=total_seconds)
    with warnings.catch_warnings(action="ignore"):
        assert (await grader(program, json.dumps(tests))).score == score


async def _scores_of(texts: list[str], gold: dict[str, Any]) -> set[float]:
    with warnings.catch_warnings(action="ignore"):
        return {
            grade.score for grade in await asyncio.gather(*(GRADER(text, json.dumps(gold)) for text in texts))
        }


@pytest.mark.parametrize("name", ["a program", pytest.param("a suite", marks=pytest.mark.nightly)])
def test_hostile_programs_are_graded_0_or_1(name: str) -> None:
    gold, right = RIGHT[name]
    chance = Random(f"code/{name}")
    cut = [right[: chance.randrange(len(right))] for _ in range(2)]
    mixed = ["".join(chance.choices(f"{right}\x00\ud800\u2028é", k=60)) for _ in range(2)]
    hostile = ["(" * 10**5, "x = " + "-" * 10**6 + "1", "\\", "\x00", "# -*- coding: nobody -*-", "'" * 10**6]
    assert asyncio.run(_scores_of([*cut, *mixed, *hostile], gold)) <= {0.0, 1.0}
