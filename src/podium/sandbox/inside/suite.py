"""Runs a `unittest` suite that patches the module that it tests, so that tests and program share a process.

So a program could reach its tests. Against that, this module remembers what the tests rely on before it loads the
program, restores it afterwards, and compares it again at the end. Functions under test may not return objects
whose class overrides comparison, and the report must begin with a secret that the program does not get.
It does not stop a program that searches this process for that secret.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
import unittest
import unittest.mock
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

from podium.sandbox.inside import frames
from podium.sandbox.inside.processes import FROM

_PROGRAM, _TESTS = "program.py", "__test__.py"
_KINDS = (
    unittest.TestCase,
    unittest.TestResult,
    unittest.TestSuite,
    unittest.TestLoader,
    unittest.mock.NonCallableMock,
)
_MODULES = (
    builtins,
    unittest,
    unittest.case,
    unittest.result,
    unittest.suite,
    unittest.loader,
    unittest.mock,
)
_COMPARISONS = frozenset(
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "bool", "len", "contains", "class")
)
_LOOKED_AT = 10_000
"""Most values within one returned value that are checked."""


def check_suite(
    *, source: str, tests: str, names: list[str], imports: list[str], secret: str, prelude: str
) -> None:
    """Load a program, then its tests, run those of the class `TestCases`, and report the names of those that passed.

    Args:
        names: functions under test.
        imports: modules that the tests use; they are already loaded.
        secret: the first line of a genuine report; the names of the passed tests follow, a line each.
    """
    framework = _Snapshot([*_MODULES, *_KINDS])
    libraries = _Snapshot([sys.modules[name] for name in imports if name in sys.modules])
    write = os.write
    _hide()
    module = types.ModuleType("__test__")
    sys.modules["__test__"] = module
    # As in BigCodeBench: some of its programs rely on it.
    module.__dict__.update(__file__=_TESTS, sys=sys, os=os, environ=os.environ)
    exec(compile(prelude, "prelude.py", "exec"), module.__dict__)
    exec(compile(source, _PROGRAM, "exec"), module.__dict__)
    framework.restore()
    libraries.restore()
    for name in names:
        function = module.__dict__.get(name)
        if isinstance(function, FunctionType):
            module.__dict__[name] = _checked(function)
    exec(compile(tests, _TESTS, "exec"), module.__dict__)
    result = _Result()
    unittest.TestLoader().loadTestsFromTestCase(module.__dict__["TestCases"]).run(result)
    passed = [] if framework.changed() else result.passed
    write(FROM, frames.to_frame("\n".join([secret, *passed]).encode()))


def _hide() -> None:
    """Remove this package and the main module from `sys.modules`, where a program would find them by name."""
    for name in [name for name in sys.modules if name == "__main__" or name.split(".")[0] == "podium"]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")


class _Result(unittest.TestResult):
    """Counts tests that passed; a skipped test or an expected failure is none."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: list[str] = []

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.passed.append(test.id().rpartition(".")[2])


class _Snapshot:
    """The functions and classes in some modules and classes, as they were."""

    def __init__(self, holders: Iterable[ModuleType | type]) -> None:
        self._modules = {name: module for name, module in sys.modules.items() if module in holders}
        self._values = [
            (holder, name, value)
            for holder in holders
            for name, value in vars(holder).items()
            if callable(value) or isinstance(value, classmethod)
        ]

    def restore(self) -> None:
        """Restore what was changed."""
        sys.modules.update(self._modules)
        for holder, name, value in self._values:
            if vars(holder).get(name) is not value:
                setattr(holder, name, value)

    def changed(self) -> bool:
        """Whether anything was changed, except what the tests replaced by a mock."""
        now = ((vars(holder).get(name), value) for holder, name, value in self._values)
        return any(found is not value and not isinstance(found, unittest.mock.Mock) for found, value in now)


def _checked(function: FunctionType) -> Callable[..., Any]:
    """Wrap the function: it raises if it returns an object whose class overrides comparison."""

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        value = function(*given, **named)
        if any(map(_compares_by_program, _within(value))):
            raise AssertionError("the function returns an object whose class overrides comparison")
        return value

    return checked


def _within(value: Any) -> list[Any]:
    """A value and, if it is a container, all values in it."""
    found = [value]
    for inner in found:
        if len(found) > _LOOKED_AT:
            break
        if isinstance(inner, dict):
            found += [*dict.keys(inner), *dict.values(inner)]
        elif isinstance(inner, list | tuple | set | frozenset):
            found += list(inner)
    return found


def _compares_by_program(value: Any) -> bool:
    """Whether a class that the program defined overrides a comparison of this object."""
    # Through `type`, since a metaclass may lie about its classes.
    bases = type.__dict__["__mro__"].__get__(type(value))
    namespaces = [type.__dict__["__dict__"].__get__(base) for base in bases]
    methods = [names[name] for names in namespaces for name in _COMPARISONS & names.keys()]
    functions = [method.fget if isinstance(method, property) else method for method in methods]
    return any(isinstance(f, FunctionType) and f.__code__.co_filename == _PROGRAM for f in functions)
