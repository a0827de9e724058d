"""The worker protocol: what every worker has, and the request that it gets. Its reply is part of the trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import AnswerOptions, Limits, Message, Profile, Receipt
from podium.workers.spend_limit import SpendLimit
from podium.workers.view import WorkerView, read_view


@dataclass(frozen=True)
class Request:
    """One call of a worker."""

    messages: tuple[Message, ...]
    seed: str
    """Seeds the randomness of this call."""
    question_seed: str = ""
    """Seeds the randomness of the whole question."""
    earlier_calls: int = 0
    """Steps of this question before this one that went to the same worker."""
    earlier_duplicates: int = 0
    """Steps of this question before this one that sent the same worker the same messages. The cache keeps an answer for
    each."""
    sample: int = 0
    """Which of several independent samples of this question it belongs to, from 0."""
    fence_mark: str = ""
    """The random mark in the messages' fences. The cache ignores it: it is no part of the question."""
    missing: tuple[int, ...] = ()
    """Positions, from 0, of the responses that the worker should see but that do not exist, since their steps failed or
    were skipped. Only tools read this, whose replies are not cached."""
    options: AnswerOptions = AnswerOptions()
    """They win over the worker's own settings. A worker ignores those that it does not have."""
    thoughts_alone: bool = False
    """Whether a reply that has thoughts and no answer is a reply, and not a failure: a plan may stand in thoughts."""
    executor_view: WorkerView | None = None
    """What the executor wrote into the messages, as data. None if they do not come from the executor."""
    on_text: Callable[[str], None] | None = None
    """Workers that stream call it with each piece of text; the reply has the whole text in any case."""
    on_reasoning: Callable[[str], None] | None = None
    """The same for the visible reasoning."""
    spend_limits: tuple[SpendLimit, ...] = field(default=(), compare=False)
    """The dollars from which a worker that pays for its own calls (`Traits.pays_for_own_calls`) makes each of them."""
    receipt: Receipt = field(default_factory=Receipt, compare=False, repr=False)
    """In it the worker counts the tokens and dollars of a call that fails or is cancelled."""

    @property
    def view(self) -> WorkerView:
        """The request as data: `executor_view`, or else parsed from the messages."""
        return read_view(self.messages) if self.executor_view is None else self.executor_view


def seed_number(seed: str) -> int:
    """The number of a named seed: 31 bits, the same on every machine."""
    return int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1


@asynccontextmanager
async def time_limit(seconds: float, grace_s: float = 0.0) -> AsyncIterator[None]:
    """Limit a call of a worker to `seconds`.

    Args:
        grace_s: seconds more, so that a worker that keeps the limit itself can say what it was waiting for.

    Raises:
        WorkerError: of kind "timeout".
    """
    try:
        async with asyncio.timeout(seconds + grace_s):
            yield
    except TimeoutError:
        raise WorkerError(f"No answer within {seconds:g} s.", kind="timeout", retryable=True) from None


@runtime_checkable
class Worker(Protocol):
    """Answers messages. A call is one attempt; `podium.calls` retries.

    One that is a model or a tool, or whose calls cost no money, says so in a further attribute `traits`
    (`podium.workers.traits`). The smallest one::

        @dataclass(frozen=True)
        class Echo:
            profile: Profile = Profile(name="echo", description="Repeats what it is told.")
            limits: Limits = Limits()
            fallback: str | None = None
            identity: Mapping[str, Any] | None = None

            async def answer(self, request: Request) -> Reply:
                return Reply(request.messages[-1].content, NO_USAGE)

            async def close(self) -> None:
                pass
    """

    @property
    def profile(self) -> Profile:
        """Name, description and price, as a planner sees them."""
        ...

    @property
    def limits(self) -> Limits:
        """Limits of its calls: concurrency, rates, timeouts, tokens."""
        ...

    @property
    def fallback(self) -> str | None:
        """Name of the worker in the same pool that gets a call after its last retry failed here."""
        ...

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """All besides the messages that can change an answer (endpoint, model, sampling), as JSON without secrets.

        None if its replies are not cached, since its calls cost nothing or its answers change.
        """
        ...

    async def answer(self, request: Request) -> Reply:
        """Answer, or raise `podium.errors.WorkerError`; what a call without a reply took stands in the receipt."""
        ...

    async def close(self) -> None:
        """Close connections. Calling twice is fine."""
        ...
