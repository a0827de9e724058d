"""The base of all workers with their traits, and the request that a worker gets. `podium.trace` has its reply."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from podium.errors import WorkerError
from podium.spending import SpendLimit
from podium.trace import Reply
from podium.types import AnswerOptions, Limits, Message, Profile, Receipt
from podium.workers.view import WorkerView, read_view

StoppingRule = Callable[[str, Sequence[str | None]], bool]
"""A function that says whether a tool's result is certain although some responses are still to come.

Its arguments are the subtask, and the responses that the tool reads, in order. A response is None if it is still to
come, and "" if its step failed."""
AnswerKey = Callable[[str], str | None]
"""A function that returns the key of a response. Responses with equal keys count as one answer."""


@dataclass(frozen=True)
class Request:
    """One call of a worker."""

    messages: tuple[Message, ...]
    seed: str
    """Seeds the randomness of this call."""
    question_seed: str = ""
    """Seeds the randomness of the whole question."""
    earlier_calls: int = 0
    """How many earlier steps of this question went to the same worker."""
    duplicate_index: int = 0
    """Tells apart requests with the same messages, each of which has an answer of its own in the cache: for a step, how
    many earlier steps of the question sent them to the same worker; for a plan, a number made of its seed."""
    sample: int = 0
    """The number, from 0, of the request's sample among independent samples of the question."""
    fence_mark: str = ""
    """The random mark in the messages' fences. The cache ignores the mark, which is not part of the question."""
    missing_responses: tuple[int, ...] = ()
    """Positions, from 0, of the responses that the worker should see but that are missing, since their steps failed or
    were skipped. Only tools read this, and their replies are not cached."""
    options: AnswerOptions = AnswerOptions()
    """The caller's options, which override the worker's own settings. A worker ignores options that it does not
    support."""
    thoughts_suffice: bool = False
    """Whether a reply with thoughts and no answer counts as a reply. Otherwise it is a failure. A plan may be in the
    thoughts."""
    executor_view: WorkerView | None = None
    """What the executor wrote into the messages, as data. None if the executor did not write them."""
    on_text: Callable[[str], None] | None = None
    """A listener that a streaming worker calls with each piece of text. The reply has the whole text in any case."""
    on_reasoning: Callable[[str], None] | None = None
    """The listener for pieces of visible reasoning."""
    spend_limits: tuple[SpendLimit, ...] = field(default=(), compare=False)
    """The limits in which a worker that pays for its own calls (`WorkerTraits.pays_for_own_calls`) reserves dollars."""
    receipt: Receipt = field(default_factory=Receipt, compare=False, repr=False)
    """The worker adds the tokens and dollars of a call that fails or is cancelled."""

    @property
    def view(self) -> WorkerView:
        """The request as data: `executor_view`. If that is None, what the messages say."""
        return read_view(self.messages) if self.executor_view is None else self.executor_view


def seed_number(seed: str) -> int:
    """A number of 31 bits for a named seed, the same on every machine."""
    return int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1


