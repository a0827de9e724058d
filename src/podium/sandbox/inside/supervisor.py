"""The first process of a sandbox: carries out one order after another, each with exactly one reply.

It starts programs in processes of their own, passes what they read and write, and enforces their allowance. Where it is
the first of a pid namespace, no process beside it can stop it, kill it or look into it. It knows no right answers.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from podium.sandbox.inside import asserts, frames, program
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.inside.processes import Child, ProcessGroup, supervise

_STEP_S = 0.02
"""Between two looks at what a program uses."""
_AT_ONCE = 2**16


class Conversation:
    """An exchange that is going on."""

    def __init__(self, child: Child, group: ProcessGroup, allowance: Allowance, orders: int) -> None:
        self._orders = orders
        self._child = child
        self._group = group
        self._allowance = allowance
        self._meter = _Meter(group, allowance)

    def speak(self, told: bytes, *, until_frame: bool) -> str | None:
        """Tell the child, and hear it.

        Args:
            told: what it is told. Unless a frame is waited for, nothing follows it.
            until_frame: whether the exchange is over as soon as the child has said a whole frame.

        Returns:
            None: a frame is there. "ended": the child has ended. "orphaned": nobody waits for it any more. Else the
            limit that was passed.
        """
        child, rest, step_s = self._child, memoryview(told), _STEP_S
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
                            child.hang_up()
                elif self._read_some() == b"":
                    poll.unregister(child.source)
                    step_s = 0.001  # it has closed its side: most likely it is about to end
            if ended:
                self.read_rest()
            if until_frame and frames.whole(child.received):
                return None
            if len(child.received) > self._allowance.output_bytes:
                return "output"
            if ended:
                return "ended"
            if (limit := self._meter.passed()) is not None:
                return limit

    def read_rest(self) -> None:
        """Read all that the child has written, up to the limit of output."""
        while len(self._child.received) <= self._allowance.output_bytes and self._read_some():
            pass

    def _read_some(self) -> bytes | None:
        """Take in some of it; None: there is nothing now. Nothing at all: there never will be."""
        try:
            part = os.read(self._child.source, _AT_ONCE)
        except BlockingIOError:
            return None
        self._child.received += part
        return part


class _Meter:
    """What the processes have used since an exchange began, measured from time to time."""

    def __init__(self, group: ProcessGroup, allowance: Allowance) -> None:
        self._group = group
        self._allowance = allowance
        self._cpu_before: float | None = None
        self._began = self._looked = time.monotonic()

    def passed(self) -> str | None:
        """The limit that was passed, if one was."""
        now, allowance = time.monotonic(), self._allowance
        if now - self._began > allowance.wall_s:
            return "time"
        if now - self._looked < _STEP_S:
            return None
        self._looked = now
        usage = self._group.usage()
        # Taken at the first look and not before it: most exchanges are over by then, and are spared its cost.
        if self._cpu_before is None:
            self._cpu_before = usage.cpu_s
        if usage.cpu_s - self._cpu_before > allowance.cpu_s:
            return "time"
        if usage.memory_bytes > allowance.memory_bytes:
            return "memory"
        return "processes" if usage.processes > allowance.processes else None


def _write(sink: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(sink, rest[:_AT_ONCE]) :] if rest else rest
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]  # it does not want to hear more


def main() -> None:
    """Serve the orders that come in by standard input, until it is closed.

    Arguments of the command are how many processes count against the limit of processes though they run elsewhere, the
    user that programs run as (empty: the same as this process), and the folders of installed packages.
    """
    others, user, *packages = sys.argv[1:]
    sys.path += packages
    del os.environ["PYTHONPATH"]
    orders, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for end in range(3):
        os.dup2(nowhere, end)
    supervise()
    supervisor = Supervisor(orders, int(others), int(user) if user else None)
    frames.write(replies, frames.ENDED + b"ready\n")
    with suppress(OSError):  # where nobody hears the reply any more
        while (body := frames.read(orders)) is not None:
            frames.write(replies, supervisor.carry_out(body))
    supervisor.close()
    if (
        os.getpid() != 1
    ):  # where the folder is no memory that goes with us, and nobody else may be left to remove it
        import shutil  # noqa: PLC0415 - needed here alone

        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(0)  # at once: there is nothing left to be put in order


class Supervisor:
    """Carries out orders. A program that is begun ends the one before it."""

    def __init__(self, orders: int, others: int, user: int | None) -> None:
        self._orders = orders
        self._group = ProcessGroup()
        self._others = others
        self._user = user
        self._child: Child | None = None
        self._allowance = Allowance()

    def carry_out(self, body: bytes) -> bytes:
        """The reply to an order: what the program said, or how it ended and its last words."""
        if body[:1] == frames.SAID:
            return self._exchange(frames.framed(body[1:]), until_frame=True)
        order = json.loads(body[1:])
        if order["do"] == "imports":
            return _load(order["source"])
        self._allowance = Allowance(**order["allowance"])
        task = _task(order["do"], order["with"])
        if order["do"] == "run":
            self._begin(task, standard=True)
            return self._exchange(order["told"].encode("utf-8", "surrogatepass"), until_frame=False)
        self._begin(task, standard=False)
        return self._exchange(b"", until_frame=True)

    def close(self) -> None:
        """End what runs, with all that came of it."""
        if self._child is not None:
            self._group.end(self._child.pid)
            self._child.close()
            self._child = None

    def _begin(self, task: Callable[[], None], *, standard: bool) -> None:
        self.close()
        allowance = self._allowance._replace(processes=self._allowance.processes + self._others)
        self._child = Child(task, allowance, standard=standard, user=self._user)

    def _exchange(self, told: bytes, *, until_frame: bool) -> bytes:
        """Speak with the child: the reply."""
        child = self._child
        if child is None:
            return _ended("gone")
        exchange = Conversation(child, self._group, self._allowance, self._orders)
        how = exchange.speak(told, until_frame=until_frame)
        if how is None:
            return frames.SAID + frames.taken(child.received)
        status = self._group.end(child.pid)
        exchange.read_rest()  # all are dead that could write: it ends
        child.close()
        self._child = None
        if how == "ended":
            how = "killed" if status < 0 else "failed" if status else "done"
        return _ended(how, bytes(child.received))


def _ended(how: str, words: bytes = b"") -> bytes:
    return frames.ENDED + how.encode() + b"\n" + words


def _load(imports: str) -> bytes:
    try:
        exec(imports, {"__name__": "imports"})
    except Exception as error:
        return _ended("failed", f"{type(error).__name__}: {error}".encode(errors="replace"))
    return _ended("done")


def _task(kind: str, given: dict[str, Any]) -> Callable[[], None]:
    """What a child is to do."""

    def task() -> None:
        if kind == "run":
            program.run(**given)
        elif kind == "program":
            program.serve(**given)
        elif kind == "asserts":
            asserts.check(**given)
        else:
            from podium.sandbox.inside import suite  # noqa: PLC0415 - few need unittest

            suite.check_suite(**given)

    return task
