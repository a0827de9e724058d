"""The grader of programs."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import Field, PrivateAttr

from podium.errors import GraderError
from podium.sandbox.inside.allowance import MIB, Allowance
from podium.sandbox.sandboxes import Sandboxes
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.code.gold import read_gold
from podium.tasks.graders.code.judging import Trial
from podium.tasks.graders.extraction import find
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

    def complaint(self, gold: str) -> str | None:
        try:
            read_gold(gold)
        except ValueError as error:
            return str(error)
        return None

    async def __call__(self, response: str, gold: str) -> Grade:
        program = find(response, "code")
        if program is None:
            return Grade(0.0)
        try:
            tests = await asyncio.to_thread(read_gold, gold)
        except ValueError as error:
            raise GraderError(f"A program cannot be graded: {error}.") from None
        trial = Trial(program, self._allowance(self.seconds), self._allowance(self.total_seconds))
        sandbox = await self._sandboxes.sandbox()
        return Grade(float(await trial.passes(tests, sandbox, allow_weak=self.allow_weak_sandbox)), program)

    def _allowance(self, seconds: float) -> Allowance:
        return Allowance(cpu_s=seconds, wall_s=_PATIENCE * seconds, memory_bytes=self.memory_mb * MIB)
