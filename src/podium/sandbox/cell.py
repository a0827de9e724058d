"""One sandbox, from outside: an interpreter that waits behind walls, and is used for one program.

What comes out of it is bounded, and is data: nothing of it is run here.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, Self

from podium.errors import GraderError
from podium.sandbox.inside import frames
from podium.sandbox.inside.allowance import MIB, Allowance
from podium.sandbox.isolation import Isolation

Role = Literal["program", "asserts", "suite"]
"""Whom a conversation is held with: a server of a program's functions, plain tests, or a suite of tests."""

_START_S = 60.0
"""For an interpreter to start, or for imports, on a machine that is busy."""
_GRACE_S = 10.0
"""For a sandbox to see that a limit was passed."""
_LONGEST = 256 * MIB
"""Bytes of a reply, whatever a sandbox says."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A program is no more."""

    how: str
    """"done"; "failed" (it raised, or left with another status than 0); "killed" (by a signal); or the limit that it
    passed: "time", "memory", "processes", "output"."""
    words: bytes = b""
    """What it had written."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said in a conversation that goes on."""

    words: bytes


class Cell:
    """A sandbox. It takes one order after another, and dies with the first that it cannot answer."""

    def __init__(self, walls: Isolation) -> None:
        """Start it; `start` also waits until it is ready.

        Raises:
            OSError: it cannot be started.
        """
        self._walls = walls
        with ExitStack() as closing:
            self._process = walls.start(closing)
            self._closing = closing.pop_all()
        self._loaded = ""
        self._wall_s = 0.0

    @classmethod
    async def start(cls, walls: Isolation, imports: str = "") -> Self:
        """One that is ready for orders.

        Args:
            imports: statements that it has run, so that programs find these modules loaded.

        Raises:
            GraderError: it did not start, or an import failed; the message has the last words.
        """
        try:
            cell = cls(walls)
        except OSError as error:
            raise GraderError(f"A sandbox ({walls.name}) cannot be started: {error}.") from None
        try:
            await cell._receive(_START_S)
            await cell.load(imports)
        except BaseException:
            await cell.close()
            raise
        return cell

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.alive

    async def close(self) -> None:
        """End it, and all that runs in it."""
        try:
            await self._process.end()
        finally:
            self._closing.close()

    async def load(self, imports: str) -> None:
        """Import what programs are going to need.

        Raises:
            GraderError: that failed.
        """
        if imports == self._loaded:
            return
        ended = await self._order({"do": "imports", "source": imports}, _START_S)
        self._loaded = imports
        if ended != Ended("done"):
            raise GraderError(f"What is needed to run the program is not here: {_text(ended.words)}.")

    async def run(
        self, source: str, told: str, allowance: Allowance, prelude: str = "", *, tell: bool = False
    ) -> Ended:
        """Run a program as a script.

        Args:
            prelude: source that runs before it, in its place.
            told: its standard input.
            tell: whether its output ends with what it raised, if it raised, behind `inside.program.RAISED`.

        Returns:
            How it ended, and its standard output.

        Raises:
            GraderError: the sandbox failed, whatever the program is.
        """
        given = {"source": source, "prelude": prelude, "tell": tell}
        order = {"do": "run", "with": given, "told": told, "allowance": allowance._asdict()}
        received = await self._order(order, allowance.wall_s + _GRACE_S)
        if isinstance(received, Said):
            raise GraderError("A sandbox spoke out of turn.")
        return received

    async def open(self, role: Role, given: dict[str, Any], allowance: Allowance) -> Said | Ended:
        """Begin a conversation, and hear the first that is said.

        Args:
            role: whom it is held with.
            given: what it is told, by the names of its arguments.
            allowance: for each exchange.

        Raises:
            GraderError: the sandbox failed, whatever the program is.
        """
        self._wall_s = allowance.wall_s + _GRACE_S
        order = {"do": role, "with": given, "allowance": allowance._asdict()}
        return await self._order(order, self._wall_s)

    async def say(self, words: bytes) -> Said | Ended:
        """Go on with the conversation, and hear what is said next.

        Raises:
            GraderError: the sandbox failed, whatever the program is.
        """
        return await self._send(frames.SAID + words, self._wall_s)

    async def _order(self, order: dict[str, Any], seconds: float) -> Said | Ended:
        return await self._send(frames.ORDER + json.dumps(order).encode(), seconds)

    async def _send(self, body: bytes, seconds: float) -> Said | Ended:
        try:
            return await self._receive(seconds, told=frames.framed(body))
        except GraderError:
            if self._walls.weak:
                return Ended("killed")  # by the program, which weak walls allow
            raise

    async def _receive(self, seconds: float, told: bytes = b"") -> Said | Ended:
        try:
            async with asyncio.timeout(seconds):
                await self._process.write(told)
                size = int.from_bytes(await self._process.read(frames.HEAD), "big")
                body = await self._process.read(min(size, _LONGEST))
        except (OSError, TimeoutError):
            last_error = self._process.last_error() or "it said nothing"
            raise GraderError(f"A sandbox ({self._walls.name}) failed: {last_error}.") from None
        if body[:1] == frames.SAID:
            return Said(body[1:])
        how, _, words = body[1:].partition(b"\n")
        return Ended(how.decode(errors="replace"), words)


def _text(words: bytes) -> str:
    """The last line, in which tools say what is wrong."""
    return words.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")[:300]
