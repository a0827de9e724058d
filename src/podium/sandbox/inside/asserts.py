"""Runs tests that are plain asserts, in another process than the program that they test.

In this process the program's functions are proxies. A call is sent to the program's process, and plain data comes back,
or a proxy object that equals nothing but itself. So a program cannot reach or change its tests.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

from podium.sandbox.inside import frames
from podium.sandbox.inside.plain import Reference, pack, unpack
from podium.sandbox.inside.processes import FROM, TO

CALL, VERDICT = b"?", b"!"
"""First byte of a message from this process: a call to be answered, or the verdict, after which no message follows."""


def check(*, setup: str, tests: str, names: list[str]) -> None:
    """Run tests against proxies of the functions `names`, and send the verdict: whether they passed, else why not."""
    module: dict[str, Any] = {"__name__": "tests", **{name: _proxy(name) for name in names}}
    verdict = {"passed": False, "error": "", "text": ""}
    try:
        exec(compile(setup, "setup.py", "exec"), module)
        exec(compile(tests, "tests.py", "exec"), module)
        verdict["passed"] = True
    except BaseException as error:  # tests that end their own process have not passed
        verdict.update(error=type(error).__name__, text=str(error)[:1000])
    frames.write(FROM, VERDICT + json.dumps(verdict).encode())


class UnsendableValueError(BaseException):
    """The tests pass a value that cannot be sent to another process. Not an `Exception`, so that no test catches it."""


class Remote(Reference):
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
        raise UnsendableValueError(str(error)) from None
    frames.write(FROM, CALL + json.dumps(request).encode())
    received = frames.read(TO)
    if received is None:
        raise SystemExit
    reply = json.loads(received)
    if "value" in reply:
        return unpack(reply["value"], Remote)
    raise _error(reply["raised"], str(reply["text"]))


def _error(kinds: list[str], text: str) -> Exception:
    """The nearest built-in exception of these names; never one that would silently end a loop of the tests."""
    for kind in kinds:
        known = getattr(builtins, kind, None)
        if isinstance(known, type) and issubclass(known, Exception) and known not in _SILENT:
            try:
                return known(text)
            except TypeError:
                break
    return RuntimeError(text)


_SILENT = (StopIteration, StopAsyncIteration)
