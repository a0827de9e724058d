"""A pool of processes that compare mathematics (`math_process`): a few for each event loop, started when needed.

Processes are kept, since loading SymPy takes a second, and end with their event loop. A process that exceeded its
limits, died, or was left in the middle of a comparison is replaced.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium.errors import ConfigError, GraderError
from podium.per_loop import PerLoop

_START_S = 120.0
"""Loading takes a second or two; a machine that swaps may need its time."""
_STARVED, _STARVED_S = 20.0, 30.0
"""A comparison that takes so many times its processor time, and so many seconds more, is not being worked on."""
_PROGRAM = str(Path(__file__).with_name("math_process.py"))
"""Run as a file: as a module it would load all of `podium.tasks` first."""
_ENDING_S = 1.0
"""For a process whose output has ended."""
_OWN_LIMITS = (-signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit statuses of a process that its work ended: processor time, stack, memory."""


class MathVerifier:
    """Asks a free process, or starts one while there are fewer than the cores that this process may use."""

    def __init__(self) -> None:
        self._pools = PerLoop(_open_pool)

    async def compare(self, question: dict[str, Any], seconds: float) -> bool | None:
        """What `calculator.equal` says.

        Args:
            question: its arguments.
            seconds: of processor time.

        Returns: None if there was no verdict within the limits of time and memory.

        Raises:
            ConfigError: Math-Verify is not installed.
            GraderError: no process could be started, or one was ended by something else than its work.
        """
        team = await self._pools.get()
        return await team.compare(question, seconds)


async def _open_pool() -> AsyncGenerator[_ProcessPool]:
    """A team, as long as its loop."""
    team = _ProcessPool()
    try:
        yield team
    finally:
        await team.end()


class _ProcessPool:
    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_cores())
        self._idle: list[Process] = []

    async def compare(self, question: dict[str, Any], seconds: float) -> bool | None:
        line = json.dumps(question | {"seconds": seconds}).encode() + b"\n"
        async with self._places:
            process = await self._free()
            reply = b""
            try:
                async with asyncio.timeout(_STARVED_S + _STARVED * seconds):
                    reply = await _exchange(process, line)
            except TimeoutError:
                raise GraderError("a process that compares mathematics hangs; ask again.") from None
            finally:
                if reply:
                    self._idle.append(process)
                else:
                    await _end(process)
        if not reply and process.returncode not in _OWN_LIMITS:
            raise GraderError(
                f"a process that compares mathematics ended with {process.returncode}; ask again."
            )
        verdict: bool | None = json.loads(reply) if reply else None
        return verdict

    async def _free(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
        return await _start()

    async def end(self) -> None:
        for process in self._idle:
            with suppress(ProcessLookupError):
                process.kill()
        while self._idle:
            await self._idle.pop().wait()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _start() -> Process:
    if find_spec("math_verify") is None:
        raise ConfigError(
            "comparing mathematics needs Math-Verify; install it: pip install 'podium-conductor[tasks]'."
        )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", _PROGRAM, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    ready = b""
    try:
        async with asyncio.timeout(_START_S):
            ready = await _out(process).readline()
    except TimeoutError:
        pass
    finally:
        if not ready:
            await _end(process)
    if not ready:
        raise GraderError(f"a process that compares mathematics did not start; see why: python -P {_PROGRAM}")
    return process


async def _exchange(process: Process, line: bytes) -> bytes:
    """The line that answers `line`; empty: the process has ended."""
    assert process.stdin is not None
    with suppress(ConnectionError):
        process.stdin.write(line)
        await process.stdin.drain()
    return await _out(process).readline()


def _out(process: Process) -> asyncio.StreamReader:
    assert process.stdout is not None
    return process.stdout


async def _end(process: Process) -> None:
    if process.stdout is not None and process.stdout.at_eof():
        # To kill one that has just ended would hide from asyncio how it did.
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                await process.wait()
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
