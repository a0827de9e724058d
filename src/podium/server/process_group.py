"""Several processes that answer the requests of one address: the parent starts them, replaces them, and ends them.

All processes accept connections from the same listening sockets, so a free process takes the next connection. The
parent answers no request. It gives orders through pipes. A process whose pipe closes stops, so no process outlives the
parent, however the parent ends. The caller decides what the processes serve.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Literal

from podium.errors import PodiumError, UsageError

Order = Literal["stop", "hurry"]
"""An order of the parent to a process. "stop": end after the running questions. "hurry": cancel the running
questions."""
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
    """A folder only for this group. The parent deletes it. If the parent was killed, the last process deletes it."""
    is_first: bool
    """Whether no other process of the group was started before."""
    parent: Connection
    """The pipe that receives orders. It is at its end when the parent has ended."""

    def ready(self, text: str) -> None:
        """Tell the parent that this process answers requests, and what it should print about that."""
        self.parent.send(("ready", text))


Serve = Callable[[Sequence[socket.socket], ServerProcess], None]
"""The function that each process runs, until an order ends it. It is pickled, so it has to be importable."""


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
    group = _Group(serve, sockets, count, folder, announce)
    try:
        group.run()
    finally:
        group.kill()


@dataclass(slots=True)
class _Child:
    number: int
    process: SpawnProcess
    pipe: Connection
    is_ready: bool = False


@dataclass(slots=True)
class _Group:
    """The parent's side of a group. The first fields are the arguments of `run_group`."""

    serve: Serve
    sockets: Sequence[socket.socket]
    count: int
    folder: Path
    announce: Callable[[str], None]
    children: list[_Child] = field(default_factory=list)
    # The first process starts before the others, since it updates files and finds wrong options.
    due: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    """The numbers of the processes to start, with the time of each start on the monotonic clock."""
    text: str | None = None
    """The text with which the first process reported that it is ready. None until then."""
    has_served: bool = False
    """Whether all processes have been ready at once. Before that, a process that ends is an error. After that, it is
    replaced."""
    signals: int = 0
    pause_s: float = _FIRST_PAUSE_S
    refusal: str | None = None

    def run(self) -> None:
        with _signal_socket() as signals:
            while self.children or self.due:
                self._start_due()
                # If a process wrote to its pipe and then ended, the pipe is read before the end is handled.
                sources: dict[object, Callable[[], None]] = {signals: partial(self._on_signals, signals)}
                for child in self.children:
                    if not child.pipe.closed:
                        sources[child.pipe] = partial(self._read, child)
                for child in self.children:
                    sources[child.process.sentinel] = partial(self._replace, child)
                happened = wait(list(sources), self._until_due())  # type: ignore[arg-type]
                for source in [source for source in sources if source in happened]:
                    sources[source]()
        if self.refusal is not None:
            raise UsageError(self.refusal)

    def kill(self) -> None:
        """End the processes that are left, without waiting for their questions."""
        for child in self.children:
            child.process.kill()
            child.process.join()

    def _until_due(self) -> float | None:
        return max(0.0, min(self.due.values()) - time.monotonic()) if self.due else None

    def _start_due(self) -> None:
        for number, start_at in tuple(self.due.items()):
            if start_at <= time.monotonic():
                del self.due[number]
                self.children.append(self._start(number))

    def _start(self, number: int) -> _Child:
        pipe, theirs = get_context("spawn").Pipe()
        server_process = ServerProcess(number, self.count, self.folder, self.text is None, theirs)
        process = get_context("spawn").Process(target=_run, args=(self.serve, self.sockets, server_process))
        with _without_working_folder():
            resource_tracker.ensure_running()  # Its start unblocks the signal.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Until the process has its own group.
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs.close()
        return _Child(number, process, pipe)

    def _read(self, child: _Child) -> None:
        try:
            kind, text = child.pipe.recv()
        except (EOFError, OSError):
            child.pipe.close()
            return
        if kind == "refused":
            self._fail(text)
            return
        child.is_ready = True
        self.pause_s = _FIRST_PAUSE_S
        if self.signals or self.refusal is not None:
            return
        if self.text is None:
            self.text = text
            self.due |= dict.fromkeys(range(1, self.count), 0.0)
        if not self.has_served and sum(other.is_ready for other in self.children) == self.count:
            self.has_served = True
            self.announce(self.text)

    def _replace(self, child: _Child) -> None:
        child.process.join()
        self.children.remove(child)
        child.pipe.close()
        if self.signals or self.refusal is not None:
            return
        status = child.process.exitcode
        if not self.has_served:
            self._fail(f"A process of the server ended with status {status} before it could serve.")
            return
        _LOG.warning("A process of the server ended with status %s; another takes its place.", status)
        pause_s = 0.0
        if not child.is_ready:
            pause_s, self.pause_s = self.pause_s, min(_LONGEST_PAUSE_S, 2 * self.pause_s)
        self.due[child.number] = time.monotonic() + pause_s

    def _fail(self, reason: str) -> None:
        """Handle a process that cannot serve: end the group if it has never served, else log the reason."""
        if self.has_served:
            _LOG.error("A process of the server cannot serve: %s", reason)
        elif self.refusal is None:
            self.refusal = reason
            self._order("stop")

    def _on_signals(self, signals: socket.socket) -> None:
        for _ in signals.recv(64):
            self.signals += 1
            if self.signals > 2:
                self.kill()
                sys.exit(1)
            self._order("stop" if self.signals == 1 else "hurry")

    def _order(self, order: Order) -> None:
        self.due.clear()
        for child in self.children:
            with suppress(OSError):  # The process may have ended just now.
                child.pipe.send(order)


@contextmanager
def _signal_socket() -> Iterator[socket.socket]:
    """A socket that receives one byte for each SIGTERM and SIGINT. Meanwhile these signals do not end the process."""
    ours, python = socket.socketpair()
    with ours, python:
        python.setblocking(False)
        wakeup = signal.set_wakeup_fd(python.fileno())
        handlers = {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield ours
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)


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
    with _folder_in_use(process.folder):
        try:
            serve(sockets, process)
        except PodiumError as error:
            process.parent.send(("refused", str(error)))


@contextmanager
def _folder_in_use(folder: Path) -> Iterator[None]:
    """Lock the folder. At the end, delete it if the parent was killed and no other process is left."""
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        yield
    finally:
        parent = parent_process()
        if parent is not None and not parent.is_alive():
            with suppress(OSError):  # Another process still has its lock.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
        os.close(lock)
