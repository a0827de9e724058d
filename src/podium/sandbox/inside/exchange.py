"""One exchange with a child: it is told something, and heard until it has answered, ended, or passed a limit."""

from __future__ import annotations

import os
import select
import time

from podium.sandbox.inside import frames
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.inside.child import Child
from podium.sandbox.inside.household import Household

_STEP_S = 0.02
"""Between two looks at what a program uses."""
_AT_ONCE = 2**16


class Exchange:
    """An exchange that is going on."""

    def __init__(self, child: Child, household: Household, allowance: Allowance, orders: int) -> None:
        self._orders = orders
        self._child = child
        self._household = household
        self._allowance = allowance
        self._meter = _Meter(household, allowance)

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
            ended = self._household.ended(child.pid) is not None
            for end, _ in poll.poll(step_s * 1000):
                if end == self._orders:
                    return "orphaned"
                if end == child.sink:
                    rest = _tell(child.sink, rest)
                    if not rest:
                        poll.unregister(child.sink)
                        if not until_frame:
                            child.hang_up()
                elif self._hear() == b"":
                    poll.unregister(child.source)
                    step_s = 0.001  # it has closed its side: most likely it is about to end
            if ended:
                self.hear_out()
            if until_frame and frames.whole(child.heard):
                return None
            if len(child.heard) > self._allowance.output_bytes:
                return "output"
            if ended:
                return "ended"
            if (limit := self._meter.passed()) is not None:
                return limit

    def hear_out(self) -> None:
        """Take in all that has been written and not heard yet, as far as it may be."""
        while len(self._child.heard) <= self._allowance.output_bytes and self._hear():
            pass

    def _hear(self) -> bytes | None:
        """Take in some of it; None: there is nothing now. Nothing at all: there never will be."""
        try:
            part = os.read(self._child.source, _AT_ONCE)
        except BlockingIOError:
            return None
        self._child.heard += part
        return part


class _Meter:
    """What a household has used since an exchange began, looked at from time to time."""

    def __init__(self, household: Household, allowance: Allowance) -> None:
        self._household = household
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
        usage = self._household.usage()
        # Taken at the first look and not before it: most exchanges are over by then, and are spared its cost.
        if self._cpu_before is None:
            self._cpu_before = usage.cpu_s
        if usage.cpu_s - self._cpu_before > allowance.cpu_s:
            return "time"
        if usage.memory_bytes > allowance.memory_bytes:
            return "memory"
        return "processes" if usage.processes > allowance.processes else None


def _tell(sink: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(sink, rest[:_AT_ONCE]) :] if rest else rest
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]  # it does not want to hear more
