"""What tests ask of a program, read from their source: names, modules, and how many tests there are.

Only the source of tests is read here, never that of a program.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator

from podium.syntax import parse_program

_TOOLS = frozenset(
    {abs, all, any, bool, dict, enumerate, float, int, isinstance, issubclass, len, list}
    | {print, range, repr, set, str, tuple, type, zip}
)
"""Built-in functions that tests use on what a program returns, and that no program may replace for them."""


def names(setup: str, tests: str) -> list[str]:
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


def imports(source: str) -> str:
    """Its import statements."""
    return _source(
        [statement for statement in _body(source) if isinstance(statement, ast.Import | ast.ImportFrom)]
    )


def modules(source: str) -> list[str]:
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


def test_methods(tests: str) -> list[str]:
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
