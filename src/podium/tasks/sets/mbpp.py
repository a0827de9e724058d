"""MBPP: short Python functions, asked for in a sentence and three asserts.

Source: `google-research-datasets/mbpp` on the hub (Austin et al. 2021, arXiv 2108.07732), CC-BY-4.0: the full 974, or
the 427 that its authors went over (`sanitized`); or 378 of those with many more tests (`plus`), `evalplus/mbppplus`
(Liu et al. 2023, arXiv 2305.01210), Apache-2.0, which need NumPy. Splits by number, as the authors have them: test 11
to 510, validation 511 to 600, train 601 to 974; 1 to 10 are their examples. The asserts are shown (of `plus` the first)
and must all pass.
Trap: `evalplus/mbppplus` calls all its questions test, those of train too. Here the number decides, in every form: so a
figure on `plus` is of fewer questions than EvalPlus's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from podium.rows import Row
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text, texts, whole
from podium.tasks.sets.programs import ProgramSet
from podium.tasks.sets.prompts import CODE

_NUMBERS = MappingProxyType({"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511)})
_ASKED = "{task}\n\nYour code should pass:\n\n```python\n{asserts}\n```"


class MBPP(ProgramSet):
    """The settings of the set."""

    source: ClassVar[str] = "google-research-datasets/mbpp"
    licence: ClassVar[str] = "CC-BY-4.0; plus: Apache-2.0"
    set: Literal["mbpp"] = "mbpp"
    form: Literal["full", "sanitized", "plus"] = "full"

    def source_of(self, split: str) -> str:
        return "evalplus/mbppplus" if self.form == "plus" else self.source

    @property
    def label(self) -> str:
        return f"mbpp-{self.form}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        if self.form == "plus":
            return dict.fromkeys(_NUMBERS, ("data/test-*.parquet",))
        return {split: (f"{self.form}/{split}-*.parquet",) for split in _NUMBERS}

    def _rows(self, split: str) -> Iterator[Row]:
        numbers = _NUMBERS[split]
        # A row without a number stays, so that `entry` complains.
        return (row for row in super()._rows(split) if row.values.get("task_id", numbers[0]) in numbers)

    def entry(self, values: Mapping[str, Any]) -> Entry:
        task = text(values, "text" if self.form == "full" else "prompt")
        asserts = texts(values, "test_list")
        if not asserts:
            raise ValueError("it has no tests")
        if self.form == "full":
            setup = str(values["test_setup_code"] or "")
        else:
            setup = "\n".join(texts(values, "test_imports"))
        plus = self.form == "plus"
        gold = {
            "form": "asserts",
            "setup": setup,
            "tests": text(values, "test") if plus else "\n".join(asserts),
        }
        asked = _ASKED.format(task=task.strip(), asserts="\n".join(asserts[:1] if plus else asserts))
        number = str(whole(values, "task_id"))
        return Entry(CODE.format(question=asked), json.dumps(gold), number, content=task)
