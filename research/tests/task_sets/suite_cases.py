"""BigCodeBench as the hub has it, on a question of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from code_cases import by_id, wrong
from hub_files import TEXT, Case, Table
from podium_research.task_sets.code_sets import BigCodeBench

COUNTED = """\
import random
from collections import Counter
FIRST = 'a'

def task_func(letters: list = [FIRST]) -> Counter:
"""
COUNTED_DOCSTRING = '''\
    """
    Count letters.

    Requirements:
    - collections.Counter
    """
'''
COUNTED_TEST = """\
import unittest
from unittest.mock import patch

class TestCases(unittest.TestCase):
    def test_given(self):
        self.assertEqual(task_func(['b', 'b']), {'b': 2})

    def test_default(self):
        self.assertEqual(task_func(), {'a': 1})
"""
PATCHED_TEST = """\
import unittest
from unittest.mock import patch

class TestCases(unittest.TestCase):
    @patch('random.random', return_value=0.5)
    def test_default(self, mocked):
        self.assertEqual(task_func(), {'a': 1})
        mocked.assert_called_once()
"""


def bigcodebench(*, hard: bool, prompt: str) -> Case:
    body = "    random.random()\n    return Counter(letters)\n"
    row = {
        "task_id": "BigCodeBench/13",
        "complete_prompt": COUNTED + COUNTED_DOCSTRING,
        "instruct_prompt": f"Count letters.\nYou should write self-contained code starting with:\n```\n{COUNTED}```",
        "canonical_solution": body,
        "code_prompt": COUNTED,
        "test": COUNTED_TEST,
        "entry_point": "task_func",
        "doc_struct": '{"description": ["Count letters."]}',
        "libs": "['random', 'collections']",
    }
    columns = dict.fromkeys(row, TEXT)
    rows: list[dict[str, Any]] = [
        row,
        {**row, "task_id": "BigCodeBench/14", "libs": "random,"},
        {**row, "task_id": "BigCodeBench/15", "test": None},
        {**row, "task_id": "BigCodeBench/16", "test": PATCHED_TEST},
    ]
    if hard:
        more = {"q_idx": 3, "question": "How to count?", "score": 0.7, "_id": "BigCodeBench/13"}
        columns |= {"q_idx": pa.int64(), "question": TEXT, "score": pa.float64(), "_id": TEXT}
        rows = [{**row, **more} for row in rows]
    # Without the imports and the constant of the prompt, as a calibrated one is graded.
    right = by_id({"13": "def " + COUNTED.rpartition("def ")[2] + body})
    folder = f"bigcode/bigcodebench{'-hard' if hard else ''}/data"
    return Case(
        BigCodeBench(hard=hard, prompt=prompt),
        {
            f"{folder}/v0.1.4-00000-of-00001.parquet": Table(columns, rows),
            f"{folder}/v0.1.3-00000-of-00001.parquet": Table(columns, [{**row, "task_id": "BigCodeBench/1"}]),
        },
        {"test": 1},
        right,
        wrong({"13": "task_func"}, right),
        {"test": ("libraries are no list", "test holds no text", "since they use unittest.mock")},
    )


CASES: Mapping[str, Callable[[], Case]] = {
    "bigcodebench": lambda: bigcodebench(hard=False, prompt="instruct"),
    "bigcodebench-hard": lambda: bigcodebench(hard=True, prompt="complete"),
}
