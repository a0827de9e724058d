"""Runs a program once: writes its input, reads its output, and at its end kills every process that it started.

This is no sandbox: the program may do what its user may do. A child process that opens its own session escapes, and
Podium does not wait for it. If Podium itself is killed, the program goes on with its input and output closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_READ_BYTES = 2**18
"""The most bytes of one read or write."""
_KEPT_ERROR_BYTES = 2**13
"""Bytes at the end of the standard error that are kept."""
_POLL_S = 0.005
"""Seconds between two checks whether the program has ended, on systems without an event for that."""
_MAX_DEATH_S = 0.2
"""The longest wait for a killed process to be gone."""


@dataclass(frozen=True, slots=True)
class CompletedProgram:
    """The result of a run."""

    status: int
    """The exit status of the program. A negative status is the signal that killed it."""
    output: bytes
    """The program's standard output."""
    errors: bytes
    """The end of its standard error."""
    cut: bool
    """Whether the program was killed because it wrote too much."""


class Program:
    """A running program, in a process group of its own."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start the program.

        Raises:
            OSError: the program cannot be started.
        """
        self._popen: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            bufsize=0,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._output, self._errors = bytearray(), bytearray()
        self._cut = self._over = False

    @property
    def pid(self) -> int:
        """The id of the program's process, and of its process group."""
        return self._popen.pid

    async def run(self, input_: bytes, most: int) -> CompletedProgram:
        """Write `input_`, and wait until the program ends. Cancelling this call kills the program and its children.

        Args:
            input_: what is written to the standard input, which is then closed. The program need not read it.
            most: the most bytes of output. A program that writes more is killed.
        """
        stdin, stdout, stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        try:
            for pipe in (stdin, stdout, stderr):
                os.set_blocking(pipe.fileno(), False)
            async with asyncio.TaskGroup() as tasks:
                streams = (
                    tasks.create_task(_write(stdin, input_)),
                    tasks.create_task(_read(stdout, lambda part: self._take(part, most))),
                    tasks.create_task(_read(stderr, self._take_error)),
                )
                await _wait_for_end(self._popen)
                for stream in streams:
                    stream.cancel()
            self._kill()
            # By now all that the program itself wrote is in the pipes.
            _drain(stdout, lambda part: self._take(part, most), most)
            _drain(stderr, self._take_error, most)
        finally:
            self._kill()
            for pipe in (stdin, stdout, stderr):
                pipe.close()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_MAX_DEATH_S)
            self._over = True
        status: int | None = self._popen.returncode
        assert status is not None
        return CompletedProgram(status, bytes(self._output[:most]), bytes(self._errors), self._cut)

    def _take(self, part: bytes, most: int) -> None:
        if self._cut:
            return
        self._output += part
        if len(self._output) > most:
            self._cut = True
            self._kill()

    def _take_error(self, part: bytes) -> None:
        self._errors += part
        del self._errors[:-_KEPT_ERROR_BYTES]

    def _kill(self) -> None:
        """Kill the process group. No other group can get its id before the system was asked for the leader's status."""
        if not self._over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)


async def _wait_for_end(popen: subprocess.Popen[bytes]) -> None:
    """Wait until the group's leader has ended. If the system has pidfds, the leader is not reaped."""
    try:
        watch = os.pidfd_open(popen.pid)
    except (AttributeError, OSError):
        while popen.poll() is None:  # noqa: ASYNC110 - the system has no event for it
            await asyncio.sleep(_POLL_S)
        return
    try:
        await _wait_readable(watch)
    finally:
        os.close(watch)


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def _wait_writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _write(pipe: IO[bytes], sent: bytes) -> None:
    rest = memoryview(sent)
    try:
        while rest:
            await _wait_writable(pipe.fileno())
            with suppress(BlockingIOError):
                rest = rest[os.write(pipe.fileno(), rest[:_READ_BYTES]) :]
    except ConnectionError:
        pass  # The program has closed its input, as it may.
    pipe.close()


async def _read(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    while True:
        # Wait even if more can be read now, so that a program that never stops writing does not block the event loop.
        await _wait_readable(pipe.fileno())
        with suppress(BlockingIOError):
            part = os.read(pipe.fileno(), _READ_BYTES)
            if not part:
                return
            take(part)


def _drain(pipe: IO[bytes], take: Callable[[bytes], None], most: int) -> None:
    """Take what is in the pipe now. It stops at `most` bytes, since an escaped child may go on writing."""
    taken = 0
    with suppress(BlockingIOError):
        while taken <= most and (part := os.read(pipe.fileno(), _READ_BYTES)):
            take(part)
            taken += len(part)
