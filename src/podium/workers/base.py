"""The worker protocol: whatever answers messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from podium.trace import Trace, VoteCount
from podium.types import AnswerOptions, Limits, Message, Profile, ToolCall, Usage
from podium.workers.view import View, read_view


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
    sample: int = 0
    """Which independent answering of this question it belongs to."""
    mark: str = ""
    """The random mark in the messages' fences; it says nothing, and is no part of what is asked."""
    missing: tuple[int, ...] = ()
    """Places, from 0, among the responses that it was to see, of those that there are not: their steps failed, or were
    not asked. Tools look at it, which no cache keeps answers of; to others it says nothing."""
    options: AnswerOptions = AnswerOptions()
    """Over the worker's own; a worker without tools or temperature has no use for them."""
    structured: View | None = None
    """What the messages say, as data. None: the executor did not write them."""
    on_text: Callable[[str], None] | None = None
    """Told the text piece by piece as it is written, by workers that can; their reply is the whole all the same."""

    @property
    def view(self) -> View:
        """What the worker is shown: from the executor as data, else read out of the messages."""
        return read_view(self.messages) if self.structured is None else self.structured


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered."""

    text: str
    usage: Usage
    latency_s: float | None = None
    """Seconds that a simulated worker claims; None where the clock's own measure is the truth."""
    recorded: str | None = None
    """Which recorded response this is; None: the worker answered just now."""
    finish: str | None = None
    """Why the text ends, in the provider's word; "length": it was cut off at max_tokens."""
    model: str | None = None
    """The model that the provider says answered."""
    first_token_s: float | None = None
    """Seconds until a streamed reply began."""
    cost_usd: float | None = None
    """Dollars, where they are not told by usage and price."""
    cached: bool = False
    """From the response cache: it costs nothing now."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that the worker wants made by whoever asked."""
    votes: VoteCount | None = None
    """Of a vote that was decided."""
    nested: Trace | None = None
    """What another team did to answer, where the worker is one."""

    def price(self, profile: Profile) -> float:
        """Dollars that this reply cost when it was made by the worker of `profile`."""
        return profile.price.cost(self.usage) if self.cost_usd is None else self.cost_usd


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

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """All but the messages that can change an answer (endpoint, model, sampling), as JSON has it, without secrets.

        None: it is not worth a cache, since asking it costs nothing.
        """
        ...

    async def answer(self, request: Request) -> Reply:
        """Answer, or raise `podium.errors.WorkerError`."""
        ...

    async def close(self) -> None:
        """Give back connections. Calling twice is fine."""
        ...


@runtime_checkable
class Decider(Protocol):
    """A tool whose result may be certain before all that it is to see is there."""

    def is_certain(self, subtask: str, responses: Sequence[str | None]) -> bool:
        """Whether its result is the same whatever those say that are still to come.

        Args:
            responses: that it is to see, in order; None: still to come, "": there is none, for its step failed.
        """
        ...
