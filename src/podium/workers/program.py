"""One run of a program: what it is sent, what it writes, and its end with all that it started.

Not a sandbox: the program may do whatever its user may. A part of it that opens a session of its own is out of reach;
it is not waited for. Killed outright, we leave it behind, with its input and output closed.
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

_AT_ONCE = 2**18
"""Bytes."""
_COMPLAINTS = 2**13
"""Bytes kept of the end of the standard error."""
_GLANCE_S = 0.005
"""Between two checks whether it has ended, where the system has no event for it."""
_DEATH_S = 0.2
"""For a killed process to be gone; it takes a fraction of this."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended."""

    status: int
    """Its exit status; below 0: the signal that killed it."""
    output: bytes
    """What it wrote until it ended."""
    complaints: bytes
    """The end of its standard error."""
    cut: bool
    """It wrote more than is taken, and was killed."""


class Program:
    """A running one, in a process group of its own."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
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
        self._output, self._complaints = bytearray(), bytearray()
        self._cut = self._over = False

    @property
    def pid(self) -> int:
        """Its number, and that of its group."""
        return self._popen.pid

    async def run(self, sent: bytes, most: int) -> Ended:
        """Send it `sent`, and wait for its end; if we are cancelled it ends at once, with all that it started.

        Args:
            sent: for its standard input, which is then closed. A program that does not read it is fine.
            most: bytes of output that are taken.
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
                    tasks.create_task(_write(stdin, sent)),
                    tasks.create_task(_read(stdout, lambda part: self._take(part, most))),
                    tasks.create_task(_read(stderr, self._hear)),
                )
                await _end_of(self._popen)
                for stream in streams:
                    stream.cancel()
            self._kill()
            # All that it wrote itself is in the pipes by now.
            _drain(stdout, lambda part: self._take(part, most), most)
            _drain(stderr, self._hear, most)
        finally:
            self._kill()
            for pipe in (stdin, stdout, stderr):
                pipe.close()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_DEATH_S)
            self._over = True
        status: int | None = self._popen.returncode
        assert status is not None
        return Ended(status, bytes(self._output[:most]), bytes(self._complaints), self._cut)

    def _take(self, part: bytes, most: int) -> None:
        if self._cut:
            return
        self._output += part
        if len(self._output) > most:
            self._cut = True
            self._kill()

    def _hear(self, part: bytes) -> None:
        self._complaints += part
        del self._complaints[:-_COMPLAINTS]

    def _kill(self) -> None:
        """Kill the group, whose number is its own until its leader was waited for."""
        if not self._over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)


async def _end_of(popen: subprocess.Popen[bytes]) -> None:
    """Wait until its leader has ended, and leave it to be waited for where the system can tell us so."""
    try:
        watch = os.pidfd_open(popen.pid)
    except (AttributeError, OSError):
        while popen.poll() is None:  # noqa: ASYNC110 - nobody tells us here
            await asyncio.sleep(_GLANCE_S)
        return
    try:
        await _readable(watch)
    finally:
        os.close(watch)


async def _readable(place: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(place, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(place)


async def _writable(place: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(place, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_writer(place)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _write(pipe: IO[bytes], sent: bytes) -> None:
    rest = memoryview(sent)
    try:
        while rest:
            await _writable(pipe.fileno())
            with suppress(BlockingIOError):
                rest = rest[os.write(pipe.fileno(), rest[:_AT_ONCE]) :]
    except ConnectionError:
        pass  # It does not want to read more: that is its own affair.
    pipe.close()


async def _read(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    while True:
        # Also where there is more to read already: a program that never stops must not keep our loop to itself.
        await _readable(pipe.fileno())
        with suppress(BlockingIOError):
            part = os.read(pipe.fileno(), _AT_ONCE)
            if not part:
                return
            take(part)


def _drain(pipe: IO[bytes], take: Callable[[bytes], None], most: int) -> None:
    """What is in the pipe now; whoever still holds its other end may not keep us with ever more."""
    taken = 0
    with suppress(BlockingIOError):
        while taken <= most and (part := os.read(pipe.fileno(), _AT_ONCE)):
            take(part)
            taken += len(part)
