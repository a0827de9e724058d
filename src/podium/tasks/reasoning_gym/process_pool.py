"""The pool of processes that run reasoning-gym, and the messages that it exchanges with them: lines of JSON.

A process serves one request at a time; several serve several. A process is started when there is work, kept for the
next request, and ends when the pool is garbage collected or Python ends, because its input ends then. A process that
ended by its limit of processor time is replaced.
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


class GeneratorConfig(Value):
    """A generator at one difficulty."""

    generator: str
    level: int | None = None
    """Of its curriculum; None, and for a generator without one: the library's own settings."""
    config: str = "{}"
    """Further settings of the generator, as JSON with sorted keys."""

    @property
    def name(self) -> str:
        """As task ids have it: "sudoku", "sudoku-level-2", "sudoku-3fa4bc12"."""
        level = "" if self.level is None else f"-level-{self.level}"
        settings = "" if self.config == "{}" else f"-{text_digest(self.config)[:8]}"
        return f"{self.generator}{level}{settings}"


class SampleId(Value):
    """The name of one question: it gives that question for ever."""

    generator_config: GeneratorConfig
    seed: int
    number: int

    @property
    def name(self) -> str:
        """As task ids have it."""
        return f"{self.generator_config.name}/{self.seed}/{self.number}"


class GeneratedSample(Value):
    """A question that was made."""

    question: str
    gold: str
    """An answer that is right; empty for the generators that know none (`library.WITHOUT_GOLD`)."""
    category: str
    difficulty: str
    """ "default", or the level of the curriculum, as in "level 2"."""
    valid: bool
    """Whether it may be asked: its gold answer, where it should have one, is right by its own verifier."""


class ProcessRequest(Value):
    """What is to be done."""

    action: Literal["names", "make", "judge"]
    sample_id: SampleId | None = None
    answer: str = ""
    text_digest: str = ""
    """Of the question that was answered."""


class ProcessReply(Value):
    """What came of it."""

    names: tuple[str, ...] = ()
    sample: GeneratedSample | None = None
    score: float = 0.0
    error: str = ""
    """Why it is not done, in one sentence."""
    timed_out: bool = False
    """Whether it took all the processor seconds that there are for it."""


def text_digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_MOST = 4
"""Processes: each takes up to half a gigabyte."""
_PATIENCE = 300.0
"""Seconds for an order on a machine that does other work too."""
_OWN_LIMITS = (-signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit statuses of a process that its order ended: processor time, stack, memory."""
_STOPPED = "The process that runs reasoning-gym {how}; ask again."


class ReasoningGymPool:
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
    def idle_processes(self) -> tuple[int, ...]:
        """The ids of the processes that are not at work."""
        return tuple(process.id for process in self._idle)

    def names(self) -> tuple[str, ...]:
        """The generators."""
        return self._serve(ProcessRequest(action="names")).names

    def make(self, sample_id: SampleId) -> ProcessReply:
        """The question of a draw; or why its generator does not take the settings; or that it took too long.

        Raises:
            GraderError: the process ended.
        """
        return self._serve(ProcessRequest(action="make", sample_id=sample_id))

    async def judge(self, sample_id: SampleId, answer: str, of: str) -> float:
        """1 or 0 for an answer to the question of a draw; 0 for one that takes too long to judge.

        Args:
            of: the digest of the question that was answered.

        Raises:
            GraderError: the process ended, or makes another question than the one that was answered.
        """
        # What is no text for other programs is none for the verifier.
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
        """What comes of an order; after GraderError, and when all was spent, it obeys no more."""
        self.alive = False
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(request.model_dump_json().encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            raise GraderError(_STOPPED.format(how="ended between two orders")) from None
        line = self._line()
        if not line.endswith(b"\n"):
            status = self._popen.wait()
            if status in _OWN_LIMITS:
                return ProcessReply(timed_out=True)
            raise GraderError(_STOPPED.format(how=f"ended with status {status}"))
        self.alive = True
        return ProcessReply.model_validate_json(line)

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
