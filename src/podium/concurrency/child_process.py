"""Processes that Podium starts for itself: each reads lines, answers them, and ends with its parent.

A child has a session of its own: the terminal's signals do not reach it, and it is killed together with all that it
started. It ends by itself when its input is closed, which also happens when the parent is killed. Programs of others
are run elsewhere: a model's programs in `podium.sandbox`, a user's in `podium.workers.command`.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from tempfile import TemporaryDirectory, TemporaryFile
from weakref import finalize

_READ_BYTES = 2**16
"""The most bytes of one read."""
_ERROR_BYTES = 2**12
"""Bytes at the end of the standard error that are looked at."""
RESOURCE_LIMIT_STATUSES = (-signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit statuses of a process that exceeded a limit of its own: CPU time, stack, memory."""


class ChildEndedError(Exception):
    """The process ended before it had answered, with an exit status, or by the signal of a negative one. `error` is the
    last line of its standard error."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(f"ended with status {status}{f' ({error})' if error else ''}")
        self.status = status


class ChildTimeoutError(Exception):
    """The process did not answer in time, and was killed."""


def usable_cores() -> int:
    """How many processes this one may run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def python_environment() -> dict[str, str]:
    """Variables of a child that imports what our process would import, and computes on one core."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return one_thread | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class ChildProcess:
    """One running process. Its methods block. One thread at a time may call them, but any thread `stop`.

    Args:
        arguments: the command line after the interpreter, as in ("-m", "podium.some.module").
        environment: its whole environment. Without it, ours with `python_environment`.
        folder: its working folder, which `close` deletes. Without it, ours.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: TemporaryDirectory[str] | None = None,
    ) -> None:
        self._folder = folder
        self._errors = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._received = bytearray()
        self._ending = threading.Lock()
        self._popen: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=None if folder is None else folder.name,
            env=os.environ | python_environment() if environment is None else environment,
            start_new_session=True,
        )

    @property
    def id(self) -> int:
        """The id of the process, and of its group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    def write_line(self, line: bytes) -> None:
        """Send a line.

        Raises:
            ChildEndedError: it has ended.
        """
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(line + b"\n")
            self._popen.stdin.flush()
        except OSError:
            raise self.exit_error() from None

    def read_line(self, timeout_s: float | None = None) -> bytes:
        """The next line, without its end. If the process ends first, a `ChildEndedError` is raised; if it writes none
        for so many seconds, it is killed, and a `ChildTimeoutError` is raised. None waits for ever."""
        assert self._popen.stdout is not None
        pipe = self._popen.stdout.fileno()
        # `poll` also takes descriptors beyond 1,023, which a server has.
        watch = select.poll()
        watch.register(pipe, select.POLLIN)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if not watch.poll(None if until is None else max(0.0, 1000 * (until - time.monotonic()))):
                self.stop()
                raise ChildTimeoutError
            part = os.read(pipe, _READ_BYTES)
            if not part:
                raise self.exit_error()
            self._received += part
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def exit_error(self) -> ChildEndedError:
        """Why it ended. Its streams are closed already, so waiting for its end is short."""
        status = self._popen.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _ERROR_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return ChildEndedError(status, lines[-1] if lines else "")

    def stop(self) -> int:
        """Kill it and all that it started, and return its exit status. Any thread may call it, several times too."""
        with self._ending:
            # If it has ended, its id may belong to another process by now.
            if self._popen.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self.id, signal.SIGKILL)
            return self._popen.wait()

    def close(self) -> None:
        """Stop it, and delete its folder. Calling twice is fine."""
        self.stop()
        for stream in (self._popen.stdin, self._popen.stdout, self._errors):
            if stream is not None:
                # A write that is still buffered fails when the pipe closes.
                with suppress(OSError):
                    stream.close()
        if self._folder is not None:
            self._folder.cleanup()


class ChildPool:
    """Asks processes, each for one answer at a time. It starts one if none is idle, and keeps it for the next request.

    At most `max_children` work for `ask`; further requests wait. A process that did not answer is never asked again.
    All end when the pool is closed or garbage-collected, and with Python.
    """

    def __init__(self, start: Callable[[], ChildProcess], max_children: int, name: str) -> None:
        self.max_children = max_children
        self._start = start
        self._idle: list[ChildProcess] = []
        self._threads = ThreadPoolExecutor(max_children, thread_name_prefix=name)
        self._close = finalize(self, _close, self._idle, self._threads)

    @property
    def idle(self) -> tuple[int, ...]:
        """The ids of the processes that wait for a request."""
        return tuple(child.id for child in self._idle)

    def ask_and_wait(self, line: bytes, timeout_s: float) -> bytes:
        """The answer to a line, from a thread that may block; `max_children` does not hold here. Raises what
        `ChildProcess.read_line` does."""
        return self._ask_in_thread(_Request(), line, timeout_s)

    async def ask(self, line: bytes, timeout_s: float) -> bytes:
        """The answer to a line. If the caller is cancelled, the process is killed. Raises what `ask_and_wait` does."""
        request = _Request()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._ask_in_thread, request, line, timeout_s
            )
        except asyncio.CancelledError:
            request.give_up()
            raise

    def close(self) -> None:
        """End the idle processes. Calling twice is fine."""
        self._close()

    def _ask_in_thread(self, request: _Request, line: bytes, timeout_s: float) -> bytes:
        child, answered = self._take_child(), False
        try:
            request.begin(child)
            child.write_line(line)
            answer = child.read_line(timeout_s)
            answered = request.end()
        finally:
            if answered and self._close.alive:
                self._idle.append(child)
            else:
                child.close()
        return answer

    def _take_child(self) -> ChildProcess:
        with suppress(IndexError):  # Another thread may take the last one.
            while not (child := self._idle.pop()).alive:
                child.close()
            return child
        return self._start()


class _Request:
    """One line for which a thread awaits an answer. The caller may give up from another thread, which kills the
    process unless it has answered: then it may work on another request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._given_up = False

    def begin(self, child: ChildProcess) -> None:
        with self._lock:
            self._child = child
            if self._given_up:
                child.stop()

    def end(self) -> bool:
        """The process has answered. Returns whether it can be asked again."""
        with self._lock:
            self._child = None
            return not self._given_up

    def give_up(self) -> None:
        with self._lock:
            self._given_up = True
            if self._child is not None:
                self._child.stop()


def _close(idle: list[ChildProcess], threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False)
    while idle:
        idle.pop().close()
