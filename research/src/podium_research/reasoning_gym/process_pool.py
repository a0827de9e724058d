"""A pool of processes that run reasoning-gym, and the messages to and from them: lines of JSON.

Each process serves one request at a time, in a folder of its own. Processes end when the pool is garbage collected or
Python ends. A process that passed its CPU limit is replaced.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Literal

from podium.concurrency.child_process import (
    RESOURCE_LIMIT_STATUSES,
    ChildEndedError,
    ChildPool,
    ChildProcess,
    ChildTimeoutError,
    python_environment,
    usable_cores,
)
from podium.errors import ConfigError, GraderError
from podium.types import FrozenModel

_MAX_PROCESSES = 4
"""The most processes; each takes up to half a gigabyte."""
_MAX_REQUEST_S = 300.0
"""The most seconds of a request, on a busy machine."""


class GeneratorConfig(FrozenModel):
    """A generator at one difficulty."""

    generator: str
    level: int | None = None
    """Level of its curriculum. None, or a generator without a curriculum: the library's own settings."""
    settings: str = "{}"
    """Further settings of the generator, as JSON with sorted keys."""

    @property
    def name(self) -> str:
        """The name that task ids have: "sudoku", "sudoku-level-2", "sudoku-3fa4bc12"."""
        level = "" if self.level is None else f"-level-{self.level}"
        settings = "" if self.settings == "{}" else f"-{text_digest(self.settings)[:8]}"
        return f"{self.generator}{level}{settings}"


class SampleId(FrozenModel):
    """The id of one question: the same id always gives the same question."""

    config: GeneratorConfig
    seed: int
    number: int

    @property
    def name(self) -> str:
        """The name that task ids have."""
        return f"{self.config.name}/{self.seed}/{self.number}"


class GeneratedSample(FrozenModel):
    """A question that a generator made."""

    question: str
    gold: str
    """A right answer; empty for the generators that store none (`process.WITHOUT_GOLD`)."""
    category: str
    difficulty: str
    """ "default", or the level of the curriculum, as in "level 2"."""
    valid: bool
    """Whether it can be used: its verifier accepts its gold answer, if it should have one."""


class ProcessRequest(FrozenModel):
    """A request to the process: one line of JSON."""

    action: Literal["names", "make", "judge"]
    sample_id: SampleId | None = None
    answer: str = ""
    text_digest: str = ""
    """Digest of the question that was answered."""


class ProcessReply(FrozenModel):
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
                "The task set reasoning-gym needs its library: pip install 'podium-research[reasoning-gym]'."
            )
        self._pool = ChildPool(_start, min(_MAX_PROCESSES, usable_cores()), "reasoning-gym")

    @property
    def concurrency(self) -> int:
        """Requests that are served at the same time."""
        return self._pool.max_children

    @property
    def idle_processes(self) -> tuple[int, ...]:
        """The ids of the processes that wait for a request."""
        return self._pool.idle

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
        try:
            reply = _read(await self._pool.ask(_line(request), _MAX_REQUEST_S))
        except (ChildEndedError, ChildTimeoutError) as error:
            reply = _of_failure(error)
        if reply.error:
            raise GraderError(reply.error)
        return reply.score

    def _serve(self, request: ProcessRequest) -> ProcessReply:
        try:
            return _read(self._pool.ask_and_wait(_line(request), _MAX_REQUEST_S))
        except (ChildEndedError, ChildTimeoutError) as error:
            return _of_failure(error)


def _start() -> ChildProcess:
    folder = TemporaryDirectory(prefix="reasoning-gym-")
    # Only the variables that it needs: the library runs programs there, and the environment may hold API keys.
    environment = python_environment() | {
        "HOME": folder.name,
        "PYTHONHASHSEED": "0",
        "TMPDIR": folder.name,
    }
    return ChildProcess(
        ("-m", "podium_research.reasoning_gym.process", folder.name), environment=environment, folder=folder
    )


def _line(request: ProcessRequest) -> bytes:
    return request.model_dump_json().encode()


def _read(line: bytes) -> ProcessReply:
    return ProcessReply.model_validate_json(line)


def _of_failure(error: ChildEndedError | ChildTimeoutError) -> ProcessReply:
    """The reply of a process that did not answer: it passed its own limit, or the failure is none of the answer's.

    Raises:
        GraderError: it had not passed a limit.
    """
    if isinstance(error, ChildEndedError) and error.status in RESOURCE_LIMIT_STATUSES:
        return ProcessReply(timed_out=True)
    how = f"wrote nothing for {_MAX_REQUEST_S:.0f} s" if isinstance(error, ChildTimeoutError) else str(error)
    raise GraderError(f"The process that runs reasoning-gym {how}; try again.") from None
