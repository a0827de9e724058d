"""BigCodeBench: functions that use several libraries, tested by unittest.

Source: `bigcode/bigcodebench` (1,140) and its harder part `bigcode/bigcodebench-hard` (148) on the hub, version v0.1.4
(Zhuo et al. 2024, arXiv 2406.15877), Apache-2.0. Split: test. Asked by the signature and docstring (`complete`) or in a
sentence (`instruct`). Graded as its authors do where they calibrate: the prompt's own imports and constants are there,
and all tests must pass.
Trap: the tests need 139 libraries (its `Requirements/requirements-eval.txt`) where they run; what is not installed
there counts as wrong, and some tests need a network, which the sandbox denies.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.programs import ProgramSet
from podium.tasks.sets.prompts import CODE, COMPLETION


class BigCodeBench(ProgramSet):
    """The settings of the set."""

    source: ClassVar[str] = "bigcode/bigcodebench"
    licence: ClassVar[str] = "Apache-2.0"
    set: Literal["bigcodebench"] = "bigcodebench"
    hard: bool = True
    """The harder part alone; false: all of it."""
    prompt: Literal["complete", "instruct"] = "complete"

    def source_of(self, split: str) -> str:
        return f"{self.source}-hard" if self.hard else self.source

    @property
    def label(self) -> str:
        return f"bigcodebench-{'hard-' if self.hard else ''}{self.prompt}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("data/v0.1.4-*.parquet",)}

    def entry(self, values: Mapping[str, Any]) -> Entry:
        if self.prompt == "complete":
            code = text(values, "complete_prompt").strip()
            asked = COMPLETION.format(question="Complete this function:", code=code)
        else:
            asked = CODE.format(question=text(values, "instruct_prompt").strip())
        name = text(values, "entry_point")
        before, _, _ = text(values, "code_prompt").rpartition(f"def {name}(")
        gold = {"form": "unittest", "setup": before, "tests": text(values, "test")}
        return Entry(
            asked,
            json.dumps(gold),
            text(values, "task_id"),
            {"libraries": _libraries(text(values, "libs"))},
            content=text(values, "complete_prompt"),
        )


def _libraries(listed: str) -> tuple[str, ...]:
    """The dataset writes a list as Python does: `['random', 'itertools']`."""
    try:
        return tuple(str(library) for library in ast.literal_eval(listed))
    except (SyntaxError, TypeError, ValueError):
        raise ValueError("its libraries are no list") from None
