"""A pool of processes that run reasoning-gym, and the messages to and from them: lines of JSON.

Each process serves one request at a time. The pool starts a process when no idle one is left, and keeps it for the next
request. Processes end when the pool is garbage collected or Python ends, since their input is closed then. A process
that passed its CPU limit is replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
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
from typing import Literal
from weakref import finalize

from podium.errors import ConfigError, GraderError
from podium.types import Value

_MOST = 4
"""Most processes; each takes up to half a gigabyte."""
_PATIENCE = 300.0
"""Most seconds of a request, on a busy machine."""
_OWN_LIMITS = (-signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit statuses of a process that exceeded a limit: CPU time, stack, memory."""
_STOPPED = "The process that runs reasoning-gym {how}; try again."


class GeneratorConfig(Value):
    """A generator at one difficulty."""

    generator: str
    level: int | None = None
    """Level of its curriculum. None, or a generator without a curriculum: the library's own settings."""
    settings: str = "{}"
    """Further settings of the generator, as JSON with sorted keys."""

    @property
    def name(self) -> str:
        """As in task ids: "sudoku", "sudoku-level-2", "sudoku-3fa4bc12"."""
        level = "" if self.level is None else f"-level-{self.level}"
        settings = "" if self.settings == "{}" else f"-{text_digest(self.settings)[:8]}"
        return f"{self.generator}{level}{settings}"


class SampleId(Value):
    """Names one question: the same id always gives the same question."""

    config: GeneratorConfig
    seed: int
    number: int

    @property
    def name(self) -> str:
        """As in task ids."""
        return f"{self.config.name}/{self.seed}/{self.number}"


class GeneratedSample(Value):
    """A question that a generator made."""

    question: str
    gold: str
    """A right answer; empty for the generators that store none (`process.WITHOUT_GOLD`)."""
    category: str
    difficulty: str
    """ "default", or the level of the curriculum, as in "level 2"."""
    valid: bool
    """Whether it can be used: its verifier accepts its gold answer, if it should have one."""


class ProcessRequest(Value):
    """A request to the process: one line of JSON."""

    action: Literal["names", "make", "judge"]
    sample_id: SampleId | None = None
    answer: str = ""
    text_digest: str = ""
    """Digest of the question that was answered."""


class ProcessReply(Value):
    """The reply to a request: one line of JSON."""

    names: tuple[str, ...] = ()
    sample: GeneratedSample | None = None
    score: float = 0.0
    error: str = ""
    """Why the request failed, in one sentence."""
    timed_out: bool = False
    """Whether the request used up its CPU time."""


def text_digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class ReasoningGymPool:
    """Makes questions and grades answers to them, in processes that run the library.

    Raises:
        ConfigError: the library is not installed.
    """

    def __init__(self) -> None:
        if find_spec("reasoning_gym") is None:
            raise ConfigError(
                "The task set reasoning-gym needs the library reasoning-gym; pip install 'podium-conductor[tasks]'."
            )
        self.places = min(_MOST, os.cpu_count() or 1)
        """Requests that are served at the same time."""
        self._idle: list[_Process] = []
        self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="reasoning-gym")
        finalize(self, _end, self._idle)

    @property
    def idle_processes(self) -> tuple[int, ...]:
        """The ids of the processes that wait for a request."""
        return tuple(process.id for process in self._idle)

    def names(self) -> tuple[str, ...]:
        """The names of the generators."""
        return self._serve(ProcessRequest(action="names")).names

    def make(self, sample_id: SampleId) -> ProcessReply:
        """Make a question. The reply has the question, or the error in its settings, or says that it took too long.

        Raises:
            GraderError: the process ended, though it had not passed a limit.
        """
        return self._serve(ProcessRequest(action="make", sample_id=sample_id))

    async def judge(self, sample_id: SampleId, answer: str, of: str) -> float:
        """Grade an answer to a question: 1 or 0; 0 if grading takes too long.

        Args:
            of: the digest of the question that was answered, so that no other is graded.

        Raises:
            GraderError: the process ended, or makes another question than the one that was answered.
        """
        # Lone surrogates cannot be encoded as UTF-8.
        request = ProcessRequest(
            action="judge",
            sample_id=sample_id,
            answer=answer.encode(errors="replace").decode(),
            text_digest=of,
        )
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._serve, request)
        if reply.error:
            raise GraderError(reply.error)
        return reply.score

    def _serve(self, request: ProcessRequest) -> ProcessReply:
        try:
            process = self._idle.pop()
        except IndexError:
            process = _Process()
        try:
            return process.serve(request)
        finally:
            if process.alive:
                self._idle.append(process)
            else:
                process.end()


class _Process:
    """One process, its folder and its pipes."""

    def __init__(self) -> None:
        self.alive = True
        self._folder = TemporaryDirectory(prefix="reasoning-gym-")
        # Only the variables that it needs: the library runs programs there, and the environment may hold API keys.
        environment = {
            "HOME": self._folder.name,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "TMPDIR": self._folder.name,
        }
        self._popen = Popen(
            [sys.executable, "-m", "podium.tasks.reasoning_gym.process", self._folder.name],
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

    def serve(self, request: ProcessRequest) -> ProcessReply:
        """Send a request and wait for the reply. After a GraderError or a timeout the process is dead."""
        self.alive = False
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(request.model_dump_json().encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            raise GraderError(_STOPPED.format(how="ended between two requests")) from None
        line = self._line()
        if not line.endswith(b"\n"):
            status = self._popen.wait()
            if status in _OWN_LIMITS:
                return ProcessReply(timed_out=True)
            raise GraderError(_STOPPED.format(how=f"ended with status {status}"))
        self.alive = True
        return ProcessReply.model_validate_json(line)

    def end(self) -> None:
        """Kill it, and remove its folder."""
        # If it has ended, its id may belong to another process by now.
        if self._popen.poll() is None:
            os.killpg(self.id, signal.SIGKILL)
            self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                # A write that is still buffered fails when the pipe closes.
                with suppress(OSError):
                    pipe.close()
        self._folder.cleanup()

    def _line(self) -> bytes:
        """Read until the end of a line, or until the process ends."""
        assert self._popen.stdout is not None
        pipe = self._popen.stdout.fileno()
        until = time.monotonic() + _PATIENCE
        received = b""
        while not received.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(until - time.monotonic(), 0.0))
            if not ready:
                raise GraderError(_STOPPED.format(how=f"wrote nothing for {_PATIENCE:.0f} s"))
            more = os.read(pipe, 1 << 16)
            if not more:
                break
            received += more
        return received


def _end(processes: list[_Process]) -> None:
    for process in processes:
        process.end()
