"""Sandboxes in stock: the strongest walls that this machine has, and interpreters that wait behind them.

A program waits for no interpreter to start: one is there, is used for this program alone, and another takes its place.
No more programs run at once than there are processors. What the walls stop, and what not: docs/sandbox.md.
"""

from __future__ import annotations

import asyncio
import compileall
import os
import shutil
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, islice
from types import TracebackType
from typing import Self

from podium.errors import ConfigError, GraderError
from podium.sandbox import interpreter
from podium.sandbox.cell import Cell, Ended
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.isolation import Bare, Bubblewrap, Isolation

_MOST_IN_STOCK = 8
"""Interpreters that wait, at most: each holds ten megabytes, and what it has imported."""
_TRIAL = "import colorsys; open('written', 'w').close(); print(input())"


class Sandbox:
    """Hands out cells, each for one program. What it started ends with it, at the latest with the event loop."""

    def __init__(self, walls: Isolation | None = None, *, slots: int | None = None) -> None:
        """Nothing is started yet.

        Args:
            walls: None: bubblewrap where it works, found out at the first use; else no walls, where that is allowed.
            slots: programs at once; None: as many as there are processors for us.
        """
        self._given = walls
        self._walls: Isolation | None = None
        self._slots = slots or _processors()
        self._free = asyncio.Semaphore(self._slots)
        self._trying = asyncio.Lock()
        self._weakness = "there is no bwrap on the PATH" if walls is None else "as asked for"
        self._stock: list[tuple[str, asyncio.Task[Cell]]] = []
        """Cells that wait or start, by what they import."""

    async def __aenter__(self) -> Self:
        await self.walls()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def walls(self) -> Isolation:
        """The walls that programs run behind, which have been tried.

        Raises:
            GraderError: not even an ordinary process runs a program.
        """
        async with self._trying:
            if self._walls is None:
                compileall.compile_dir(interpreter.ROOT / interpreter.PACKAGE, quiet=2)
                self._walls = await self._strongest()
        return self._walls

    async def admitted(self, *, allow_weak: bool) -> Isolation:
        """The walls, if programs may run behind them.

        Args:
            allow_weak: whether walls will do that do not hold whoever means harm.

        Raises:
            ConfigError: there are no strong walls here, and weak ones are not allowed.
            GraderError: not even an ordinary process runs a program.
        """
        walls = await self.walls()
        if walls.weak:
            self._warn_of_weakness(allow_weak)
        return walls

    @asynccontextmanager
    async def cells(
        self, imports: Sequence[str] = ("",), *, allow_weak: bool = False
    ) -> AsyncIterator[list[Cell]]:
        """Cells for one program, and a slot to run it in.

        Args:
            imports: for each of the cells that work together for it, the import statements that it is to have run.
                Those that are put in stock next have run the same, since the next program is likely to need them.
            allow_weak: whether walls will do that do not hold whoever means harm.

        Raises:
            ConfigError: there are no strong walls here, and weak ones are not allowed.
            GraderError: a sandbox cannot be started, or an import failed.
        """
        walls = await self.admitted(allow_weak=allow_weak)
        async with self._free, AsyncExitStack() as stack:
            taken = []
            for wanted in imports:
                cell = await self._take(walls, wanted)
                stack.push_async_callback(cell.close)
                await cell.load(wanted)
                taken.append(cell)
            yield taken
            # Not before: what starts now would have taken a processor from this program.
            self._restock(walls, imports)

    async def close(self) -> None:
        """End what waits; calling twice is fine."""
        stock, self._stock = self._stock, []
        for _, starting in stock:
            starting.cancel()
        for cell in await asyncio.gather(*(starting for _, starting in stock), return_exceptions=True):
            if isinstance(cell, Cell):
                await cell.close()
        if self._walls is not None:
            self._walls.close()
            self._walls = None

    def _restock(self, walls: Isolation, imports: Sequence[str]) -> None:
        missing = min(self._slots * len(imports), _MOST_IN_STOCK) - len(self._stock)
        if self._walls is walls:  # and has not been closed meanwhile
            for wanted in islice(cycle(imports), max(missing, 0)):
                self._stock.append((wanted, asyncio.create_task(Cell.start(walls, wanted))))

    async def _take(self, walls: Isolation, imports: str) -> Cell:
        """One from the stock, if it can be of the right kind, else a new one."""
        while self._stock:
            entry = min(self._stock, key=lambda entry: (entry[0] != imports, not entry[1].done()))
            self._stock.remove(entry)
            try:
                cell = await entry[1]
            except GraderError:
                continue
            if cell.alive:
                return cell
            await cell.close()
        return await Cell.start(walls)

    async def _strongest(self) -> Isolation:
        tool = shutil.which("bwrap")
        if self._given is None and tool is not None:
            try:
                return await _tried(Bubblewrap(tool))
            except GraderError as error:
                self._weakness = str(error)
        return await _tried(self._given or Bare())

    def _warn_of_weakness(self, allow_weak: bool) -> None:
        if not allow_weak:
            raise ConfigError(
                f"Programs would run without walls here ({self._weakness}); install bubblewrap, or, only for "
                "programs that you trust, set allow_weak_sandbox = true in the table of whoever runs them."
            )
        warnings.warn(
            f"Programs run WITHOUT WALLS ({self._weakness}): they can read and write your files, use the "
            "network, and deceive their grader. Install bubblewrap.",
            RuntimeWarning,
            stacklevel=3,
        )


async def _tried(walls: Isolation) -> Isolation:
    """The walls, opened, when a program has run behind them."""
    try:
        await walls.open()
        await _trial(walls)
    except OSError as error:
        walls.close()
        raise GraderError(f"A sandbox ({walls.name}) cannot be made: {error}.") from None
    except BaseException:
        walls.close()
        raise
    return walls


async def _trial(walls: Isolation) -> None:
    cell = await Cell.start(walls)
    try:
        ended = await cell.run(_TRIAL, "it works\n", Allowance())
    finally:
        await cell.close()
    if ended != Ended("done", b"it works\n"):
        raise GraderError(f"A sandbox ({walls.name}) does not run programs: {ended.how}.")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
