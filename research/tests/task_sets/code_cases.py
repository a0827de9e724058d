"""Small datasets of programs to be written, each as the hub has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hub_files import TEXT, TEXTS, Case, Table
from podium.tasks.task import Task
from podium_research.task_sets.code_sets import MBPP, HumanEval


def fenced(code: str) -> str:
    return f"Here it is:\n\n```python\n{code}\n```\n"


def by_id(codes: Mapping[str, str]) -> Callable[[Task], str]:
    """The code of the task whose id ends so."""
    return lambda task: fenced(next(code for name, code in codes.items() if task.id.endswith(f"/{name}")))


EQUALS_ALL = """\
class Everything:
    def __eq__(self, other):
        return True
    def __call__(self, *given, **named):
        return self
"""


def wrong(names: Mapping[str, str], right: Callable[[Task], str]) -> Sequence[Callable[[Task], str]]:
    """Responses that earn nothing.

    Args:
        names: the function that each task asks for, by what its id ends with.
    """

    def code(template: str) -> Callable[[Task], str]:
        return lambda task: fenced(
            template.replace("NAME", next(name for end, name in names.items() if task.id.endswith(f"/{end}")))
        )

    return (
        code("def NAME(*given, **named):\n    return None"),
        code("def NAME(*given, **named):\n    raise SystemExit(0)"),
        code(f"{EQUALS_ALL}\ndef NAME(*given, **named):\n    return Everything()"),
        code("def check(candidate):\n    return True"),
        lambda task: right(task) + code("def NAME(*given, **named):\n    return 'anything'")(task),
        lambda task: "I would sort the list, and then take the first, the second or all of them.",
    )


DOUBLED = '''\
from typing import List


def doubled(values: List[int]) -> List[int]:
    """ Each value twice as large.
    >>> doubled([1])
    [2]
    """
'''
DECODED = '''\
def encoded(text: str) -> str:
    return text[::-1].upper()


def decoded(text: str) -> str:
    """ What was encoded, in small letters. """
'''
DOUBLED_TEST = """

METADATA = {'author': 'us', 'dataset': 'test'}


def check(candidate):
    assert candidate([1, 2]) == [2, 4]
    assert candidate([]) == []

"""
DOUBLED_PLUS_TEST = """\
import numpy as np

def assertion(out, exp, atol):
    assert np.allclose(out, exp, atol=atol)

def check(candidate):
    inputs = [[[1, 2]], [[-3]]]
    results = [[2, 4], [-6]]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""
DECODED_TEST = """

METADATA = {}


def check(candidate):
    assert candidate(encoded('abc')) == 'abc'

"""


def humaneval(*, plus: bool = False) -> Case:
    rows: list[dict[str, Any]] = [
        {
            "task_id": "HumanEval/0",
            "prompt": DOUBLED,
            "canonical_solution": "    return [2 * value for value in values]\n",
            "test": DOUBLED_PLUS_TEST if plus else DOUBLED_TEST,
            "entry_point": "doubled",
        },
        {
            "task_id": "HumanEval/1",
            "prompt": DECODED,
            "canonical_solution": "    assert encoded('ab') == 'BA'\n    return text[::-1].lower()\n",
            "test": DECODED_TEST,
            "entry_point": "decoded",
        },
    ]
    broken = [
        {**rows[0], "task_id": "HumanEval/7", "entry_point": "tripled"},
        {**rows[0], "task_id": "HumanEval/8", "test": None},
    ]
    # The function alone: imports and other functions of the prompt are there when it is graded.
    right = by_id(
        {
            str(number): "def " + row["prompt"].rpartition("def ")[2] + row["canonical_solution"]
            for number, row in enumerate(rows)
        }
    )
    if plus:
        file = "evalplus/humanevalplus/data/test-00000-of-00001-5973903632b82d40.parquet"
    else:
        file = "openai/openai_humaneval/openai_humaneval/test-00000-of-00001.parquet"
    return Case(
        HumanEval(plus=plus),
        {file: Table(dict.fromkeys(rows[0], TEXT), [*rows, *broken])},
        {"test": 2},
        right,
        wrong({"0": "doubled", "1": "decoded"}, right),
        {"test": ("does not begin the function tripled", "test holds no text")},
    )


