"""The worker protocol: whatever answers messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.types import Limits, Message, Profile, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker is asked."""

    messages: tuple[Message, ...]
    seed: str
    """Names the randomness of this call: the same seed and messages give the same simulated reply."""
    question_seed: str = ""
    """Names the randomness of the whole question."""
    repeat: int = 0
    """Steps of this question before this one that went to the same worker."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered."""

    text: str
    usage: Usage
    latency_s: float | None = None
    """Seconds that a simulated worker claims; None where the clock's own measure is the truth."""
    recorded: str | None = None
    """Which recorded response this is; None: the worker answered just now."""


@runtime_checkable
class Worker(Protocol):
    """Answers messages. One call, no retries: those are the executor's."""

    @property
    def profile(self) -> Profile:
        """Name, description and price, as a planner sees them."""
        ...

    @property
    def limits(self) -> Limits:
        """What this worker may be asked for."""
        ...

    @property
    def fallback(self) -> str | None:
        """Name of the worker in the same pool that takes over a call that failed for good."""
        ...

    async def answer(self, request: Request) -> Reply:
        """Answer, or raise `podium.errors.WorkerError`."""
        ...

    async def close(self) -> None:
        """Give back connections. Calling twice is fine."""
        ...
