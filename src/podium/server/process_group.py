"""Several processes that answer the requests of one address: the parent starts them, replaces them, and ends them.

All processes accept connections from the same listening sockets, so a free process takes the next connection. The
parent answers no request. It passes signals on. A process whose pipe to the parent closes stops, so no process outlives
the parent, however the parent ends. The caller decides what the processes serve.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from podium.errors import PodiumError, UsageError

_FIRST_PAUSE_S = 1.0
"""Seconds until a process that ended before it could serve is started again. The pause doubles each time."""
_LONGEST_PAUSE_S = 30.0
_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "podium"
"""The variable that keeps the working folder out of Python's search for modules, and the value that Podium sets."""
_LOG = logging.getLogger("podium.server")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """One process of a group, as the process itself sees it."""

    number: int
    """The process's number, from 0. A process that replaces another has its number."""
    process_count: int
    """How many processes there are."""
    folder: Path
    """A folder only for this group. The parent deletes it. If the parent was killed, the processes do."""
    is_first: bool
    """Whether no other process of the group was started before."""
    parent: Connection
    """The pipe to the parent. It is at its end when the parent has ended."""

    def ready(self, text: str) -> None:
        """Tell the parent that this process answers requests, and what it should print about that."""
        self.parent.send(("ready", text))


Serve = Callable[[Sequence[socket.socket], ServerProcess], None]
"""The function that each process runs until signals end it: SIGTERM after the running questions, and SIGINT, which
comes later, at once. It is pickled, so it has to be importable."""


def run_group(
    serve: Serve, sockets: Sequence[socket.socket], count: int, folder: Path, announce: Callable[[str], None]
) -> None:
    """Run `count` processes until SIGTERM or SIGINT ends them. A process that ends before is replaced.

    Args:
        sockets: listening sockets, which the caller closes.
        folder: a folder only for this group.
        announce: called once, with the text of the first process, when all processes answer requests.

    Raises:
        UsageError: a process cannot serve. No process is left.
    """
    asyncio.run(_Group(serve, sockets, count, folder, announce).run())


@dataclass(slots=True, eq=False)
class _Child:
    process: SpawnProcess
    pipe: Connection
    is_ready: bool = False


class _Group:
    """The parent's side of a group, with the arguments of `run_group`."""

    def __init__(
        self,
        serve: Serve,
        sockets: Sequence[socket.socket],
        count: int,
        folder: Path,
        announce: Callable[[str], None],
    ) -> None:
        self._serve, self._sockets, self._count = serve, sockets, count
        self._folder, self._announce = folder, announce
        self._children: dict[int, _Child] = {}
        self._supervisors = asyncio.TaskGroup()
        self._stopping = asyncio.Event()
        self._text: str | None = None
        """The text with which the first process reported that it is ready. None until then."""
        self._has_served = False
        """Whether all processes have been ready at once. Before that, a process that ends is an error. After that, it
        is replaced."""
        self._signals = 0
        self._refusal: str | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        try:
            async with self._supervisors:
                # The first process starts before the others, since it updates files and finds wrong options.
                self._supervisors.create_task(self._supervise(0))
        finally:
            for child in self._children.values():
                child.process.kill()
                child.process.join()
        if self._refusal is not None:
            raise UsageError(self._refusal)

    async def _supervise(self, number: int) -> None:
        """Start a process, and another in its place whenever it ends, until the group stops."""
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            child = self._children[number] = self._start(number)
            while (message := await _receive(child.pipe)) is not None:
                self._on_message(child, *message)
            child.process.join()
            child.pipe.close()
            del self._children[number]
            status = child.process.exitcode
            if self._stopping.is_set():
                return
            if not self._has_served:
                self._fail(f"A process of the server ended with status {status} before it could serve.")
                return
            _LOG.warning("A process of the server ended with status %s; another takes its place.", status)
            if child.is_ready:
                pause_s = _FIRST_PAUSE_S
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def _start(self, number: int) -> _Child:
        pipe, theirs = get_context("spawn").Pipe()
        server_process = ServerProcess(number, self._count, self._folder, self._text is None, theirs)
        process = get_context("spawn").Process(target=_run, args=(self._serve, self._sockets, server_process))
        with _without_working_folder():
            resource_tracker.ensure_running()  # Its start unblocks the signal.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Until the process has its own group.
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs.close()
        return _Child(process, pipe)

    def _on_message(self, child: _Child, kind: str, text: str) -> None:
        if kind == "refused":
            self._fail(text)
            return
        child.is_ready = True
        if self._stopping.is_set():
            return
        if self._text is None:
            self._text = text
            for number in range(1, self._count):
                self._supervisors.create_task(self._supervise(number))
        if not self._has_served and sum(other.is_ready for other in self._children.values()) == self._count:
            self._has_served = True
            self._announce(self._text)

    def _fail(self, reason: str) -> None:
        """Handle a process that cannot serve: end the group if it has never served, else log the reason."""
        if self._has_served:
            _LOG.error("A process of the server cannot serve: %s", reason)
        elif self._refusal is None:
            self._refusal = reason
            self._stop(signal.SIGTERM)

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals > 2:
            sys.exit(1)
        # They are different, since the second may come before a process has handled the first.
        self._stop(signal.SIGTERM if self._signals == 1 else signal.SIGINT)

    def _stop(self, number: signal.Signals) -> None:
        self._stopping.set()
        for child in self._children.values():
            if child.process.pid is not None:
                with suppress(ProcessLookupError):  # It may have ended just now.
                    os.kill(child.process.pid, number)


async def _receive(pipe: Connection) -> tuple[str, str] | None:
    """The next message of a process. None once it has ended."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pipe.fileno(), readable.set)
    try:
        await readable.wait()
        message: tuple[str, str] = pipe.recv()
        return message
    except (EOFError, OSError):
        return None
    finally:
        loop.remove_reader(pipe.fileno())


@contextmanager
def _without_working_folder() -> Iterator[None]:
    """Within the block, new processes do not search the working folder for Python's own modules. Later they get the
    module search path of this process."""
    if sys.flags.safe_path:
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]


def _run(serve: Serve, sockets: Sequence[socket.socket], process: ServerProcess) -> None:
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]  # The variable must not reach the programs that workers start.
    # Ctrl+C in a terminal should reach only the parent, which then gives the order.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Drops a signal that came before.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        serve(sockets, process)
    except PodiumError as error:
        process.parent.send(("refused", str(error)))
    finally:
        parent = parent_process()
        if parent is not None and not parent.is_alive():
            # The other processes go on with the files that they have open.
            shutil.rmtree(process.folder, ignore_errors=True)
