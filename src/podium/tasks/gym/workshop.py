"""The processes that run the library, seen from outside: started when there is work, kept for the next, ended.

A process serves one order at a time; several serve several. They end when the workshop is forgotten or Python ends:
their input ends then, and they with it. A process that ended by its limit of processor seconds is replaced.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from weakref import finalize

from podium.errors import ConfigError, GraderError
from podium.tasks.gym.order import Draw, Order, Reply

_MOST = 4
"""Processes: each takes up to half a gigabyte."""
_PATIENCE = 300.0
"""Seconds for an order on a machine that does other work too."""
_OWN_LIMITS = (-signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit statuses of a process that its order ended: processor time, stack, memory."""
_STOPPED = "The process that runs reasoning-gym {how}; ask again."


class Workshop:
    """Makes questions and judges answers.

    Raises:
        ConfigError: the library is not installed.
    """

    def __init__(self) -> None:
        if find_spec("reasoning_gym") is None:
            raise ConfigError(
                "The task set reasoning-gym needs the library of its name; pip install 'podium-conductor[tasks]'."
            )
        self.places = min(_MOST, os.cpu_count() or 1)
        """Orders that are served at once."""
        self._idle: list[_Process] = []
        self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="reasoning-gym")
        finalize(self, _end, self._idle)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The ids of the processes that are not at work."""
        return tuple(process.id for process in self._idle)

    def names(self) -> tuple[str, ...]:
        """The generators."""
        return self._serve(Order(do="names")).names

    def make(self, draw: Draw) -> Reply:
        """The question of a draw; or why its generator does not take the settings; or that it took too long.

        Raises:
            GraderError: the process ended.
        """
        return self._serve(Order(do="make", draw=draw))

    async def judge(self, draw: Draw, answer: str, of: str) -> float:
        """1 or 0 for an answer to the question of a draw; 0 for one that takes too long to judge.

        Args:
            of: the digest of the question that was answered.

        Raises:
            GraderError: the process ended, or makes another question than the one that was answered.
        """
        # What is no text for other programs is none for the verifier.
        order = Order(do="judge", draw=draw, answer=answer.encode(errors="replace").decode(), digest=of)
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._serve, order)
        if reply.refusal:
            raise GraderError(reply.refusal)
        return reply.score

    def _serve(self, order: Order) -> Reply:
        try:
            process = self._idle.pop()
        except IndexError:
            process = _Process()
        try:
            return process.serve(order)
        finally:
            if process.obeys:
                self._idle.append(process)
            else:
                process.end()


class _Process:
    """One process, its folder and its pipes."""

    def __init__(self) -> None:
        self.obeys = True
        self._folder = TemporaryDirectory(prefix="reasoning-gym-")
        # Little of our environment: programs that the library ships run there, and keys are in ours.
        environment = {
            "HOME": self._folder.name,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "TMPDIR": self._folder.name,
        }
        self._popen = Popen(
            [sys.executable, "-m", "podium.tasks.gym.child", self._folder.name],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=self._folder.name,
            env=environment,
            start_new_session=True,
        )

    @property
    def id(self) -> int:
        return self._popen.pid

    def serve(self, order: Order) -> Reply:
        """What comes of an order; after GraderError, and when all was spent, it obeys no more."""
        self.obeys = False
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(order.model_dump_json().encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            raise GraderError(_STOPPED.format(how="ended between two orders")) from None
        line = self._line()
        if not line.endswith(b"\n"):
            status = self._popen.wait()
            if status in _OWN_LIMITS:
                return Reply(spent=True)
            raise GraderError(_STOPPED.format(how=f"ended with status {status}"))
        self.obeys = True
        return Reply.model_validate_json(line)

    def end(self) -> None:
        """End it now, and leave nothing of it."""
        # One that ended has given its id back, and it may be another's by now.
        if self._popen.poll() is None:
            os.killpg(self.id, signal.SIGKILL)
            self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                # What it was not told any more is told to nobody.
                with suppress(OSError):
                    pipe.close()
        self._folder.cleanup()

    def _line(self) -> bytes:
        """What it writes up to the end of a line, or to its own end."""
        assert self._popen.stdout is not None
        pipe = self._popen.stdout.fileno()
        until = time.monotonic() + _PATIENCE
        said = b""
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(until - time.monotonic(), 0.0))
            if not ready:
                raise GraderError(_STOPPED.format(how=f"said nothing for {_PATIENCE:.0f} s"))
            more = os.read(pipe, 1 << 16)
            if not more:
                break
            said += more
        return said


def _end(processes: list[_Process]) -> None:
    for process in processes:
        process.end()
