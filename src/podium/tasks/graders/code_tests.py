"""The tests of a question about code: the gold answer, as JSON that names its form.

- `{"form": "programs", "inputs": [...], "outputs": [...]}`: texts for standard input, and the expected standard output.
- `{"form": "calls", "function": name, "inputs": [[argument, ...], ...], "outputs": [value, ...]}`.
- `{"form": "asserts", "setup": source, "tests": source}`: statements that raise unless the program is right.
- `{"form": "unittest", "setup": source, "tests": source}`: a class `TestCases`.

Only the source of tests is read here, never that of a program; `code_grader` runs both.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from podium.config import Settings
from podium.syntax import parse_program


class ProgramTests(Settings):
    """Tests of a program that reads its standard input, as LiveCodeBench has them."""

    form: Literal["programs"]
    inputs: tuple[str, ...] = Field(min_length=1)
    outputs: tuple[str, ...]

    @model_validator(mode="after")
    def _even(self) -> ProgramTests:
        _same_length(self.inputs, self.outputs)
        return self


class CallTests(Settings):
    """Tests of a function, or of the method of a class `Solution`, by values of JSON."""

    form: Literal["calls"]
    function: str = Field(min_length=1)
    inputs: tuple[tuple[Any, ...], ...] = Field(min_length=1)
    """The arguments of each call."""
    outputs: tuple[Any, ...]

    @model_validator(mode="after")
    def _even(self) -> CallTests:
        _same_length(self.inputs, self.outputs)
        return self


class AssertTests(Settings):
    """Tests that are statements, as HumanEval and MBPP have them."""

    form: Literal["asserts"]
    setup: str = ""
    """Runs before the tests; its imports, functions, classes and constants stand before the program, too. What it
    defines is not the program's to define."""
    tests: str

    @model_validator(mode="after")
    def _asking(self) -> AssertTests:
        _parse(self.setup, self.tests)
        if not self.names:
            raise ValueError("its tests use nothing of the program")
        return self

    @cached_property
    def names(self) -> list[str]:
        """What the program has to define, and whatever else the tests find there if it does."""
        return used_names(self.setup, self.tests)


class UnittestTests(Settings):
    """Tests that are a class `TestCases` of `unittest`, as BigCodeBench has them."""

    form: Literal["unittest"]
    setup: str = ""
    """Runs before the program, in its place."""
    tests: str

    @model_validator(mode="after")
    def _testing(self) -> UnittestTests:
        _parse(self.setup, self.tests)
        if not self.methods:
            raise ValueError("its tests have no class TestCases with tests")
        return self

    @cached_property
    def methods(self) -> list[str]:
        """The names of its tests."""
        return unittest_methods(self.tests)

    @cached_property
    def imports(self) -> str:
        """What has to be installed."""
        return "\n".join(
            ["import unittest.mock", import_statements(self.setup), import_statements(self.tests)]
        )


CodeTests = ProgramTests | CallTests | AssertTests | UnittestTests
_GOLD: TypeAdapter[CodeTests] = TypeAdapter(Annotated[CodeTests, Field(discriminator="form")])


def parse_tests(text: str) -> CodeTests:
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


_TOOLS = frozenset(
    {abs, all, any, bool, dict, enumerate, float, int, isinstance, issubclass, len, list}
    | {print, range, repr, set, str, tuple, type, zip}
)
"""Built-in functions that tests use on what a program returns, and that no program may replace for them."""


def used_names(setup: str, tests: str) -> list[str]:
    """The names that tests use and nobody defines for them: those of the program.

    A built-in function is the program's only where the tests use nothing else of it, as MBPP does with `sum`.
    """
    top = symtable.symtable(f"{setup}\n{tests}", "tests.py", "exec")
    used = {name for table in _tables(top) for name in _globals(table)}
    free = used - {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    built_in = vars(builtins)
    return sorted(free - built_in.keys() or {name for name in free if built_in[name] not in _TOOLS})


def import_statements(source: str) -> str:
    """Its import statements."""
    return _source(
        [statement for statement in _body(source) if isinstance(statement, ast.Import | ast.ImportFrom)]
    )


def imported_modules(source: str) -> list[str]:
    """The modules that these name."""
    named: list[str] = []
    for statement in _body(source):
        if isinstance(statement, ast.Import):
            named += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module is not None:
            named.append(statement.module)
    return named


def definitions(source: str) -> str:
    """Its statements that only define: imports, functions, classes and constants, but nothing that is called."""
    return _source([statement for statement in _body(source) if _defines(statement)])


def unittest_methods(tests: str) -> list[str]:
    """The names of the tests in the class `TestCases`, its parents in the same source included."""
    classes = {statement.name: statement for statement in _body(tests) if isinstance(statement, ast.ClassDef)}
    return sorted(_methods("TestCases", classes))


def _methods(name: str, classes: dict[str, ast.ClassDef]) -> set[str]:
    kind = classes.get(name)
    if kind is None:
        return set()
    own = {
        part.name for part in kind.body if isinstance(part, ast.FunctionDef) and part.name.startswith("test")
    }
    others = {key: value for key, value in classes.items() if key != name}
    return own.union(*(_methods(base.id, others) for base in kind.bases if isinstance(base, ast.Name)))


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not any(isinstance(part, ast.Call) for part in ast.walk(statement))
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def _body(source: str) -> list[ast.stmt]:
    return parse_program(source).body


def _source(statements: list[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, statements))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
