"""Keeps sandboxes ready, so that no program waits for an interpreter to start.

The sandboxes have the strongest isolation that works on this machine; docs/sandbox.md says what it stops, and what it
does not. Each sandbox runs one program alone; when that has ended, the pool starts a new sandbox. No more programs run
at once than there are processors.
"""

from __future__ import annotations

import asyncio
import compileall
import shutil
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import cycle, islice

from podium.concurrency.child_process import usable_cores
from podium.errors import ConfigError, GraderError
from podium.sandbox import interpreter
from podium.sandbox.inside.run_limits import RunLimits
from podium.sandbox.isolation import Bubblewrap, Isolation, PlainProcess
from podium.sandbox.sandbox import ProgramExit, Sandbox

_MAX_READY = 8
"""Interpreters that wait, at most: each holds ten megabytes, and what it has imported."""
_TEST_PROGRAM = "import colorsys; open('written', 'w').close(); print(input())"


async def open_sandboxes(isolation: Isolation | None = None) -> AsyncGenerator[SandboxPool]:
    """A pool that is closed afterwards, for `PerLoop`: a waiting sandbox belongs to one event loop."""
    async with aclosing(SandboxPool(isolation)) as pool:
        yield pool


class SandboxPool:
    """Lends sandboxes, each for one program. All that it started ends with it, at the latest with the event loop.

    Args:
        isolation: by default the first use tries bubblewrap; where that fails, programs run without isolation, if the
            caller allows it.
        slots: programs at once. Default: the number of processors that this process may use.
    """

    def __init__(self, isolation: Isolation | None = None, *, slots: int | None = None) -> None:
        self._wanted = isolation
        self._isolation: Isolation | None = None
        self._slots = slots or usable_cores()
        self._free = asyncio.Semaphore(self._slots)
        self._choosing = asyncio.Lock()
        self._weakness = "there is no bwrap on the PATH" if isolation is None else "as requested"
        self._ready: list[tuple[str, asyncio.Task[Sandbox]]] = []
        """Sandboxes that wait or start, each with its import statements."""

    async def isolation(self) -> Isolation:
        """The isolation that programs run under; a test program has run under it.

        Raises:
            GraderError: no isolation runs a program here, not even a plain process.
        """
        async with self._choosing:
            if self._isolation is None:
                compileall.compile_dir(interpreter.ROOT / interpreter.PACKAGE, quiet=2)
                self._isolation = await self._open_strongest()
        return self._isolation

    async def checked_isolation(self, *, allow_weak: bool) -> Isolation:
        """The isolation, if it is strong enough for the caller.

        Raises:
            ConfigError: there is no strong isolation here, and a weak one is not allowed.
            GraderError: no isolation runs a program here, not even a plain process.
        """
        isolation = await self.isolation()
        if isolation.weak and not allow_weak:
            raise ConfigError(
                f"Programs would run without isolation here ({self._weakness}); install bubblewrap, or, only for "
                "programs that you trust, set allow_weak_sandbox = true in the table of the grader or worker."
            )
        if isolation.weak:
            warnings.warn(
                f"Programs run WITHOUT ISOLATION ({self._weakness}): they can read and write your files, use the "
                "network, and deceive their grader. Install bubblewrap.",
                RuntimeWarning,
                stacklevel=2,
            )
        return isolation

    @asynccontextmanager
    async def acquire(
        self, imports: Sequence[str] = ("",), *, allow_weak: bool = False
    ) -> AsyncIterator[list[Sandbox]]:
        """Wait for a slot, and lend sandboxes for one program: one for each item of `imports`, which has its import
        statements. Sandboxes that are started next run the same imports, since the next program is likely to need them.
        Raises what `checked_isolation` does, and `GraderError` if a sandbox cannot be started, or an import failed."""
        isolation = await self.checked_isolation(allow_weak=allow_weak)
        async with self._free, AsyncExitStack() as stack:
            taken = []
            for wanted in imports:
                sandbox = await self._take(isolation, wanted)
                stack.push_async_callback(sandbox.close)
                await sandbox.load(wanted)
                taken.append(sandbox)
            yield taken
            # After the program, since starting interpreters would have taken a processor from it.
            self._refill(isolation, imports)

    async def aclose(self) -> None:
        """End the sandboxes that wait; calling twice is fine."""
        ready, self._ready = self._ready, []
        for _, starting in ready:
            starting.cancel()
        for sandbox in await asyncio.gather(*(starting for _, starting in ready), return_exceptions=True):
            if isinstance(sandbox, Sandbox):
                await sandbox.close()
        if self._isolation is not None:
            self._isolation.close()
            self._isolation = None

    def _refill(self, isolation: Isolation, imports: Sequence[str]) -> None:
        missing = min(self._slots * len(imports), _MAX_READY) - len(self._ready)
        if self._isolation is isolation:  # the pool was not closed meanwhile
            for wanted in islice(cycle(imports), max(missing, 0)):
                self._ready.append((wanted, asyncio.create_task(Sandbox.start(isolation, wanted))))

    async def _take(self, isolation: Isolation, imports: str) -> Sandbox:
        """A waiting sandbox, if possible one with these imports; a new one where none waits."""
        while self._ready:
            entry = min(self._ready, key=lambda entry: (entry[0] != imports, not entry[1].done()))
            self._ready.remove(entry)
            try:
                sandbox = await entry[1]
            except GraderError:
                continue
            if sandbox.alive:
                return sandbox
            await sandbox.close()
        return await Sandbox.start(isolation)

    async def _open_strongest(self) -> Isolation:
        tool = shutil.which("bwrap")
        if self._wanted is None and tool is not None:
            try:
                return await _open_tested(Bubblewrap(tool))
            except GraderError as error:
                self._weakness = str(error)
        return await _open_tested(self._wanted or PlainProcess())


async def _open_tested(isolation: Isolation) -> Isolation:
    try:
        await isolation.open()
        await _run_test_program(isolation)
    except BaseException as error:
        isolation.close()
        if isinstance(error, OSError):
            raise GraderError(f"A sandbox ({isolation.name}) cannot be made: {error}.") from None
        raise
    return isolation


async def _run_test_program(isolation: Isolation) -> None:
    sandbox = await Sandbox.start(isolation)
    try:
        ended = await sandbox.run(_TEST_PROGRAM, "it works\n", RunLimits())
    finally:
        await sandbox.close()
    if ended != ProgramExit("done", b"it works\n"):
        raise GraderError(f"A sandbox ({isolation.name}) does not run programs: {ended.reason}.")
