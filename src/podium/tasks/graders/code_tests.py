"""The tests of a question about code: the gold answer, as JSON that names its form.

- `{"form": "programs", "inputs": [...], "outputs": [...]}`: texts for standard input, and the expected standard output.
- `{"form": "calls", "function": name, "inputs": [[argument, ...], ...], "outputs": [value, ...]}`.
- `{"form": "asserts", "setup": source, "tests": source}`: statements that raise unless the program is right.
- `{"form": "unittest", "setup": source, "tests": source}`: a class `TestCases`.

Only the source of tests is read here, never a program's; `code_grader` runs both.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from podium.config import Settings
from podium.sandbox.inside.asserts import PLAIN_MODULES
from podium.sandbox.inside.packing import MAX_DEPTH, MAX_VALUES, is_sendable
from podium.text.syntax import parse_program


class ProgramTests(Settings):
    """Tests of a program that reads standard input, as in LiveCodeBench."""

    form: Literal["programs"]
    inputs: tuple[str, ...] = Field(min_length=1)
    outputs: tuple[str, ...]

    @model_validator(mode="after")
    def _check_lengths(self) -> ProgramTests:
        _same_length(self.inputs, self.outputs)
        return self


class CallTests(Settings):
    """Tests of a function, or of a method of a class `Solution`, with JSON values."""

    form: Literal["calls"]
    function: str = Field(min_length=1)
    inputs: tuple[tuple[Any, ...], ...] = Field(min_length=1)
    """The arguments of each call."""
    outputs: tuple[Any, ...]

    @model_validator(mode="after")
    def _check_values(self) -> CallTests:
        _same_length(self.inputs, self.outputs)
        if not all(map(is_sendable, (*self.inputs, *self.outputs))):
            raise ValueError(
                f"a value is more than {MAX_DEPTH} levels deep, or has more than {MAX_VALUES:,} values"
            )
        return self


class SourceTests(Settings):
    """Tests that are source: assert statements, as in HumanEval and MBPP, or a class `TestCases` of `unittest`, as in
    BigCodeBench. They run in another process than the program, so a suite may use plain values alone: no mock, file or
    other thing that it would have to share with the program."""

    form: Literal["asserts", "unittest"]
    setup: str = ""
    """Runs before the tests. A suite's stands before the program, too; of asserts, its imports, functions, classes and
    constants do, and the program cannot replace them for the tests."""
    tests: str

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        _parse(self.setup, self.tests)
        suite = self.form == "unittest"
        if suite and not self.methods:
            raise ValueError("its tests have no class TestCases with tests")
        if not self.names:
            raise ValueError("its tests use nothing of the program")
        if suite and (shared := shared_definitions(self.setup, self.tests)):
            raise ValueError(
                f"its tests cannot run in another process than the program, since they use {shared[0]}"
            )
        return self

    @cached_property
    def methods(self) -> list[str]:
        """The names of the test methods of a suite."""
        return unittest_methods(self.tests) if self.form == "unittest" else []

    @cached_property
    def names(self) -> list[str]:
        """The names that the tests use from the program."""
        return used_names(self.setup, self.tests)

    @property
    def prelude(self) -> str:
        """What stands before the program, in the same module."""
        return self.setup if self.form == "unittest" else definitions(self.setup)


CodeTests = ProgramTests | CallTests | SourceTests
_GOLD: TypeAdapter[CodeTests] = TypeAdapter(Annotated[CodeTests, Field(discriminator="form")])


def parse_tests(text: str) -> CodeTests:
    """Parse the gold answer.

    Raises:
        ValueError: it has no known form; the message is half a sentence.
    """
    try:
        return _GOLD.validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        reason = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"the gold answer{f' at {key}' if key else ''} is no tests: {reason}") from None


def _same_length(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    if len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} inputs, but {len(outputs)} outputs")


def _parse(*sources: str) -> None:
    for source in sources:
        try:
            compile(source, "tests.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"the source of its tests is not Python: {error}") from None


_BUILTINS_OF_TESTS = frozenset(
    {abs, all, any, bool, dict, enumerate, float, int, isinstance, issubclass, len, list}
    | {print, range, repr, set, str, tuple, type, zip}
)
"""Built-in functions that tests apply to the program's results; a program cannot replace them for the tests."""


def used_names(setup: str, tests: str) -> list[str]:
    """The names that tests use and do not define: the program has to. A built-in name counts only if the tests use no
    other name of the program, as MBPP does with `sum`."""
    top = symtable.symtable(f"{setup}\n{tests}", "tests.py", "exec")
    free = _used_globals(top) - {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    built_in = vars(builtins)
    return sorted(
        free - built_in.keys() or {name for name in free if built_in[name] not in _BUILTINS_OF_TESTS}
    )


def import_statements(source: str) -> str:
    """The import statements of a source."""
    return _source(
        [statement for statement in _body(source) if isinstance(statement, ast.Import | ast.ImportFrom)]
    )


def shared_definitions(setup: str, tests: str) -> list[str]:
    """What tests would have to share with the program's process: modules that do more than compute, and `open`. A
    module counts if the tests use a name that they or the setup import of it; of the setup's imports all from outside
    the standard library count, since the program is likely to return objects of theirs."""
    used = {node.id for node in ast.walk(parse_program(tests)) if isinstance(node, ast.Name)}
    modules = {module for name, module in _imports(f"{setup}\n{tests}") if name in used or name == "*"}
    foreign = {
        module for _, module in _imports(setup) if module.partition(".")[0] not in sys.stdlib_module_names
    }
    return sorted((modules | foreign) - PLAIN_MODULES - {"unittest"}) + ["open"] * ("open" in used)


def _imports(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(parse_program(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, node.module or ".") for alias in node.names)


def definitions(source: str) -> str:
    """The statements of a source that only define: imports, functions, classes and constants, but no calls. Their
    annotations are not evaluated: they may name classes of a program that is loaded after them."""
    defining = _source([statement for statement in _body(source) if _defines(statement)])
    return f"from __future__ import annotations\n{defining}"


def unittest_methods(tests: str) -> list[str]:
    """The test methods of the class `TestCases` and of its parents in the same source."""
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


def _used_globals(table: symtable.SymbolTable) -> set[str]:
    top = table.get_type() == "module"
    symbols = [symbol for symbol in table.get_symbols() if symbol.is_referenced()]
    used = {symbol.get_name() for symbol in symbols if top or symbol.is_global()}
    return used.union(*map(_used_globals, table.get_children()))
