"""What gold answers of code say, and which are refused."""

from __future__ import annotations

import asyncio
import json
import warnings
from functools import cache
from textwrap import dedent
from typing import Any

import pytest

from podium.errors import GraderError
from podium.tasks.graders.code_grader import Code
from podium.tasks.graders.code_tests import (
    definitions,
    import_statements,
    shared_definitions,
    unittest_methods,
    used_names,
)

DEEP: Any = 1
for _ in range(101):
    DEEP = [DEEP]
SUITE = "import unittest\nclass TestCases(unittest.TestCase):\n    def test_one(self): self.assertEqual(f(1), 1)\n"


@pytest.mark.parametrize(
    ("gold", "problem"),
    [
        ("", "the gold answer is no tests"),
        ("no JSON", "the gold answer is no tests"),
        ("[]", "the gold answer is no tests"),
        ("{}", "the gold answer is no tests"),
        ({"form": "prose"}, "does not match any of the expected tags"),
        ({"form": "programs", "inputs": [], "outputs": []}, "at programs.inputs is no tests"),
        ({"form": "programs", "inputs": ["1"], "outputs": []}, "there are 1 inputs, but 0 outputs"),
        ({"form": "programs", "inputs": [1], "outputs": ["1"]}, "at programs.inputs.0 is no tests"),
        (
            {"form": "programs", "inputs": ["1"], "outputs": ["1"], "input": []},
            "at programs.input is no tests",
        ),
        ({"form": "calls", "function": "", "inputs": [[1]], "outputs": [1]}, "at calls.function is no tests"),
        ({"form": "calls", "function": "f", "inputs": [1], "outputs": [1]}, "at calls.inputs.0 is no tests"),
        (
            {"form": "calls", "function": "f", "inputs": [[1], [2]], "outputs": [1]},
            "there are 2 inputs, but 1 output",
        ),
        ({"form": "calls", "function": "f", "inputs": [[DEEP[0]]], "outputs": [1]}, "levels deep"),
        ({"form": "calls", "function": "f", "inputs": [[1]], "outputs": [DEEP]}, "levels deep"),
        ({"form": "asserts", "tests": "assert f(1) ="}, "the source of its tests is not Python"),
        (
            {"form": "asserts", "setup": "import", "tests": "assert f(1)"},
            "the source of its tests is not Python",
        ),
        ({"form": "asserts", "tests": "assert 1 == 1"}, "its tests use nothing of the program"),
        (
            {"form": "asserts", "setup": "def f(): pass", "tests": "assert f()"},
            "its tests use nothing of the program",
        ),
        ({"form": "unittest", "tests": "class TestCases: pass"}, "no class TestCases with tests"),
        ({"form": "unittest", "tests": SUITE.replace("TestCases", "Tests")}, "no class TestCases with tests"),
        ({"form": "unittest", "tests": SUITE.replace("f(1)", "1")}, "its tests use nothing of the program"),
        ({"form": "unittest", "tests": f"import os\n{SUITE}os.remove('x')"}, "since they use os"),
        ({"form": "unittest", "tests": f"{SUITE}open('x')"}, "since they use open"),
        ("[" * 100_000, "the gold answer is no tests"),
    ],
    ids=str,
)
def test_code_grader_reports_an_invalid_gold_answer(gold: str | dict[str, Any], problem: str) -> None:
    text = gold if isinstance(gold, str) else json.dumps(gold)
    assert problem in (Code().gold_problem(text) or "")


@pytest.mark.parametrize(
    "gold",
    [
        {"form": "programs", "inputs": [""], "outputs": [""]},
        {"form": "calls", "function": "f", "inputs": [[]], "outputs": [None]},
        {"form": "calls", "function": "f", "inputs": [DEEP[0]], "outputs": [DEEP[0]]},
        {"form": "asserts", "tests": "assert f(1) == 2"},
        {"form": "unittest", "setup": "import os", "tests": SUITE},
    ],
    ids=str,
)
def test_gold_answers_are_accepted(gold: dict[str, Any]) -> None:
    assert Code().gold_problem(json.dumps(gold)) is None


