"""The grader of code: a program is right when it passes all tests. Programs run in a sandbox (`podium.sandbox`).

The tests are the gold answer (`code_tests`). The first test that fails ends the run. A program never sees its tests:
expected outputs enter no sandbox, and asserts and suites run in a second sandbox of their own, from which calls are
carried to the program's sandbox, and plain data back.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from podium.concurrency.event_loops import PerLoop
from podium.errors import GraderError
from podium.sandbox.inside.asserts import CALL, VERDICT
from podium.sandbox.inside.packing import pack, unpack
from podium.sandbox.inside.run_limits import RunLimits
from podium.sandbox.sandbox import ProgramExit, ProgramOutput, Sandbox
from podium.sandbox.sandbox_pool import SandboxPool, open_sandboxes
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.code_tests import (
    CallTests,
    CodeTests,
    ProgramTests,
    SourceTests,
    import_statements,
    parse_tests,
)
from podium.tasks.graders.extraction import extract
from podium.tasks.task import Grade

_SPARE, _WIDEST = 1000, 32
"""Characters by which a printed number may be longer than the wanted one; and times that a returned value may be."""


class Code(GraderSettings):
    """1 when the program in the response passes all tests. The program is the last fenced block that is tagged as
    Python, else the last that is Python, else the last; all of the response if it has no block. The tests are the gold
    answer (`code_tests`). A program that exceeds a limit or cannot be loaded is wrong. If the sandbox does not start,
    or the tests cannot run here, the grader fails."""

    kind: Literal["code"] = "code"
    seconds: float = Field(default=6.0, gt=0)
    """Processor time of one run or one call, as in LiveCodeBench; the limit of wall time is three times as long."""
    total_seconds: float = Field(default=60.0, gt=0)
    """CPU seconds for all asserts together, or for all unit tests together."""
    memory_mb: int = Field(default=2048, ge=64)
    """Megabytes of memory for a program with all its processes."""
    allow_weak_sandbox: bool = False
    """Whether programs may run in a weak sandbox where bubblewrap is missing: only for programs that you trust."""

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
        limits = [RunLimits.of(seconds, self.memory_mb) for seconds in (self.seconds, self.total_seconds)]
        trial, pool = Submission(program, *limits), await self._pools.get()
        return Grade(float(await trial.passes(tests, pool, allow_weak=self.allow_weak_sandbox)), program)

    @cached_property
    def _pools(self) -> PerLoop[SandboxPool]:
        return PerLoop(open_sandboxes)


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
"""The imports that LiveCodeBench puts before every program."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A program that is to be tested, and its limits."""

    source: str
    limits: RunLimits
    """Limits of one run or one call."""
    total: RunLimits
    """Limits of all asserts together, or of all unit tests together."""

    async def passes(self, tests: CodeTests, pool: SandboxPool, *, allow_weak: bool) -> bool:
        """Whether the program passes all tests.

        Raises:
            GraderError: a sandbox did not start, or the tests cannot run here.
            ConfigError: there is no strong sandbox here, and a weak one is not allowed.
        """
        if isinstance(tests, SourceTests):
            imports = [import_statements(tests.setup), ""]
            async with pool.acquire(imports, allow_weak=allow_weak) as (program_sandbox, test_sandbox):
                return await self._passes_source(program_sandbox, test_sandbox, tests)
        async with pool.acquire([_CONTEST], allow_weak=allow_weak) as (sandbox,):
            if isinstance(tests, ProgramTests):
                return await self._passes_programs(sandbox, tests)
            return await self._passes_calls(sandbox, tests)

    async def _passes_programs(self, sandbox: Sandbox, tests: ProgramTests) -> bool:
        for stdin, wanted in zip(tests.inputs, tests.outputs, strict=True):
            ended = await sandbox.run(self.source, stdin, self.limits, prelude=_CONTEST)
            if ended.reason != "done" or not same_output(ended.output.decode(errors="replace"), wanted):
                return False
        return True

    async def _passes_calls(self, sandbox: Sandbox, tests: CallTests) -> bool:
        if not await self._load(sandbox, _CONTEST, [tests.function], self.limits):
            return False
        for arguments, wanted in zip(tests.inputs, tests.outputs, strict=True):
            call = {"call": tests.function, "given": pack(list(arguments)), "named": pack({})}
            reply = await sandbox.send(json.dumps(call).encode())
            if isinstance(reply, ProgramExit) or not same_value(reply.data, wanted):
                return False
        return True

    async def _passes_source(
        self, program_sandbox: Sandbox, test_sandbox: Sandbox, tests: SourceTests
    ) -> bool:
        """Whether the tests pass: they run in one sandbox and call the program's functions in another."""
        calls = 0
        try:
            async with asyncio.timeout(self.total.wall_s):
                limits = self.limits._replace(total_cpu_s=self.total.cpu_s)
                names = await self._load(program_sandbox, tests.prelude, tests.names, limits)
                request = tests.model_dump(include={"setup", "tests"})
                request |= {"names": names, "methods": tests.methods}
                total = self.total._replace(total_cpu_s=self.total.cpu_s)
                reply = await test_sandbox.open("asserts", request, total)
                while isinstance(reply, ProgramOutput) and reply.data.startswith(CALL):
                    calls += 1
                    answer = await program_sandbox.send(reply.data.removeprefix(CALL))
                    if isinstance(answer, ProgramExit):
                        return False
                    reply = await test_sandbox.send(answer.data)
        except TimeoutError:
            return False
        return isinstance(reply, ProgramOutput) and _passed(
            json.loads(reply.data.removeprefix(VERDICT)), calls
        )

    async def _load(self, sandbox: Sandbox, prelude: str, names: list[str], limits: RunLimits) -> list[str]:
        """Load the program as a server of its functions; returns which of some names it defines."""
        request = {"source": self.source, "prelude": prelude, "names": names}
        reply = await sandbox.open("program", request, limits)
        if isinstance(reply, ProgramExit) or len(reply.data) > len(json.dumps(names)):
            return []
        defined = _json(reply.data)
        return [name for name in names if isinstance(defined, list) and name in defined]