@asynccontextmanager
async def time_limit(seconds: float, grace_s: float = 0.0) -> AsyncIterator[None]:
    """Limit a call of a worker to `seconds`.

    Args:
        grace_s: further seconds, so that a worker with a timeout of its own can say what it was waiting for.

    Raises:
        WorkerError: of kind "timeout", also if the worker itself raised a `TimeoutError`.
    """
    limit = asyncio.timeout(seconds + grace_s)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        failure = f"It raised {type(error).__name__}: {error}".rstrip(": .")
        reason = f"No answer within {seconds:g} s" if limit.expired() else failure
        raise WorkerError(f"{reason}.", kind="timeout", retryable=True) from None


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """What sort of worker a worker is. A kind of workers declares the same traits in its spec class, which is read
    before a worker is built."""

    role: Literal["model", "tool", "program"] = "program"
    """"model": a language model, which may conduct. "tool": runs no model, and works on what earlier steps gave.
    "program": anything else, such as a command or a team."""
    cost: Literal["money", "compute", "nothing"] = "money"
    """What the worker's calls cost. A model that runs here costs "compute". A tool, a script or a recording costs
    "nothing"."""
    takes_extra: bool = False
    """Whether `AnswerOptions.extra` reaches the worker's model."""
    keeps_time_limit: bool = False
    """Whether a call ends within `limits.timeout` by itself. Otherwise the caller cancels it at that time."""
    pays_for_own_calls: bool = False
    """Whether the worker reserves and settles the dollars of its calls in `Request.spend_limits`, as a team does."""
    stopping_rule: StoppingRule | None = None
    """Says whether a tool's result is certain before all responses are there. None if the tool needs all responses."""
    answer_key: AnswerKey = str
    """The key of a response for `stopping_rule`. It has the same result for two responses with equal keys."""


TOOL = WorkerTraits(role="tool", cost="nothing")
COSTLESS = WorkerTraits(cost="nothing")
"""The traits of a worker whose answers are scripted or recorded."""
ENDPOINT = WorkerTraits(role="model", takes_extra=True, keeps_time_limit=True)
LITELLM = WorkerTraits(role="model", keeps_time_limit=True)
LOCAL_MODEL = WorkerTraits(role="model", cost="compute")


class Worker(ABC):
    """The base of all that answer messages. A call is one attempt, and `podium.calls` retries.

    A class says what differs from the defaults below. The smallest worker::

        class Echo(Worker):
            profile = Profile(name="echo", description="Repeats what it is told.")

            async def answer(self, request: Request) -> Reply:
                return Reply(request.messages[-1].content, NO_USAGE)
    """

    profile: Profile
    """The worker's name, description and price, as a planner sees them."""
    limits: Limits = Limits()
    """The limits of the worker's calls: concurrency, rates, timeouts, tokens."""
    fallback: str | None = None
    """The name of the worker in the same pool that gets a call after this worker's last retry failed."""
    identity: Mapping[str, Any] | None = None
    """Everything except the messages that can change an answer (endpoint, model, sampling), as JSON without secrets.
    None if the worker's replies are not cached, since its calls cost nothing or its answers change."""
    traits: WorkerTraits = WorkerTraits()
    """Whether the worker is a model, a tool or a program, and what its calls cost."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.profile.name!r})"

    @property
    def is_tool(self) -> bool:
        """Whether the worker runs no model, and works on what earlier steps gave."""
        return self.traits.role == "tool"

    @property
    def is_costly(self) -> bool:
        """Whether a call costs money or computing time. A call of a tool, a script or a recording does not."""
        return self.traits.cost != "nothing"

    @property
    def computes_here(self) -> bool:
        """Whether the worker's model computes on this machine."""
        return self.traits.cost == "compute"

    @property
    def takes_all_cores(self) -> bool:
        """Whether the worker's model computes on all cores of this machine, so that such models should take turns."""
        return False

    @abstractmethod
    async def answer(self, request: Request) -> Reply:
        """Answer the request. A call without a reply adds what it took to `request.receipt`.

        Raises:
            WorkerError: the call failed.
        """

    async def close(self) -> None:  # noqa: B027 - most workers have nothing to close
        """Close connections. Calling twice is fine."""


def costly_workers(workers: Iterable[Worker]) -> list[Worker]:
    """The workers whose calls cost something, in order. Tools, scripted and recorded workers are left out."""
    return [worker for worker in workers if worker.is_costly]


def has_costly_workers(workers: Iterable[Worker]) -> bool:
    """Whether a call of any of the workers costs something."""
    return any(worker.is_costly for worker in workers)


def has_paid_workers(workers: Iterable[Worker]) -> bool:
    """Whether a call of any of the workers may cost money."""
    return any(worker.traits.cost == "money" for worker in workers)