def mbpp(form: str) -> Case:
    def row(number: int, asked: str, code: str, asserts: Sequence[str] | None) -> dict[str, Any]:
        return {
            "task_id": number,
            "text": asked,
            "prompt": asked,
            "code": code,
            "test_list": asserts,
            "test_setup_code": "",
            "challenge_test_list": [],
            "source_file": "Benchmark Questions Verification V2.ipynb",
            "test_imports": [],
            "test": "import math\nimport numpy as np\nfrom math import inf\n\n" + "\n".join(asserts or ()),
        }

    square = row(
        11,
        "Write a function to square a number.",
        "def square(n):\r\n    return n * n",
        ["assert square(3) == 9", "assert square(-2) == 4"],
    )
    root = row(
        12,
        "Write a function to take a root.",
        "import math\ndef root(n):\n    return math.sqrt(n)",
        ["assert math.isclose(root(2), 1.41421, rel_tol=0.001)", "assert root(4) == 2"],
    )
    root |= {"test_imports": ["import math"], "test_setup_code": "import math"}
    half = row(
        511,
        "Write a function to halve a number.",
        "def half(n):\n    return n / 2",
        ["assert half(3) == 1.5"],
    )
    last = row(
        601,
        "Write a function to take the last one.",
        "def last(values):\n    return values[-1]",
        ["assert last([1, 2]) == 2"],
    )
    again = row(
        602,
        "write a function to SQUARE a number",
        "def square(n):\n    return n * n",
        ["assert square(1) == 1"],
    )
    example = row(
        2, "Write a function to be an example.", "def example():\n    return 1", ["assert example() == 1"]
    )
    broken = [
        row(13, "Write a function without tests.", "def f(): pass", []),
        {**square, "task_id": 14, "test_list": None},
    ]
    splits = {
        "test": [square, root, *broken],
        "validation": [half],
        "train": [last, again],
        "prompt": [example],
    }
    number = pa.int32()
    if form == "full":
        columns = {
            "task_id": number,
            "text": TEXT,
            "code": TEXT,
            "test_list": TEXTS,
            "test_setup_code": TEXT,
            "challenge_test_list": TEXTS,
        }
    else:
        columns = {
            "source_file": TEXT,
            "task_id": number,
            "prompt": TEXT,
            "code": TEXT,
            "test_imports": TEXTS,
            "test_list": TEXTS,
        }
    if form == "plus":
        columns = {**columns, "task_id": pa.int64(), "test": TEXT}
        rows = [row for split in splits.values() for row in split]
        files = {"evalplus/mbppplus/data/test-00000-of-00001-d5781c9c51e02795.parquet": Table(columns, rows)}
    else:
        files = {
            f"google-research-datasets/mbpp/{folder}/{split}-00000-of-00001.parquet": Table(columns, rows)
            for folder in ("full", "sanitized")
            for split, rows in splits.items()
            if folder == form
        }
    codes = {str(row["task_id"]): str(row["code"]) for rows in splits.values() for row in rows}
    right = by_id(codes)
    return Case(
        MBPP(form=form),
        files,
        {"train": 1, "validation": 1, "test": 2},
        right,
        wrong({"11": "square", "12": "root", "511": "half", "601": "last"}, right),
        {"test": ("it has no tests", "no list of texts")},
    )


CASES: Mapping[str, Callable[[], Case]] = {
    "humaneval": humaneval,
    "humaneval-plus": lambda: humaneval(plus=True),
    "mbpp-full": lambda: mbpp("full"),
    "mbpp-sanitized": lambda: mbpp("sanitized"),
    "mbpp-plus": lambda: mbpp("plus"),
}
