"""The weak walls, where namespaces are not to be had: an ordinary process with limits, killed with its descendants.

They stop what goes wrong by itself: endless loops and output; memory, processes and files that grow without end. They
do not stop what means harm: a program reads and writes what this user can, and may speak to the network, or kill us.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from podium.sandbox import interpreter
from podium.sandbox.enclosure import Enclosure
from podium.sandbox.process import Process


class Bare(Enclosure):
    """A process like any other, with limits."""

    name = "no walls"
    weak = True

    async def open(self) -> None:
        """Nothing is shared."""

    def close(self) -> None:
        """Nothing was."""

    def start(self, closing: ExitStack) -> Process:
        folder = tempfile.TemporaryDirectory(prefix="podium-", ignore_cleanup_errors=True)
        closing.callback(folder.cleanup)
        command = interpreter.command(interpreter.processes_of_user())
        return Process(command, interpreter.environment(interpreter.ROOT, Path(folder.name)))
