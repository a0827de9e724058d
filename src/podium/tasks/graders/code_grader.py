"""The grader of code: a program is right when it passes all tests. Programs run in a sandbox (`podium.sandbox`).

The tests are the gold answer (`code_tests`). The first test that fails ends the run. Where tests can be kept from a
program they are: expected outputs never enter a sandbox, and asserts run in a second sandbox of their own, from which
calls are carried to the program's sandbox, and plain data back.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from podium.errors import GraderError
from podium.sandbox.cell import Cell, Ended, Said
from podium.sandbox.inside.allowance import MIB, Allowance
from podium.sandbox.inside.asserts import ASKS, TELLS
from podium.sandbox.inside.plain import pack, unpack
from podium.sandbox.sandbox import Sandbox
from podium.sandbox.sandboxes import Sandboxes
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.code_tests import (
    AssertTests,
    CallTests,
    CodeTests,
    ProgramTests,
    UnittestTests,
    definitions,
    import_statements,
    imported_modules,
    parse_tests,
    used_names,
)
from podium.tasks.graders.extraction import extract
from podium.tasks.task import Grade

_PATIENCE = 3
"""Seconds by the clock for each of processor time: for programs that wait, and for machines that are busy."""


class Code(GraderSettings):
    """1 when the program in the response passes all tests; it stands in the last fenced block, or is the whole.

    The tests are the gold answer (`gold`). What does not end in time, uses more than it may, or cannot be loaded is
    wrong. A sandbox that does not start, or tests that cannot run here, are no wrong answer: they raise.
    """

    kind: Literal["code"] = "code"
    seconds: float = Field(default=6.0, gt=0)
    """Processor time of one run or one call, as LiveCodeBench has it; three times as much by the clock."""
    total_seconds: float = Field(default=60.0, gt=0)
    """The same for all asserts together, or for a whole suite."""
    memory_mb: int = Field(default=2048, ge=64)
    """Megabytes of a program with all its processes."""
    allow_weak_sandbox: bool = False
    """Whether programs run without walls where bubblewrap is not to be had: only for programs that you trust."""

    _sandboxes: Sandboxes = PrivateAttr(default_factory=Sandboxes)

    def gold_problem(self, gold: str) -> str | None:
        try:
            parse_tests(gold)
        except ValueError as error:
            return str(error)
        return None

    async def __call__(self, response: str, gold: str) -> Grade:
        program = extract(response, "code")
        if program is None:
            return Grade(0.0)
        try:
            tests = await asyncio.to_thread(parse_tests, gold)
        except ValueError as error:
            raise GraderError(f"A program cannot be graded: {error}.") from None
        trial = Submission(program, self._allowance(self.seconds), self._allowance(self.total_seconds))
        sandbox = await self._sandboxes.sandbox()
        return Grade(float(await trial.passes(tests, sandbox, allow_weak=self.allow_weak_sandbox)), program)

    def _allowance(self, seconds: float) -> Allowance:
        return Allowance(cpu_s=seconds, wall_s=_PATIENCE * seconds, memory_bytes=self.memory_mb * MIB)


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
class Submission:
    """A program before its tests."""

    source: str
    allowance: Allowance
    """For one run or one call."""
    total: Allowance
    """For all asserts together, or for a whole suite."""

    async def passes(self, tests: CodeTests, sandbox: Sandbox, *, allow_weak: bool) -> bool:
        """Whether it passes all of them.

        Raises:
            GraderError: a sandbox did not start, or the tests cannot be run here.
            ConfigError: there are no strong walls here, and weak ones are not allowed.
        """
        match tests:
            case ProgramTests() | CallTests():
                imports = [_CONTEST]
            case AssertTests():
                imports = [import_statements(tests.setup), ""]
            case UnittestTests():
                imports = [tests.imports]
        async with sandbox.cells(imports, allow_weak=allow_weak) as cells:
            match tests:
                case ProgramTests():
                    return await self._passes_programs(cells[0], tests)
                case CallTests():
                    return await self._passes_calls(cells[0], tests)
                case AssertTests():
                    return await self._passes_asserts(cells[0], cells[1], tests)
                case UnittestTests():
                    return await self._passes_suite(cells[0], tests)

    async def _passes_programs(self, cell: Cell, tests: ProgramTests) -> bool:
        """Whether it prints what is wanted for every input."""
        for told, wanted in zip(tests.inputs, tests.outputs, strict=True):
            ended = await cell.run(self.source, told, self.allowance, prelude=_CONTEST)
            if ended.how != "done" or not same_output(ended.words.decode(errors="replace"), wanted):
                return False
        return True

    async def _passes_calls(self, cell: Cell, tests: CallTests) -> bool:
        """Whether its function returns what is wanted for every input."""
        if not await self._load(cell, _CONTEST, [tests.function]):
            return False
        for given, wanted in zip(tests.inputs, tests.outputs, strict=True):
            called = {"call": tests.function, "given": pack(list(given)), "named": pack({})}
            said = await cell.say(json.dumps(called).encode())
            if isinstance(said, Ended) or not same_value(said.words, wanted):
                return False
        return True

    async def _passes_asserts(self, theirs: Cell, ours: Cell, tests: AssertTests) -> bool:
        """Whether asserts pass that run in a sandbox of ours, with its functions in a sandbox of theirs."""
        calls = 0
        try:
            async with asyncio.timeout(self.total.wall_s):
                names = await self._load(theirs, definitions(tests.setup), tests.names)
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

    async def _passes_suite(self, cell: Cell, tests: UnittestTests) -> bool:
        """Whether all tests of a suite ran with it, and passed."""
        word = secrets.token_hex()
        given = {
            "source": self.source,
            "prelude": tests.setup,
            "tests": tests.tests,
            "names": used_names(tests.setup, tests.tests),
            "imports": imported_modules(tests.tests),
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


def same_output(printed: str, wanted: str) -> bool:
    """Whether a program printed what was wanted."""
    given, right = _lines(printed), _lines(wanted)
    return len(given) == len(right) and all(map(_same_line, given, right))


def same_value(returned: bytes, wanted: Any) -> bool:
    """Whether a function returned what was wanted.

    Args:
        returned: as `inside.program` says it; anything else is wrong.
        wanted: a value of JSON.
    """
    try:
        said = json.loads(returned)
        packed = said["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    if isinstance(packed, dict) and packed.keys() == {"tuple"}:
        packed = packed["tuple"]
    return _same(packed, wanted)


def _same(packed: Any, wanted: Any) -> bool:
    """The same, without building sets and dictionaries of the program's choice, which may take for ever."""
    if isinstance(wanted, list | tuple):
        return isinstance(packed, list) and len(packed) == len(wanted) and all(map(_same, packed, wanted))
    if isinstance(wanted, dict):
        return _same_table(packed, wanted)
    if isinstance(packed, dict):
        return packed.keys() == {"int"} and _same_number(packed, wanted)
    return not isinstance(packed, list) and bool(packed == wanted)


def _same_table(packed: Any, wanted: dict[str, Any]) -> bool:
    if not isinstance(packed, dict) or packed.keys() != {"dict"} or not isinstance(packed["dict"], list):
        return False
    pairs = packed["dict"]
    if any(not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) for pair in pairs):
        return False
    held = dict(pairs)
    return held.keys() == wanted.keys() and all(_same(held[key], wanted[key]) for key in wanted)


def _same_number(packed: dict[str, Any], wanted: Any) -> bool:
    try:
        return bool(unpack(packed) == wanted)
    except ValueError:
        return False


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(given: str, right: str) -> bool:
    if given == right:
        return True
    try:
        return [Decimal(part) for part in given.split()] == [Decimal(part) for part in right.split()]
    except InvalidOperation:
        return False
