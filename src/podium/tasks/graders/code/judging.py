"""Programs against their tests, each form in its way; the first test that fails ends it.

Where tests can be kept from a program they are: wanted outputs never enter a sandbox, and asserts run in one of their
own, from which calls are carried to the program's, and plain data back.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import dataclass
from typing import Any

from podium.errors import GraderError
from podium.sandbox.cell import Cell, Ended, Said
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.inside.asserts import ASKS, TELLS
from podium.sandbox.inside.plain import pack
from podium.sandbox.sandbox import Sandbox
from podium.tasks.graders.code import needs
from podium.tasks.graders.code.gold import Asserts, Calls, Gold, Programs, Suite
from podium.tasks.graders.code.outputs import same_output, same_value

_STARS = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
_CONTEST = "\n".join(
    [
        *(f"from {module} import *" for module in (*_STARS, "builtins", "typing")),
        f"import {', '.join(_STARS)}",
        "sys.setrecursionlimit(50000)",
    ]
)
"""What LiveCodeBench puts before every program."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A program before its tests."""

    source: str
    allowance: Allowance
    """For one run or one call."""
    total: Allowance
    """For all asserts together, or for a whole suite."""

    async def passes(self, tests: Gold, sandbox: Sandbox, *, allow_weak: bool) -> bool:
        """Whether it passes all of them.

        Raises:
            GraderError: a sandbox did not start, or the tests cannot be run here.
            ConfigError: there are no strong walls here, and weak ones are not allowed.
        """
        match tests:
            case Programs() | Calls():
                imports = [_CONTEST]
            case Asserts():
                imports = [needs.imports(tests.setup), ""]
            case Suite():
                imports = [tests.imports]
        async with sandbox.cells(imports, allow_weak=allow_weak) as cells:
            match tests:
                case Programs():
                    return await self._prints(cells[0], tests)
                case Calls():
                    return await self._returns(cells[0], tests)
                case Asserts():
                    return await self._withstands(cells[0], cells[1], tests)
                case Suite():
                    return await self._passes_suite(cells[0], tests)

    async def _prints(self, cell: Cell, tests: Programs) -> bool:
        """Whether it prints what is wanted for every input."""
        for told, wanted in zip(tests.inputs, tests.outputs, strict=True):
            ended = await cell.run(self.source, told, self.allowance, prelude=_CONTEST)
            if ended.how != "done" or not same_output(ended.words.decode(errors="replace"), wanted):
                return False
        return True

    async def _returns(self, cell: Cell, tests: Calls) -> bool:
        """Whether its function returns what is wanted for every input."""
        if not await self._load(cell, _CONTEST, [tests.function]):
            return False
        for given, wanted in zip(tests.inputs, tests.outputs, strict=True):
            called = {"call": tests.function, "given": pack(list(given)), "named": pack({})}
            said = await cell.say(json.dumps(called).encode())
            if isinstance(said, Ended) or not same_value(said.words, wanted):
                return False
        return True

    async def _withstands(self, theirs: Cell, ours: Cell, tests: Asserts) -> bool:
        """Whether asserts pass that run in a sandbox of ours, with its functions in a sandbox of theirs."""
        calls = 0
        try:
            async with asyncio.timeout(self.total.wall_s):
                names = await self._load(theirs, needs.definitions(tests.setup), tests.names)
                given = {"setup": tests.setup, "tests": tests.tests, "names": names}
                heard = await ours.open("asserts", given, self.total)
                while isinstance(heard, Said) and heard.words.startswith(ASKS):
                    calls += 1
                    answer = await theirs.say(heard.words.removeprefix(ASKS))
                    if isinstance(answer, Ended):
                        return False
                    heard = await ours.say(answer.words)
        except TimeoutError:
            return False
        return isinstance(heard, Said) and _passed(json.loads(heard.words.removeprefix(TELLS)), calls)

    async def _passes_suite(self, cell: Cell, tests: Suite) -> bool:
        """Whether all tests of a suite ran with it, and passed."""
        word = secrets.token_hex()
        given = {
            "source": self.source,
            "prelude": tests.setup,
            "tests": tests.tests,
            "names": needs.names(tests.setup, tests.tests),
            "imports": needs.modules(tests.tests),
            "word": word,
        }
        said = await cell.open("suite", given, self.total)
        if isinstance(said, Ended):
            return False
        first, *passed = said.words.decode(errors="replace").split("\n")
        return first == word and sorted(passed) == tests.methods

    async def _load(self, cell: Cell, prelude: str, names: list[str]) -> list[str]:
        """Load it as a server of its functions, and tell which of some names it defines."""
        given = {"source": self.source, "prelude": prelude, "names": names}
        said = await cell.open("program", given, self.allowance)
        defined = _json(said.words) if isinstance(said, Said) else None
        return [name for name in names if isinstance(defined, list) and name in defined]


def _passed(verdict: dict[str, Any], calls: int) -> bool:
    """Whether tests passed, by their own process.

    Raises:
        GraderError: the fault is theirs.
    """
    if verdict["error"] == "HandingError":
        raise GraderError(f"The tests cannot be run apart from the program: {verdict['text']}.")
    if not calls and verdict["error"] in ("ImportError", "ModuleNotFoundError"):
        raise GraderError(f"The tests cannot be run here: {verdict['text']}; install it.")
    if not calls and verdict["passed"]:
        raise GraderError("The tests call nothing of the program, so they say nothing of it.")
    return bool(verdict["passed"])


def _json(words: bytes) -> Any:
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return None
