"""LiveCodeBench as the hub has it, on a few problems of ours."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from code_cases import EQUALS_ALL, by_id, fenced
from hub_files import TEXT, Case, Table
from podium_research.task_sets.livecodebench import LiveCodeBench


def packed(tests: Sequence[Mapping[str, str]], protocol: int = 4) -> str:
    """Private tests, as the dataset packs them."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests), protocol))).decode()


def contest_row(number: str, day: str = "2025-02-08", **changes: Any) -> dict[str, Any]:
    """A program that adds two numbers, as LiveCodeBench has it."""
    tests = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
    return {
        "question_title": f"Sum {number}",
        "question_content": f"Read two numbers of contest {number}, and print their sum.",
        "platform": "atcoder",
        "question_id": number,
        "contest_id": "abc1",
        "contest_date": f"{day}T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(tests),
        "private_test_cases": packed([{"input": "5 -7\n", "output": "-2\n", "testtype": "stdin"}]),
        "metadata": "{}",
        **changes,
    }


def function_row(number: str) -> dict[str, Any]:
    """A function that adds two numbers in a list of lists, as LiveCodeBench has it."""

    def test(*lines: str, output: str) -> dict[str, str]:
        return {"input": "\n".join(lines), "output": output, "testtype": "functional"}

    return contest_row(
        number,
        platform="leetcode",
        question_content=f"Given two numbers of contest {number}, return both sums.",
        starter_code="class Solution:\n    def bothSums(self, a: int, more: List[int]) -> List[int]:\n        ",
        public_test_cases=json.dumps([test("1", "[2]", output="[3, 1]")]),
        private_test_cases=json.dumps([test("-4", "[4, 5]", output="[5, -4]")]),
        metadata=json.dumps({"func_name": "bothSums"}),
    )


ADDS = "a, b = map(int, input().split())\nprint(a + b)"
ADDS_BOTH = """\
class Solution:
    def bothSums(self, a: int, more: List[int]) -> List[int]:
        return [a + sum(more), a]
"""


def livecodebench() -> Case:
    sixth = [
        contest_row("abc387_a"),
        function_row("3702"),
        contest_row("abc387_b", private_test_cases="no base 64"),
        contest_row("abc387_c", public_test_cases=None),
    ]
    first = [
        contest_row("abc301_a", "2023-05-13"),
        contest_row("abc301_b", "2023-05-14"),
        function_row("2727"),
    ]
    first.append({**contest_row("abc387_a"), "question_id": "abc301_c"})
    columns = dict.fromkeys(first[0], TEXT)
    right = by_id(
        {"3702": ADDS_BOTH, "2727": ADDS_BOTH, **{f"abc{n}": ADDS for n in ("387_a", "301_a", "301_b")}}
    )
    wrongs = (
        "print(3)",
        "class Solution:\n    def bothSums(self, a, more):\n        return [a + sum(more), a, 0]",
        "print(3)\nprint(-2)",
        "class Solution:\n    def bothSums(self, a, more):\n        return None",
        f"{EQUALS_ALL}\nclass Solution:\n    def bothSums(self, a, more):\n        return Everything()\nprint('3 -2')",
    )
    return Case(
        LiveCodeBench(),
        {
            "livecodebench/code_generation_lite/test.jsonl": Table(columns, first),
            "livecodebench/code_generation_lite/test6.jsonl": Table(columns, sixth),
        },
        {"train": 3, "test": 2},
        right,
        (
            *(lambda task, code=code: fenced(code) for code in wrongs),
            lambda task: right(task) + fenced("print('anything')"),
            lambda task: f"Add them.\n{right(task)}\nOr rather:\n{fenced('pass')}",
        ),
        {"test": ("its tests cannot be read", "public_test_cases holds no text")},
    )


CASES: Mapping[str, Callable[[], Case]] = {"livecodebench": livecodebench}
