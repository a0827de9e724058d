"""The processes that train together. Here it is a single process. `trl.accelerated_ranks` has accelerate's
processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from podium.errors import PodiumError

T = TypeVar("T")


class Ranks:
    """A single process. A subclass stands for several processes, and overrides these methods."""

    size = 1
    index = 0

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.index == 0

    @property
    def listen_address(self) -> str:
        """The address on which the first rank listens for the others."""
        return "127.0.0.1"

    def reachable(self, url: str) -> str:
        """A service's address as the other ranks reach it."""
        return url

    def gather(self, items: list[T]) -> list[T]:
        """The items of all ranks in order, on every rank."""
        return items

    def broadcast(self, value: T) -> T:
        """The first rank's value, on every rank."""
        return value

    def wait(self) -> None:
        """Wait until every rank has called this."""

    def run_on_first(self, make: Callable[[], T]) -> T | None:
        """Call `make` on the first rank only. Returns its result there, and None on the other ranks.

        Raises:
            PodiumError: the error that `make` raised. Every rank raises it.
        """
        made: T | None = None
        failure: Any = None
        if self.is_first:
            try:
                made = make()
            except PodiumError as error:
                failure = error
        failure = self.broadcast(failure)
        if failure is not None:
            raise failure
        return made
