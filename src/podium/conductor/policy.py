"""The policy: the Conductor's language model, behind one small interface.

Implementations: a local checkpoint (`local_policy`) and any served model (`served_policy`).
A policy writes text. It does not know what a workflow is, and does not parse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.executor import Reservation
from podium.types import Message, Usage


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a completion is drawn."""

    temperature: float = 0.0
    """0: always the most likely token."""
    max_tokens: int | None = None
    """None: the policy's own limit, 384 for a local one, which is enough for its plans, and what its `Limits`
    say for a served one, which may think aloud."""
    seed: str = "0"
    """Names the randomness: the same seed, messages and policy give the same completion, where the policy is
    a local one."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a policy wrote."""

    text: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether it cost dollars at an unknown price."""
    saved_usd: float = 0.0
    """Dollars that it had cost when it was made, where it is from the response cache."""


@runtime_checkable
class PaidPolicy(Protocol):
    """A policy whose completions cost money or tokens of a budget."""

    def reservation(self, messages: tuple[Message, ...], sampling: Sampling) -> Reservation:
        """The most that this completion may cost."""
        ...


class Policy(Protocol):
    """Completes messages. Concurrent calls are safe."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion.

        Raises:
            WorkerError: a served policy did not answer.
            UsageError: the messages do not fit into what the policy can read.
        """
        ...