# --- what tests ask for ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setup", "tests", "names"),
    [
        ("", "assert f(1) == g(2)", ["f", "g"]),
        ("import math", "assert math.isclose(f(1), 2)", ["f"]),
        ("from math import *\ndef close(a, b): return a == b", "assert close(f(1), 2)", ["f"]),
        ("", "def check(candidate):\n    for x in [1]:\n        assert candidate(x)\ncheck(f)", ["f"]),
        ("", "assert [f(x) for x in range(3)] == list(map(g, [1]))", ["f", "g"]),
        ("root = Node(1)", "assert depth(root) == 1", ["Node", "depth"]),
        ("", "assert sum(10, 15) == 6", ["sum"]),
        ("", "assert sorted(f([2, 1])) == [1, 2]", ["f"]),
        ("", "for a, b in zip([1], [2]):\n    assert sum(a, b) == 3", ["sum"]),
        ("", "assert len([]) == 0", []),
    ],
)
def test_only_names_the_tests_do_not_define_come_from_the_program(
    setup: str, tests: str, names: list[str]
) -> None:
    assert used_names(setup, tests) == names


def test_definitions_keep_only_statements_without_side_effects() -> None:
    source = (
        "import os\nLIMIT = 10\nroot = Node(1)\nroot.left = Node(2)\nprint(1)\n\ndef f():\n    return g()\n"
    )
    assert definitions(source).split("\n")[1:] == ["import os", "LIMIT = 10", "def f():", "    return g()"]


def test_unittest_methods_include_inherited_tests() -> None:
    source = dedent("""
        class A(B, C):
         def test_a(self): 0
        class TestCases(A, A):
         def test_b(self): 0
         def helper(self): 0
    """)
    assert unittest_methods(source) == ["test_a", "test_b"]
    assert unittest_methods("class TestCases(TestCases):\n def test_x(self): 0") == ["test_x"]


@pytest.mark.parametrize(
    ("setup", "tests", "shared"),
    [
        ("import os, random", "import unittest, math\nmath.isclose(f(1), 1)", []),
        ("import os", "f(os.getcwd())", ["os"]),
        ("", "import os.path as p\np.exists(f())", ["os.path"]),
        ("", "def test():\n    from unittest.mock import patch\n    patch('x')", ["unittest.mock"]),
        ("", "from random import *\nf(randint(1, 2))", ["random"]),
        ("import pandas as pd", "f(1)", ["pandas"]),
        ("", "import os\nwith open(f()): pass", ["open"]),
    ],
)
def test_modules_shared_by_tests_and_program_are_reported(setup: str, tests: str, shared: list[str]) -> None:
    assert shared_definitions(setup, tests) == shared


def test_import_statements_are_those_at_the_top() -> None:
    source = "import os, os.path as p\nfrom a.b import c\ndef f():\n    import d\n"
    assert import_statements(source) == "import os, os.path as p\nfrom a.b import c"


# --- faults that are no program's ---------------------------------------------------------------------------------

FAULTS = {
    "tests that need what is not here": (
        {"form": "asserts", "tests": "import nobody_has_this\nassert f(1)"},
        "No module named 'nobody_has_this'",
    ),
    "a setup that needs what is not here": (
        {"form": "asserts", "setup": "import nobody_has_this", "tests": "assert f(1)"},
        "No module named 'nobody_has_this'",
    ),
    "a suite that needs what is not here": (
        {"form": "unittest", "tests": f"import nobody_has_this\n{SUITE}"},
        "No module named 'nobody_has_this'",
    ),
    "tests that hand over a function": (
        {"form": "asserts", "tests": "try:\n    f(lambda: 1)\nexcept Exception:\n    pass"},
        "cannot be sent",
    ),
    "tests that call nothing": (
        {"form": "asserts", "tests": "def test_it():\n    assert f(1)"},
        "call no function of the program",
    ),
    "no tests": ({"form": "asserts", "tests": "assert 1"}, "use nothing of the program"),
}


@cache
def faults() -> dict[str, str]:
    return asyncio.run(_faults())


async def _faults() -> dict[str, str]:
    grader = Code(allow_weak_sandbox=True, seconds=20)
    with warnings.catch_warnings(action="ignore"):
        return {name: await _fault(grader, json.dumps(gold)) for name, (gold, _) in FAULTS.items()}


async def _fault(grader: Code, gold: str) -> str:
    try:
        return str(await grader("def f(x): return x", gold))
    except GraderError as error:
        return str(error)


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_tests_are_a_grader_failure_and_not_a_wrong_answer(name: str) -> None:
    assert FAULTS[name][1] in faults()[name]


def test_equal_settings_are_equal() -> None:
    assert Code(seconds=3) == Code(seconds=3) != Code(seconds=4)
    assert hash(Code()) == hash(Code())
