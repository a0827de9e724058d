"""What a fault is: a value that a rule or a file names, and that serves the requests it is given.

The faults themselves are the other files here; which request gets one is rule.py.
"""

from __future__ import annotations

from abc import abstractmethod

from podium.config import Settings
from podium.testing.exchange import Exchange


class Fault(Settings):
    """What a request gets in place of a good reply, or how the good reply comes."""

    kind: str
    """The word for it in files and records."""

    @abstractmethod
    async def serve(self, exchange: Exchange) -> None:
        """Reply, or fail to. It may be cancelled wherever it waits."""
