"""Tests that are plain statements, run apart from the program that they test.

Here are the tests and nothing of the program: its functions are stand-ins that ask the process in which it runs, and
what comes back is plain data, or an object that equals nothing. Nothing that a program does can reach this process.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

from podium.sandbox.inside import frames
from podium.sandbox.inside.plain import Reference, pack, unpack
from podium.sandbox.inside.processes import FROM, TO

ASKS, TELLS = b"?", b"!"
"""Of what is said from here: a call to be answered, and the verdict, which is the last word."""


def check(*, setup: str, tests: str, names: list[str]) -> None:
    """Run tests against the functions of some names, and say the verdict: whether they passed, else why not."""
    module: dict[str, Any] = {"__name__": "tests", **{name: _stand_in(name) for name in names}}
    verdict = {"passed": False, "error": "", "text": ""}
    try:
        exec(compile(setup, "setup.py", "exec"), module)
        exec(compile(tests, "tests.py", "exec"), module)
        verdict["passed"] = True
    except BaseException as error:  # tests that end their own process have not passed
        verdict.update(error=type(error).__name__, text=str(error)[:1000])
    frames.write(FROM, TELLS + json.dumps(verdict).encode())


class HandingError(BaseException):
    """The tests hand over what cannot cross, so they cannot be run apart; no test may take it for a program's error."""


class Remote(Reference):
    """An object of the program's: its attributes are asked for there; it equals nothing but itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # NumPy, for one, would follow such a name to any place in memory
        return _ask(".get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "number":
            object.__setattr__(self, name, value)
        else:
            _ask(".set", self, name, value)

    def __call__(self, *given: Any) -> Any:
        return _ask(".call", self, *given)


def _stand_in(name: str) -> Callable[..., Any]:
    def stand_in(*given: Any, **named: Any) -> Any:
        return _ask(name, *given, **named)

    stand_in.__name__ = name
    return stand_in


def _ask(name: str, /, *given: Any, **named: Any) -> Any:
    try:
        request = {"call": name, "given": pack(list(given)), "named": pack(named)}
    except TypeError as error:
        raise HandingError(str(error)) from None
    frames.write(FROM, ASKS + json.dumps(request).encode())
    received = frames.read(TO)
    if received is None:
        raise SystemExit
    reply = json.loads(received)
    if "value" in reply:
        return unpack(reply["value"], Remote)
    raise _error(reply["raised"], str(reply["text"]))


def _error(kinds: list[str], text: str) -> Exception:
    """An error of the nearest built-in kind; never one that would end a loop of the tests in silence."""
    for kind in kinds:
        known = getattr(builtins, kind, None)
        if isinstance(known, type) and issubclass(known, Exception) and known not in _SILENT:
            try:
                return known(text)
            except TypeError:
                break
    return RuntimeError(text)


_SILENT = (StopIteration, StopAsyncIteration)
