"""Benchmarks of code whose datasets hold plain tests: HumanEval, MBPP and BigCodeBench, one class each.

LiveCodeBench, whose tests are packed, has a module of its own (`livecodebench`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from podium.files.tables import Row
from podium.plugin_api.tasks import Sample
from podium.tasks.graders.code_grader import Code
from podium.tasks.sets.prompts import CODE, COMPLETION
from podium_research.task_sets.hub import HubSet, int_column, list_column, text_column


class CodeSet(HubSet):
    """A task set whose answers are programs, run against tests in a sandbox (`Code`)."""

    grading: Code = Field(default_factory=Code)
    """Limits of programs, and whether a weak sandbox is allowed."""

    @property
    def grader(self) -> Code:
        return self.grading


class HumanEval(CodeSet):
    """HumanEval: functions to be written after their signature and docstring.

    Source: `openai/openai_humaneval` on the hub (Chen et al. 2021, arXiv 2107.03374), MIT; with `plus`, the same 164
    questions with eighty times the tests, `evalplus/humanevalplus` (Liu et al. 2023, arXiv 2305.01210), Apache-2.0,
    which need NumPy. Split: test. Asked for the whole function; what stands before it in the prompt (imports, other
    functions) is there when it is graded. All tests must pass.
    """

    source: ClassVar[str] = "openai/openai_humaneval"
    licence: ClassVar[str] = "MIT; plus: Apache-2.0"
    set: Literal["humaneval"] = "humaneval"
    plus: bool = False
    """Whether EvalPlus's tests are run."""

    def source_of(self, split: str) -> str:
        return "evalplus/humanevalplus" if self.plus else self.source

    @property
    def label(self) -> str:
        return "humaneval-plus" if self.plus else "humaneval"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": ("data/test-*.parquet" if self.plus else "openai_humaneval/test-*.parquet",)}

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        prompt, name = text_column(values, "prompt"), text_column(values, "entry_point")
        before, defined, _ = prompt.rpartition(f"def {name}(")
        if not defined:
            raise ValueError(f"the prompt does not begin the function {name}")
        gold = {
            "form": "asserts",
            "setup": before,
            "tests": f"{text_column(values, 'test')}\n\ncheck({name})\n",
        }
        return Sample(
            COMPLETION.format(question="Complete this function:", code=prompt.strip()),
            json.dumps(gold),
            text_column(values, "task_id"),
            content=prompt,
        )


_NUMBERS = MappingProxyType({"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511)})
_ASKED = "{task}\n\nYour code should pass:\n\n```python\n{asserts}\n```"


class MBPP(CodeSet):
    """MBPP: short Python functions, described by a sentence and three asserts.

    Source: `google-research-datasets/mbpp` on the hub (Austin et al. 2021, arXiv 2108.07732), CC-BY-4.0: the full
    974, or the 427 that its authors went over (`sanitized`); or 378 of those with many more tests (`plus`),
    `evalplus/mbppplus` (Liu et al. 2023, arXiv 2305.01210), Apache-2.0, which need NumPy. Splits by number, as the
    authors have them: test 11 to 510, validation 511 to 600, train 601 to 974; 1 to 10 are their examples. The
    asserts are shown (of `plus` the first) and must all pass.
    Trap: `evalplus/mbppplus` calls all its questions test, even the training questions. Here the number decides, in
    every form: so a figure on `plus` is of fewer questions than EvalPlus's own.
    """

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
        # A row without a number stays, so that `record_to_sample` complains.
        return (row for row in super()._rows(split) if row.values.get("task_id", numbers[0]) in numbers)

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        task = text_column(values, "text" if self.form == "full" else "prompt")
        asserts = list_column(values, "test_list")
        if not asserts:
            raise ValueError("it has no tests")
        if self.form == "full":
            setup = str(values["test_setup_code"] or "")
        else:
            setup = "\n".join(list_column(values, "test_imports"))
        plus = self.form == "plus"
        gold = {
            "form": "asserts",
            "setup": setup,
            "tests": text_column(values, "test") if plus else "\n".join(asserts),
        }
        text = _ASKED.format(task=task.strip(), asserts="\n".join(asserts[:1] if plus else asserts))
        number = str(int_column(values, "task_id"))
        return Sample(CODE.format(question=text), json.dumps(gold), number, content=task)


class BigCodeBench(CodeSet):
    """BigCodeBench: functions that use several libraries, tested by unittest.

    Source: `bigcode/bigcodebench` (1,140) and its harder part `bigcode/bigcodebench-hard` (148) on the hub, version
    v0.1.4 (Zhuo et al. 2024, arXiv 2406.15877), Apache-2.0. Split: test. Asked by the signature and docstring
    (`complete`) or in a sentence (`instruct`). Graded as its authors do where they calibrate: the prompt's own
    imports and constants are there, and all tests must pass.
    Trap: a test runs in another process than the program, so questions are left out, and counted, whose tests use mocks
    or files, or whose prompt imports a package from outside the standard library. A figure is of the others alone.
    """

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

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        if self.prompt == "complete":
            code = text_column(values, "complete_prompt").strip()
            text = COMPLETION.format(question="Complete this function:", code=code)
        else:
            text = CODE.format(question=text_column(values, "instruct_prompt").strip())
        name = text_column(values, "entry_point")
        before, _, _ = text_column(values, "code_prompt").rpartition(f"def {name}(")
        gold = {"form": "unittest", "setup": before, "tests": text_column(values, "test")}
        return Sample(
            text,
            json.dumps(gold),
            text_column(values, "task_id"),
            {"libraries": _libraries(text_column(values, "libs"))},
            content=text_column(values, "complete_prompt"),
        )


def _libraries(listed: str) -> tuple[str, ...]:
    """Parse the list, which the dataset writes in Python's notation: `['random', 'itertools']`."""
    try:
        return tuple(str(library) for library in ast.literal_eval(listed))
    except (SyntaxError, TypeError, ValueError):
        raise ValueError("its libraries are no list") from None
