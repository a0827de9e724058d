"""HumanEval: functions to be written after their signature and docstring.

Source: `openai/openai_humaneval` on the hub (Chen et al. 2021, arXiv 2107.03374), MIT; with `plus`, the same 164
questions with eighty times the tests, `evalplus/humanevalplus` (Liu et al. 2023, arXiv 2305.01210), Apache-2.0, which
need NumPy. Split: test. Asked for the whole function; what stands before it in the prompt (imports, other functions) is
there when it is graded. All tests must pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.programs import ProgramSet
from podium.tasks.sets.prompts import COMPLETION


class HumanEval(ProgramSet):
    """The settings of the set."""

    source: ClassVar[str] = "openai/openai_humaneval"
    licence: ClassVar[str] = "MIT; plus: Apache-2.0"
    set: Literal["humaneval"] = "humaneval"
    plus: bool = False
    """With the tests of EvalPlus."""

    def source_of(self, split: str) -> str:
        return "evalplus/humanevalplus" if self.plus else self.source

    @property
    def label(self) -> str:
        return "humaneval-plus" if self.plus else "humaneval"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("data/test-*.parquet" if self.plus else "openai_humaneval/test-*.parquet",)}

    def entry(self, values: Mapping[str, Any]) -> Entry:
        prompt, name = text(values, "prompt"), text(values, "entry_point")
        before, defined, _ = prompt.rpartition(f"def {name}(")
        if not defined:
            raise ValueError(f"the prompt does not begin the function {name}")
        gold = {"form": "asserts", "setup": before, "tests": f"{text(values, 'test')}\n\ncheck({name})\n"}
        return Entry(
            COMPLETION.format(question="Complete this function:", code=prompt.strip()),
            json.dumps(gold),
            text(values, "task_id"),
            content=prompt,
        )
