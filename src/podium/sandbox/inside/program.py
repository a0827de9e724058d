"""Runs a program as a script, or serves calls of its functions.

This is loaded into the program's own process, so a program may change whatever it finds here. That gains it nothing: it
controls only its own output.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TextIO

from podium.sandbox.inside import frames
from podium.sandbox.inside.packing import pack, unpack
from podium.sandbox.inside.processes import FROM, TO

RAISED = "\n\0"
"""Separates a program's output from the exception that it raised; no program prints it by chance."""


def run(*, source: str, prelude: str, report_error: bool = False) -> None:
    """Run a program as a script; the process fails when the program raises, except by SystemExit. With `report_error`,
    `RAISED` and the exception in one line are printed after the program's own output, and a SystemExit whose status is
    not 0 fails, too."""
    _open_streams()
    out = sys.stdout
    sys.argv = ["program.py"]
    module = _module("__main__")
    try:
        exec(compile(prelude, "prelude.py", "exec", dont_inherit=True), module)
        exec(compile(source, "program.py", "exec", dont_inherit=True), module)
    except SystemExit as error:
        _finish(out)
        if report_error and error.code not in (None, 0):
            _report(error, out)
            raise
    except BaseException as error:
        if report_error:
            with suppress(Exception):
                sys.stdout.flush()
            _report(error, out)
        raise
    else:
        _finish(out)


def serve(*, source: str, prelude: str, names: list[str]) -> None:
    """Load a program, send which of `names` it defines, and answer calls of them until the pipe is closed. If it has a
    class `Solution`, its methods are functions too, of one instance."""
    module = _module("program")
    exec(compile(prelude, "prelude.py", "exec", dont_inherit=True), module)
    exec(compile(source, "program.py", "exec", dont_inherit=True), module)
    solution = module["Solution"]() if isinstance(module.get("Solution"), type) else None
    values = {name: getattr(solution, name, None) or module.get(name) for name in names}
    functions = {name: value for name, value in values.items() if callable(value)}
    frames.write(FROM, json.dumps(list(functions)).encode())
    server = _CallServer(functions)
    while (request := frames.read(TO)) is not None:
        frames.write(FROM, server.answer(request))


class _CallServer:
    """Answers calls, and keeps objects that are not plain: they are sent as references."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = {
            **functions,
            ".get": getattr,
            ".set": setattr,
            ".call": lambda kept, *given: kept(*given),
        }
        self._kept: list[Any] = []

    def answer(self, request: bytes) -> bytes:
        try:
            called = json.loads(request)
            given = unpack(called["given"], self._kept.__getitem__)
            named = unpack(called["named"], self._kept.__getitem__)
            value = self._functions[called["call"]](*given, **named)
            reply = {"value": pack(value, self._keep)}
        except Exception as error:
            reply = {
                "raised": [f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__],
                "text": _text(error),
            }
        return json.dumps(reply).encode()

    def _keep(self, value: Any) -> int:
        self._kept.append(value)
        return len(self._kept) - 1


def _finish(out: TextIO) -> None:
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    if "atexit" in sys.modules:
        sys.modules["atexit"]._run_exitfuncs()
    for stream in (sys.stdout, out):
        if not stream.closed:
            stream.flush()


def _report(error: BaseException, out: TextIO) -> None:
    message = " ".join(_text(error).split())
    print(f"{RAISED}{type(error).__name__}{message and ': '}{message}", file=out, flush=True)


def _open_streams() -> None:
    """Open the standard streams anew, since the supervisor's are /dev/null."""
    for end, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(end, "w" if end else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 - for its whole life
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _module(name: str) -> dict[str, Any]:
    """The namespace of a new module, which programs can import by its name."""
    module = sys.modules[name] = types.ModuleType(name)
    return module.__dict__


def _text(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except Exception:
        return ""
