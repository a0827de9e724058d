"""What the fuzzing of `test_fuzzing` tries first, in every run: inputs that once failed, and those that nearly did.

When a run fails, add the input that it prints to the row of its test, and keep it there after the mend: hypothesis
forgets what no longer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import example

LISTS = 'model_id = [0]\nsubtasks = ["x"]\naccess_list = [[]]'

PLANS = (
    LISTS,
    "<think>" + LISTS,
    "<think>\n</think>" * 3 + LISTS,
    "model_id = [" * 50,
    "model_id = [0,\nmodel_id = [0]\nsubtasks = ['x'\nsubtasks = ['x']\naccess_list = [[]]",
    'model\\_id := [00]\nsubtasks = ["""x"""]\naccess_list = [["previous"]]',
    'model_id = [0]\nsubtasks = ["\ud800"]\naccess_list = [[]]',
    "model_id = [9999999999]\nsubtasks = ['']\naccess_list = [[-1]]",
)
"""Texts of a planner."""

BODIES = (
    b'{"a": "\\\\"}',
    b'{"a": "\\\\\\""',
    b'"' + b"\\" * 5,
    b"[" * 40 + b"]" * 41,
    b"][",
    b'{"a":[],"b":{},"c":[[]]}',
    b'{"a\\"[": "]}"}',
    b"\xff[\xff]",
)
"""Bodies of a request, whole or broken."""

ANSWERS = (
    "e9",  # `numeric` raised: an exponent without digits before it
    "Answer: e9",
    "\\boxed{",
    "\\boxed{{}",
    "<answer></answer>",
    "Answer: \ud800",
    "#### ",
    "\u0338",
    "(A) or (B)",
    "-",
)
"""Responses that graders read."""


def first(name: str, values: Sequence[Any], **fixed: Any) -> Callable[[Any], Any]:
    """Have a test try these values of its argument `name` before all others."""

    def decorate(test: Any) -> Any:
        for value in values:
            test = example(**{name: value}, **fixed)(test)
        return test

    return decorate
