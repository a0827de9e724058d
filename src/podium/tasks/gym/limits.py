"""What the process that runs the library may take: the kernel ends it where it takes more, whatever code it is in."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")

SECONDS_TO_MAKE = 30
"""Processor seconds for a question: rarely one takes ten, and a few would take for ever."""
SECONDS_TO_JUDGE = 3
"""Processor seconds for an answer: the slowest right ones, integrals, take a tenth of one."""
_MEMORY = 4 * 2**30
_FILE = 64 * 2**20


def confine() -> None:
    """Limit memory and the size of files from now on, and leave no picture of the memory behind."""
    for limit, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        # Not every system knows every limit.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))


def allow(seconds: int) -> None:
    """So many further processor seconds; then the process ends by SIGXCPU."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def apart(work: Callable[[], T], seconds: int) -> T:
    """Work that is done in a copy of this process, so that what it changes stays there.

    Raises:
        EOFError: the work failed, or took more than its processor seconds.
    """
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def do() -> None:
        allow(seconds)
        theirs.send(work())

    copy = context.Process(target=do, daemon=True)
    copy.start()
    theirs.close()
    try:
        result: T = ours.recv()
        return result
    finally:
        copy.kill()
        copy.join()
        ours.close()
