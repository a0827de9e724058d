"""The first process of a sandbox: carries out orders of the host one by one, and sends exactly one reply to each.

It starts each program in a process of its own, relays its input and output, and enforces its limits. As the first
process of a pid namespace it cannot be stopped, killed or inspected by a program. It does not have the right answers.
"""

from __future__ import annotations

import builtins
import json
import os
import select
import sys
import time
from _sitebuiltins import Quitter
from collections.abc import Callable
from contextlib import suppress

from podium.sandbox.inside import asserts, frames, program
from podium.sandbox.inside.processes import Child, ProcessGroup, supervise
from podium.sandbox.inside.run_limits import RunLimits

_STEP_S = 0.02
"""Seconds between two measurements of what a program uses."""
_READ_BYTES = 2**16


class _Meter:
    """Measures what a program's processes use, in each exchange and in all of them."""

    def __init__(self, group: ProcessGroup, limits: RunLimits) -> None:
        self._group = group
        self._limits = limits
        self._cpu_at_start = group.usage().cpu_s
        self._cpu_before: float | None = None
        self._began = self._looked = time.monotonic()

    def begin_exchange(self) -> None:
        """Count time and CPU time of an exchange from now on."""
        self._cpu_before = None
        self._began = time.monotonic()

    def passed(self) -> str | None:
        now, limits = time.monotonic(), self._limits
        if now - self._began > limits.wall_s:
            return "time"
        if now - self._looked < _STEP_S:
            return None
        self._looked = now
        usage = self._group.usage()
        # Only now: most exchanges are over before the next measurement, and save its cost.
        if self._cpu_before is None:
            self._cpu_before = usage.cpu_s
        if usage.cpu_s - self._cpu_before > limits.cpu_s:
            return "time"
        if usage.cpu_s - self._cpu_at_start > limits.total_cpu_s:
            return "time"
        if usage.memory_bytes > limits.memory_bytes:
            return "memory"
        return "processes" if usage.processes > limits.processes else None


def _write(sink: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(sink, rest[:_READ_BYTES]) :] if rest else rest
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]  # it has closed its input


def main() -> None:
    """Carry out orders from standard input until it is closed. The command's arguments are the id of the user that
    programs run as, or "" for this process's, and the folders of installed packages."""
    user, *packages = sys.argv[1:]
    sys.path += packages
    builtins.exit, builtins.quit = Quitter("exit", "Ctrl-D"), Quitter("quit", "Ctrl-D")
    del os.environ["PYTHONPATH"]
    orders, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for end in range(3):
        os.dup2(nowhere, end)
    supervise()
    supervisor = Supervisor(orders, int(user) if user else None)
    frames.write(replies, _exit("done"))
    with suppress(OSError):  # the host has closed the connection
        while (body := frames.read(orders)) is not None:
            frames.write(replies, supervisor.carry_out(body))
    supervisor.close()
    if os.getpid() != 1:
        # Without namespaces the folder lies on disk, and the host may be dead. Unlike `shutil`, rm follows a program
        # into any depth.
        os.execvp("rm", ["rm", "-rf", os.environ["TMPDIR"]])
    os._exit(0)  # at once: nothing is left to clean up


class Supervisor:
    """Carries out orders. Starting a program ends the one before it."""

    def __init__(self, orders: int, user: int | None) -> None:
        self._orders = orders
        self._group = ProcessGroup()
        self._user = user
        self._child: Child | None = None
        self._limits = RunLimits()
        self._meter = _Meter(self._group, self._limits)

    def carry_out(self, body: bytes) -> bytes:
        """Carry out an order. The reply is what the program sent, or how it ended and its output."""
        if body[:1] == frames.DATA:
            return self._exchange(frames.to_frame(body[1:]), until_frame=True)
        order = json.loads(body[1:])
        if order["do"] == "imports":
            return _load(order["source"])
        self._limits = RunLimits(**order["limits"])
        runs = order["do"] == "run"
        roles: dict[str, Callable[..., None]] = {"program": program.serve, "asserts": asserts.check}
        function = roles.get(order["do"], program.run)
        self.close()
        self._meter = _Meter(self._group, self._limits)
        # Other processes of this user count against the kernel's limit too.
        limits = self._limits._replace(processes=self._limits.processes + order["others"])
        self._child = Child(lambda: function(**order["with"]), limits, standard=runs, user=self._user)
        sent = order["stdin"].encode("utf-8", "surrogatepass") if runs else b""
        return self._exchange(sent, until_frame=not runs)

    def close(self) -> None:
        """End the running program, with all its processes."""
        if self._child is not None:
            self._group.end(self._child.pid)
            self._child.close()
            self._child = None

    def _exchange(self, sent: bytes, *, until_frame: bool) -> bytes:
        child = self._child
        if child is None:
            return _exit("gone")
        reason = self._send(child, sent, until_frame=until_frame)
        if reason is None:
            return frames.DATA + frames.pop_frame(child.received)
        status = self._group.end(child.pid)
        self._read_rest(child)  # no writer is left, so this ends
        child.close()
        self._child = None
        if reason == "ended":
            reason = "killed" if status < 0 else "failed" if status else "done"
        return _exit(reason, bytes(child.received))

    def _send(self, child: Child, sent: bytes, *, until_frame: bool) -> str | None:
        """Send data to the child, and receive until the exchange is over: with `until_frame` as soon as the child has
        sent a whole frame; else its input is closed after `sent`, and the exchange is over when it ends.

        Returns None if a frame was received, "ended", "orphaned" if the host has closed the connection, or the limit
        that was passed.
        """
        rest, step_s = memoryview(sent), _STEP_S
        self._meter.begin_exchange()
        poll = select.poll()
        poll.register(child.source, select.POLLIN)
        poll.register(child.sink, select.POLLOUT)
        poll.register(self._orders, 0)
        while True:
            ended = self._group.ended(child.pid) is not None
            for end, _ in poll.poll(step_s * 1000):
                if end == self._orders:
                    return "orphaned"
                if end == child.sink:
                    rest = _write(child.sink, rest)
                    if not rest:
                        poll.unregister(child.sink)
                        if not until_frame:
                            child.close_input()
                elif _read_some(child) == b"":
                    poll.unregister(child.source)
                    step_s = 0.001  # it has closed its output: most likely it is about to end
            if ended:
                self._read_rest(child)
            if until_frame and frames.is_complete(child.received):
                return None
            if len(child.received) > self._limits.output_bytes:
                return "output"
            if ended:
                return "ended"
            if (limit := self._meter.passed()) is not None:
                return limit

    def _read_rest(self, child: Child) -> None:
        """Read all that the child has written, up to the limit of output."""
        while len(child.received) <= self._limits.output_bytes and _read_some(child):
            pass


def _read_some(child: Child) -> bytes | None:
    """Some of what the child has written. None if nothing is there now, and no bytes if it has closed its output."""
    try:
        part = os.read(child.source, _READ_BYTES)
    except BlockingIOError:
        return None
    child.received += part
    return part


def _exit(reason: str, output: bytes = b"") -> bytes:
    return frames.EXIT + reason.encode() + b"\n" + output


def _load(imports: str) -> bytes:
    try:
        exec(compile(imports, "imports.py", "exec", dont_inherit=True), {"__name__": "imports"})
    except Exception as error:
        return _exit("failed", f"{type(error).__name__}: {error}".encode(errors="replace"))
    return _exit("done")
