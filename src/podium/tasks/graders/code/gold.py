"""The gold answer of a question about code: its tests, as JSON that says their form.

- `{"form": "programs", "inputs": [...], "outputs": [...]}`: texts for standard input, and what is to be printed.
- `{"form": "calls", "function": name, "inputs": [[argument, ...], ...], "outputs": [value, ...]}`.
- `{"form": "asserts", "setup": source, "tests": source}`: statements that raise unless the program is right.
- `{"form": "unittest", "setup": source, "tests": source}`: a class `TestCases`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from podium.config import Settings
from podium.tasks.graders.code import needs


class Programs(Settings):
    """Tests of a program that reads its standard input, as LiveCodeBench has them."""

    form: Literal["programs"]
    inputs: tuple[str, ...] = Field(min_length=1)
    outputs: tuple[str, ...]

    @model_validator(mode="after")
    def _even(self) -> Programs:
        _same_length(self.inputs, self.outputs)
        return self


class Calls(Settings):
    """Tests of a function, or of the method of a class `Solution`, by values of JSON."""

    form: Literal["calls"]
    function: str = Field(min_length=1)
    inputs: tuple[tuple[Any, ...], ...] = Field(min_length=1)
    """The arguments of each call."""
    outputs: tuple[Any, ...]

    @model_validator(mode="after")
    def _even(self) -> Calls:
        _same_length(self.inputs, self.outputs)
        return self


class Asserts(Settings):
    """Tests that are statements, as HumanEval and MBPP have them."""

    form: Literal["asserts"]
    setup: str = ""
    """Runs before the tests; its imports, functions, classes and constants stand before the program, too. What it
    defines is not the program's to define."""
    tests: str

    @model_validator(mode="after")
    def _asking(self) -> Asserts:
        _parse(self.setup, self.tests)
        if not self.names:
            raise ValueError("its tests use nothing of the program")
        return self

    @cached_property
    def names(self) -> list[str]:
        """What the program has to define, and whatever else the tests find there if it does."""
        return needs.names(self.setup, self.tests)


class Suite(Settings):
    """Tests that are a class `TestCases` of `unittest`, as BigCodeBench has them."""

    form: Literal["unittest"]
    setup: str = ""
    """Runs before the program, in its place."""
    tests: str

    @model_validator(mode="after")
    def _testing(self) -> Suite:
        _parse(self.setup, self.tests)
        if not self.methods:
            raise ValueError("its tests have no class TestCases with tests")
        return self

    @cached_property
    def methods(self) -> list[str]:
        """The names of its tests."""
        return needs.test_methods(self.tests)

    @cached_property
    def imports(self) -> str:
        """What has to be installed."""
        return "\n".join(["import unittest.mock", needs.imports(self.setup), needs.imports(self.tests)])


Gold = Programs | Calls | Asserts | Suite
_GOLD: TypeAdapter[Gold] = TypeAdapter(Annotated[Gold, Field(discriminator="form")])


def read_gold(text: str) -> Gold:
    """The tests.

    Raises:
        ValueError: they are of no known form; half a sentence.
    """
    try:
        return _GOLD.validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        said = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"the gold answer{f' at {place}' if place else ''} is no tests: {said}") from None


def _same_length(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    if len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} inputs, but {len(outputs)} outputs")


def _parse(*sources: str) -> None:
    for source in sources:
        try:
            compile(source, "tests.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"the source of its tests is not Python: {error}") from None
