"""Compares mathematics in processes (`math_process`): a few for each event loop, started when needed.

Processes are kept, since loading SymPy takes a second, and end with their event loop. A process that exceeded its
limits, died, or was left in the middle of a comparison is replaced.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium.child_process import (
    RESOURCE_LIMIT_STATUSES,
    ChildEndedError,
    ChildPool,
    ChildProcess,
    ChildSilentError,
    usable_cores,
)
from podium.errors import ConfigError, GraderError
from podium.per_loop import PerLoop

_START_S = 120.0
"""Seconds to start: loading takes one or two, and longer on a machine that swaps."""
_STARVED, _STARVED_S = 20.0, 30.0
"""A process hangs if a comparison takes this many times its processor time, plus this many seconds."""
_PROGRAM = str(Path(__file__).with_name("math_process.py"))
"""Run as a file: as a module it would load all of `podium.tasks` first."""


class MathVerifier:
    """Compares mathematics in a free process, or in a new one while there are fewer than cores."""

    def __init__(self) -> None:
        self._pools = PerLoop(_open_pool)

    async def compare(self, question: dict[str, Any], seconds: float) -> bool | None:
        """Whether an answer equals the gold answer, as `math_process.equal` says with the arguments `question`, in so
        many seconds of processor time. None if the limits of time or memory were exceeded. Raises `ConfigError` if
        Math-Verify is not installed; `GraderError` if no process could be started, or one ended by something else than
        its limits."""
        pool = await self._pools.get()
        line = json.dumps(question | {"seconds": seconds}).encode()
        try:
            verdict: bool | None = json.loads(await pool.ask(line, _STARVED_S + _STARVED * seconds))
        except ChildSilentError:
            raise GraderError("a process that compares mathematics hangs; ask again.") from None
        except ChildEndedError as error:
            if error.status in RESOURCE_LIMIT_STATUSES:
                return None
            raise GraderError(f"a process that compares mathematics {error}; ask again.") from None
        return verdict


async def _open_pool() -> AsyncGenerator[ChildPool]:
    pool = ChildPool(_start, usable_cores(), "mathematics")
    try:
        yield pool
    finally:
        pool.close()


def _start() -> ChildProcess:
    if find_spec("math_verify") is None:
        raise ConfigError(
            "comparing mathematics needs Math-Verify; install it: pip install 'podium-conductor[tasks]'."
        )
    child = ChildProcess((_PROGRAM,))
    try:
        child.read_line(_START_S)
    except (ChildEndedError, ChildSilentError) as error:
        child.close()
        raise GraderError(
            f"a process that compares mathematics did not start: it {error or 'hangs'}."
        ) from None
    return child