def _passed(verdict: dict[str, Any], calls: int) -> bool:
    """Whether the asserts passed, as their process reports.

    Raises:
        GraderError: the tests themselves are at fault.
    """
    if verdict["error"] == "UnsendableValueError":
        raise GraderError(f"The tests cannot run in another process than the program: {verdict['text']}.")
    if not calls and verdict["error"] in ("ImportError", "ModuleNotFoundError"):
        raise GraderError(f"The tests cannot run here: {verdict['text']}; install it.")
    if not calls and verdict["passed"]:
        raise GraderError("The tests call no function of the program, so they cannot judge it.")
    return bool(verdict["passed"])


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def same_output(printed: str, wanted: str) -> bool:
    """Whether a program printed the expected output. As in LiveCodeBench (`lcb_runner/evaluation/testing_util.py`),
    lines are compared without outer space, as text or as decimal numbers one by one, without tolerance. What is printed
    is divided no further than the expected output is."""
    wanted_lines = wanted.strip().split("\n")
    printed_lines = printed.strip().split("\n", len(wanted_lines))
    return len(printed_lines) == len(wanted_lines) and all(map(_same_line, printed_lines, wanted_lines))


def same_value(returned: bytes, wanted: Any) -> bool:
    """Whether `returned`, the reply of `podium.sandbox.inside.program`, is the expected JSON value; a returned tuple
    counts as a list, but not one within a list."""
    if len(returned) > _SPARE + _WIDEST * len(json.dumps(wanted)):
        return False  # unread: no equal value is written at such length
    try:
        packed = json.loads(returned)["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    if isinstance(packed, dict) and packed.keys() == {"tuple"}:
        packed = packed["tuple"]
    return _same(packed, wanted)


def _same(packed: Any, wanted: Any) -> bool:
    """Compare packed values without building the program's sets and dictionaries, which might never end."""
    if isinstance(wanted, list | tuple):
        return isinstance(packed, list) and len(packed) == len(wanted) and all(map(_same, packed, wanted))
    if isinstance(wanted, dict):
        return _same_table(packed, wanted)
    if isinstance(packed, dict):
        return packed.keys() == {"int"} and _same_number(packed, wanted)
    return not isinstance(packed, list) and bool(packed == wanted)


def _same_table(packed: Any, wanted: dict[str, Any]) -> bool:
    pairs = packed.get("dict") if isinstance(packed, dict) and len(packed) == 1 else None
    if not isinstance(pairs, list):
        return False
    if any(not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) for pair in pairs):
        return False
    table = dict(pairs)
    return table.keys() == wanted.keys() and all(_same(table[key], wanted[key]) for key in wanted)


def _same_number(packed: dict[str, Any], wanted: Any) -> bool:
    try:
        return bool(unpack(packed) == wanted)
    except ValueError:
        return False


def _same_line(given: str, right: str) -> bool:
    if given.strip() == right.strip():
        return True
    wanted = right.split()
    parts = given.split(maxsplit=len(wanted))
    return len(parts) == len(wanted) and all(map(_same_decimal, parts, wanted))


def _same_decimal(given: str, right: str) -> bool:
    """Whether two numbers are equal; a far longer one is not read, which takes quadratic time."""
    try:
        return len(given) <= len(right) + _SPARE and Decimal(given) == Decimal(right)
    except InvalidOperation:
        return False
