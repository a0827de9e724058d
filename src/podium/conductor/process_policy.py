"""Child processes that write the completions of small policies, several at a time on as many cores.

Each process uses one core, because threads would wait for Python's interpreter lock. A `ProcessPolicy` sends each
completion to the child with the fewest unfinished ones. Each child runs `policy_child`, which loads the policy itself
and batches its completions (`local_policy`). A completion's text does not depend on the process that writes it. Our own
process writes completions until a child is ready, and those that a child had not finished when it ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Pipe
from pathlib import Path
from threading import Lock, Thread
from typing import Self

from podium.child_process import ChildEndedError, ChildProcess, usable_cores
from podium.conductor.policy import Completion, Policy, Sampling
from podium.types import Message

_LOG = logging.getLogger("podium.conductor")
_MOST = 8
"""The most processes by default; each takes 80 MB."""
_WORTHWHILE = 100
"""With fewer plans than this, no children are started: each start takes half a second of a core."""
_KEPT = 4096
"""The size of the cache of greedy completions, which returns a completion when the same prompt comes again."""


@dataclass(frozen=True, slots=True)
class Write:
    """To a child: write a completion."""

    number: int
    folder: str
    """The checkpoint's folder."""
    messages: tuple[Message, ...]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Cancel:
    """To a child: a completion is not wanted any more."""

    number: int


@dataclass(frozen=True, slots=True)
class Written:
    """From a child: a completion, or the exception instead of it. A child first sends None, as soon as it is ready."""

    number: int
    outcome: Completion | Exception


def processes_for(plans: int) -> int:
    """How many processes write this many plans in the shortest time: one for each core, up to 8; or 1 for few plans."""
    return min(usable_cores(), _MOST) if plans >= _WORTHWHILE else 1


class PolicyProcesses:
    """The child processes that all policies of one command share. A context manager that ends them at exit.

    They start with the first policy, and end with our process, however it ends. They have a session of their own, so
    the terminal's Ctrl-C does not reach them.

    Args:
        processes: number of children; 1: no children, our own process writes.
    """

    def __init__(self, processes: int = 1) -> None:
        self._most = processes if processes > 1 else 0
        self._children: list[_Child] = []
        self._lock = Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the children that can write."""
        return tuple(child.id for child in self._children if child.ready)

    def policy(self, local: Policy, folder: Path) -> Policy:
        """A policy whose completions the children write. `local` is the same policy in our process."""
        if not self._most:
            return local
        with self._lock:
            while len(self._children) < self._most and not self._closed:
                self._children.append(_Child(self._replace))
        return ProcessPolicy(local, folder, self)

    def least_loaded(self) -> _Child | None:
        """The child with the fewest completions to write; None: none is ready."""
        ready = [child for child in self._children if child.ready]
        return min(ready, key=lambda child: child.load, default=None)

    def close(self) -> None:
        """End the children. Calling twice is fine. Our own process writes later completions."""
        with self._lock:
            self._closed = True
            children, self._children = self._children, []
        for child in children:
            child.end()

    def _replace(self, ended: _Child, reason: ChildEndedError) -> None:
        """Replace a child that ended, unless it never wrote a completion: the next would end in the same way."""
        with self._lock:
            if self._closed:
                return
            self._children.remove(ended)
            if ended.has_written:
                self._children.append(_Child(self._replace))
        _LOG.warning(
            "A process that writes plans %s; %s.",
            reason,
            "another takes its place" if ended.has_written else "the others go on",
        )


class ProcessPolicy:
    """A `Policy` whose completions the children of `PolicyProcesses` write."""

    def __init__(self, local: Policy, folder: Path, processes: PolicyProcesses) -> None:
        self._local = local
        self._folder = str(folder.resolve())
        self._processes = processes
        self._greedy: dict[tuple[tuple[Message, ...], int | None, tuple[str, ...]], Completion] = {}

    @property
    def name(self) -> str:
        return self._local.name

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion in the child with the fewest to write. If it is cancelled, the child stops writing it.

        Raises:
            UsageError: the prompt is longer than the model can read.
        """
        key = messages, sampling.max_tokens, sampling.stop
        if sampling.temperature > 0:
            return await self._write(messages, sampling)
        # A child caches only its own completions, and the same prompt may go to another child the next time.
        if key not in self._greedy:
            written = await self._write(messages, sampling)
            if len(self._greedy) >= _KEPT:
                self._greedy.clear()
            self._greedy[key] = written
        return self._greedy[key]

    async def _write(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        child = self._processes.least_loaded()
        if child is not None:
            try:
                return await child.complete(self._folder, messages, sampling)
            except ChildEndedError:
                pass
        return await self._local.complete(messages, sampling)


class _Child:
    """One child process, its pipes, and the completions that it has to write.

    Args:
        on_end: called in another thread, with this child and how it ended.
    """

    def __init__(self, on_end: Callable[[_Child, ChildEndedError], None]) -> None:
        self.ready = False
        """Whether it can write."""
        self.has_written = False
        self._on_end = on_end
        self._numbers = count()
        self._wanted: dict[int, Future[Completion]] = {}
        self._sending = Lock()
        requests, self._requests = Pipe(duplex=False)
        self._replies, replies = Pipe(duplex=False)
        with requests, replies:
            self._process = ChildProcess(
                ("-m", "podium.conductor.policy_child"), stdin=requests.fileno(), stdout=replies.fileno()
            )
        self._receiver = Thread(target=self._receive, name=f"plans of process {self.id}", daemon=True)
        self._receiver.start()

    @property
    def id(self) -> int:
        return self._process.id

    @property
    def load(self) -> int:
        """How many completions it has to write."""
        return len(self._wanted)

    async def complete(self, folder: str, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion.

        Raises:
            UsageError: the prompt is longer than the model can read.
            ChildEndedError: the process ended before it had written the completion.
        """
        number, done = next(self._numbers), Future[Completion]()
        self._wanted[number] = done
        try:
            self._send(Write(number, folder, messages, sampling))
            return await asyncio.wrap_future(done)
        finally:
            if self._wanted.pop(number, None) is not None:
                with suppress(ChildEndedError):
                    self._send(Cancel(number))

    def end(self) -> None:
        """Kill it, and wait for its end."""
        self._process.stop()
        self._receiver.join()

    def _send(self, message: Write | Cancel) -> None:
        """Send a message. A child that is ready reads at once, so this does not block for long."""
        try:
            with self._sending:
                self._requests.send(message)
        except OSError:
            raise self._process.ended() from None

    def _receive(self) -> None:
        """Receive what it writes, until it has ended."""
        with suppress(EOFError, OSError):
            self._replies.recv()
            self.ready = True
            while True:
                self._settle(self._replies.recv())
        self.ready = False
        self._process.stop()
        ended = self._process.ended()
        # From here on `_send` fails, so no completion is added that would never be written.
        for number in list(self._wanted):
            self._settle(Written(number, ended))
        with self._sending:
            self._requests.close()
        self._replies.close()
        self._process.close()
        self._on_end(self, ended)

    def _settle(self, reply: Written) -> None:
        done = self._wanted.pop(reply.number, None)
        if done is None or not done.set_running_or_notify_cancel():
            return  # it is not wanted any more
        if isinstance(reply.outcome, Exception):
            done.set_exception(reply.outcome)
        else:
            self.has_written = True
            done.set_result(reply.outcome)
