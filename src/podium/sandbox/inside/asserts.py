"""Runs tests, plain asserts or a `unittest` suite, in another process than the program that they test.

In this process the program's functions are proxies. A call is sent to the program's process, and plain data comes back,
or a proxy object that equals nothing but itself. So a program cannot reach or change its tests.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from podium.sandbox.inside import frames
from podium.sandbox.inside.packing import ObjectReference, pack, unpack
from podium.sandbox.inside.processes import FROM, TO

CALL, VERDICT = b"?", b"!"
"""First byte of a message from this process: a call to be answered, or the verdict, after which no message follows."""
PLAIN_MODULES = frozenset(
    {"base64", "binascii", "bisect", "cmath", "copy", "functools", "hashlib", "heapq", "itertools", "json"}
    | {"math", "operator", "re", "statistics", "string", "textwrap", "typing", "unicodedata"}
)
"""Modules that compute with plain values, and that share no state with a program in another process."""


def check(*, setup: str, tests: str, names: list[str], methods: Sequence[str] = ()) -> None:
    """Run tests against proxies of the functions `names`, and send the verdict: whether they passed, and why not.
    `methods` are the tests of the class `TestCases` that have to pass; empty if the tests are statements."""
    module: dict[str, Any] = {"__name__": "tests", **{name: _proxy(name) for name in names}}
    try:
        exec(compile(setup, "setup.py", "exec", dont_inherit=True), module)
        exec(compile(tests, "tests.py", "exec", dont_inherit=True), module)
        if methods:
            _run_suite(module["TestCases"], methods)
    except BaseException as error:  # tests that end their own process have not passed
        _send_verdict(passed=False, error=type(error).__name__, text=str(error)[:1000])
    else:
        _send_verdict(passed=True)


def _send_verdict(*, passed: bool, error: str = "", text: str = "") -> None:
    verdict = {"passed": passed, "error": error, "text": text}
    frames.write(FROM, VERDICT + json.dumps(verdict).encode())


def _run_suite(cases: Any, methods: Sequence[str]) -> None:
    """Run a class of tests. A test that is skipped, or expected to fail, has not passed."""
    import unittest  # noqa: PLC0415 - asserts do without

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(result)
    problems = [text for _, text in (*result.failures, *result.errors, *result.skipped)]
    if problems or not result.wasSuccessful() or result.expectedFailures or result.testsRun != len(methods):
        raise AssertionError("".join(problems))


class RemoteObject(ObjectReference):
    """Proxy of an object in the program's process: attributes are read and set there; it equals nothing but itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # NumPy reads memory at any address that __array_interface__ names
        return _call(".get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "number":
            object.__setattr__(self, name, value)
        else:
            _call(".set", self, name, value)

    def __call__(self, *given: Any) -> Any:
        return _call(".call", self, *given)


def _proxy(name: str) -> Callable[..., Any]:
    def proxy(*given: Any, **named: Any) -> Any:
        return _call(name, *given, **named)

    proxy.__name__ = name
    return proxy


def _call(name: str, /, *given: Any, **named: Any) -> Any:
    try:
        request = {"call": name, "given": pack(list(given)), "named": pack(named)}
    except TypeError as error:
        _send_verdict(passed=False, error="UnsendableValueError", text=str(error))
        os._exit(1)  # at once, so that no test catches it
    frames.write(FROM, CALL + json.dumps(request).encode())
    received = frames.read(TO)
    if received is None:
        os._exit(1)
    reply = json.loads(received)
    if "value" in reply:
        return unpack(reply["value"], RemoteObject)
    raise _error(reply["raised"], str(reply["text"]))


def _error(kinds: list[str], text: str) -> Exception:
    """The first exception in `kinds` that is built in or belongs to a plain module, but none that silently ends a loop;
    else a `RuntimeError`."""
    for kind in kinds:
        module = kind.partition(".")[0]
        namespace = sys.modules.get(module) if module in PLAIN_MODULES else builtins
        known = getattr(namespace, kind.rpartition(".")[2], None)
        if isinstance(known, type) and issubclass(known, Exception) and known not in _SILENT:
            return known.__new__(known, text)  # not called, since some demand more than a text
    return RuntimeError(text)


_SILENT = (StopIteration, StopAsyncIteration, ExceptionGroup)
