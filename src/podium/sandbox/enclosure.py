"""The walls of a sandbox: how an interpreter is started so that it cannot reach what is not its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack

from podium.sandbox.process import Process


class Enclosure(ABC):
    """A kind of walls."""

    name: str
    weak: bool
    """Whether a program could leave it: read and write what we can, speak to the network, kill us."""

    @abstractmethod
    async def open(self) -> None:
        """Prepare what all sandboxes share.

        Raises:
            OSError: this system does not let us.
        """

    @abstractmethod
    def close(self) -> None:
        """Give it back."""

    @abstractmethod
    def start(self, closing: ExitStack) -> Process:
        """Start an interpreter that waits for orders on its standard input.

        Args:
            closing: learns what is to be given back when it has ended.

        Raises:
            OSError: it cannot be started.
        """
