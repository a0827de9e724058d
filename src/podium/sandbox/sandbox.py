"""The host's side of one sandbox: an isolated interpreter that waits for a program, and runs one program alone.

What the program prints or returns is bounded, and is data: nothing of it is executed here.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from podium.errors import GraderError
from podium.sandbox.inside import frames
from podium.sandbox.inside.run_limits import MIB, RunLimits
from podium.sandbox.interpreter import InterpreterProcess
from podium.sandbox.isolation import Isolation

Role = Literal["program", "asserts"]
"""What runs in the sandbox during a conversation: a server of a program's functions, or tests that call them."""
ExitReason = Literal["done", "failed", "killed", "time", "memory", "processes", "output", "gone"]
"""How a program ended. "failed": it raised, or exited with another status than 0; "killed": by a signal; "gone": it
had ended before; "time", "memory", "processes" and "output" are the limit that it passed."""

_REASONS: dict[bytes, ExitReason] = {reason.encode(): reason for reason in get_args(ExitReason)}
_START_S = 60.0
"""Seconds that an interpreter may take to start, or to import, on a busy machine."""
_REPORT_GRACE_S = 10.0
"""Seconds that the sandbox may take to report that a limit was passed."""
_MAX_REPLY_BYTES = 256 * MIB
"""The most bytes of a reply that are read, whatever length the sandbox announces."""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """The program has ended."""

    reason: ExitReason
    output: bytes = b""
    """What the program had written."""


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What the program sent; it still runs."""

    data: bytes


class Sandbox:
    """One isolated interpreter. It carries out orders one by one, and ends with the first that it cannot answer."""

    def __init__(self, isolation: Isolation, process: InterpreterProcess) -> None:
        self._isolation, self._process = isolation, process
        self._loaded = ""
        self._wall_s = 0.0

    @classmethod
    async def start(cls, isolation: Isolation, imports: str = "") -> Self:
        """A sandbox that is ready for orders, and has run the statements `imports`, so that programs find these modules
        loaded.

        Raises:
            GraderError: it did not start, or an import failed; the message ends with the last line of its output.
        """
        try:
            sandbox = cls(isolation, isolation.start())
        except OSError as error:
            raise GraderError(f"A sandbox ({isolation.name}) cannot be started: {error}.") from None
        try:
            await sandbox._receive(_START_S)
            await sandbox.load(imports)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return self._process.alive

    async def close(self) -> None:
        """End it, and all that runs in it."""
        await self._process.end()

    async def load(self, imports: str) -> None:
        """Import what the program is going to need.

        Raises:
            GraderError: an import failed.
        """
        if imports == self._loaded:
            return
        ended = await self._order({"do": "imports", "source": imports}, _START_S)
        self._loaded = imports
        if ended != ProgramExit("done"):
            output = ended.output if isinstance(ended, ProgramExit) else ended.data
            last_line = output.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")[:300]
            raise GraderError(f"What is needed to run the program is not here: {last_line}.")

    async def run(
        self, source: str, stdin: str, limits: RunLimits, prelude: str = "", *, report_error: bool = False
    ) -> ProgramExit:
        """Run a program as a script: how it ended, and its standard output.

        Args:
            prelude: source that runs before it, in the same module.
            report_error: whether an exception that the program raises is appended to its output, after
                `inside.program.RAISED`.

        Raises:
            GraderError: the sandbox failed; this says nothing about the program.
        """
        arguments = {"source": source, "prelude": prelude, "report_error": report_error}
        order = {"do": "run", "with": arguments, "stdin": stdin}
        received = await self._start_program(order, limits)
        if isinstance(received, ProgramOutput):
            raise GraderError("A sandbox sent a message while its program still ran.")
        return received

    async def open(
        self, role: Role, arguments: dict[str, Any], limits: RunLimits
    ) -> ProgramOutput | ProgramExit:
        """Begin a conversation, and wait for the first message. Raises what `run` does.

        Args:
            arguments: of the function that serves this role in `inside`, by name.
            limits: for each exchange.
        """
        self._wall_s = limits.wall_s + _REPORT_GRACE_S
        return await self._start_program({"do": role, "with": arguments}, limits)

    async def send(self, data: bytes) -> ProgramOutput | ProgramExit:
        """Send the next message of the conversation, and wait for the reply. Raises what `run` does."""
        return await self._send(frames.DATA + data, self._wall_s)

    async def _start_program(self, order: dict[str, Any], limits: RunLimits) -> ProgramOutput | ProgramExit:
        # The others are counted only here: this interpreter may have waited for hours.
        others = await asyncio.to_thread(self._isolation.other_processes)
        order |= {"limits": limits._asdict(), "others": others}
        return await self._order(order, limits.wall_s + _REPORT_GRACE_S)

    async def _order(self, order: dict[str, Any], seconds: float) -> ProgramOutput | ProgramExit:
        return await self._send(frames.ORDER + json.dumps(order).encode(), seconds)

    async def _send(self, body: bytes, seconds: float) -> ProgramOutput | ProgramExit:
        try:
            return await self._receive(seconds, sent=frames.to_frame(body))
        except GraderError:
            if self._isolation.weak:
                return ProgramExit("killed")  # by the program, which weak isolation allows
            raise

    async def _receive(self, seconds: float, sent: bytes = b"") -> ProgramOutput | ProgramExit:
        try:
            async with asyncio.timeout(seconds):
                await self._process.write(sent)
                size = int.from_bytes(await self._process.read(frames.HEAD), "big")
                body = await self._process.read(min(size, _MAX_REPLY_BYTES))
        except (OSError, TimeoutError):
            last_error = self._process.last_error() or "it wrote no error message"
            raise GraderError(f"A sandbox ({self._isolation.name}) failed: {last_error}.") from None
        if body[:1] == frames.DATA:
            return ProgramOutput(body[1:])
        told, _, output = body[1:].partition(b"\n")
        reason = _REASONS.get(told)
        if reason is None:
            raise GraderError(
                f"A sandbox ({self._isolation.name}) failed: it reported no known end of the program."
            )
        return ProgramExit(reason, output)
