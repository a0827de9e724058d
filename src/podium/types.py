"""The small values that all packages share: messages, questions, prices, limits.

They are written to files and sent over networks, so they are frozen pydantic models, without behaviour beyond
arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

SEED_PREFIX_CHARS = 2**16
"""Only the first characters of a question seed its randomness, since hashing 10 MB takes 0.3 s. Two longer questions
with the same beginning share their randomness."""


MAX_USD = 1e9
"""The highest price of a million tokens, and of a call. Spend limits count whole nano-dollars, in 64 bits."""


IMAGE_TOKENS = 1000
"""Assumed tokens of an image."""


ANSWER_WHOLE_QUESTION = "Answer the whole question."
"""The subtask of a step that answers the whole question."""


T = TypeVar("T")


def unchecked_copy(value: T, **fields: object) -> T:
    """Neither checks that the class has these fields nor runs its `__post_init__`: a copy of a frozen dataclass without
    slots, with other values in some fields.

    For what is copied in each call: it takes a tenth of the time of `dataclasses.replace`.
    """
    copy: T = object.__new__(type(value))
    vars(copy).update(vars(value), **fields)
    return copy


class FrozenModel(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(FrozenModel):
    """A call that a model wants its caller to make."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    provider_id: str | None = None
    """The provider's own id, where `id` is another. It means something only to the worker of the message's
    `provider_state`."""
    provider_state: str = ""
    """What the provider wants back with the call, as a JSON object with the provider's keys: a thought signature. "":
    nothing."""


class ProviderState(FrozenModel):
    """What the provider of a worker wants back with a message that it wrote: signatures, its reasoning, its ids."""

    worker: str
    """The name of the worker that wrote the message. No other worker is sent the state."""
    fields: str = ""
    """Further fields of the message, as a JSON object with the provider's keys, or ""."""


class Message(FrozenModel):
    """One message of a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None
    """The participant who wrote it, where several have the same role."""
    images: tuple[str, ...] = ()
    """URLs of its images, https: or data:."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Set in messages of an assistant."""
    tool_call_id: str | None = None
    """Set in messages of a tool: the call that it answers."""
    provider_state: ProviderState | None = None
    """Set in messages of an assistant whose worker is known. The tool calls have state of their own."""


class AnswerOptions(FrozenModel):
    """The caller's sampling settings and tools, for the step that writes the answer. None leaves the worker's own
    setting."""

    max_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of the answer; the worker's own limit holds too."""
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends."""
    tools: tuple[dict[str, Any], ...] = ()
    """The caller's functions, in OpenAI's format."""
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    """Whether the model may call several tools at once."""
    response_format: dict[str, Any] | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body, for a worker that passes them on to its endpoint."""


DEFAULT_OPTIONS = AnswerOptions()


class Question(FrozenModel):
    """The user's question, with the chat history before it."""

    text: str
    history: tuple[Message, ...] = ()
    """Messages that came before the question, oldest first."""
    images: tuple[str, ...] = ()
    """URLs of images; only workers that understand images get them (`Profile.sees`)."""
    options: AnswerOptions = Field(default_factory=lambda: DEFAULT_OPTIONS)
    # A factory, since pydantic would copy a default deeply.


class Price(FrozenModel):
    """Dollars per million tokens."""

    input: float = Field(default=0.0, ge=0, le=MAX_USD, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, le=MAX_USD, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, le=MAX_USD, allow_inf_nan=False)
    """The price of input that the provider read from its own cache. Default: the price of other input."""
    cache_write: float | None = Field(default=None, ge=0, le=MAX_USD, allow_inf_nan=False)
    """The price of input that the provider wrote into its cache and bills as such. Default: the price of other
    input."""

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> dict[str, float | None]:
        # Recordings and kept answers are found by this form, so a price that nobody gave must not be part of it.
        values: dict[str, float | None] = dump(self)
        return (
            values
            if self.cache_write is not None
            else {k: v for k, v in values.items() if k != "cache_write"}
        )

    @property
    def is_known(self) -> bool:
        """Whether somebody gave the price. A price of zero that was written down is known: nothing is paid."""
        return bool(self.model_fields_set)

    @property
    def is_declared_free(self) -> bool:
        """Whether somebody wrote down that nothing is paid."""
        return self.is_known and not (self.max_input or self.output)

    @property
    def max_input(self) -> float:
        """The price of input at most, whatever the provider reads from its cache or writes into it."""
        return max(self.input, self.cached_input or 0.0, self.cache_write or 0.0)

    def cost(self, usage: Usage) -> float:
        """Dollars for `usage` at this price, or what the provider says it billed, if that is more."""
        read = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        other = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        sent = other * self.input + usage.cached_tokens * read + usage.cache_write_tokens * write
        return max((sent + usage.output_tokens * self.output) / 1e6, usage.billed_usd or 0.0)

    def spent(self, usage: Usage) -> Spent:
        """Tokens and dollars of a call at this price. It is unpriced if neither Podium nor the provider knows them."""
        unpriced = usage.tokens > 0 and usage.billed_usd is None and not self.is_known
        return Spent(usage, self.cost(usage), unpriced=unpriced)


class Usage(FrozenModel):
    """Tokens of one or more calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input tokens that the provider read from its own cache."""
    cache_write_tokens: int = 0
    """The part of the input tokens that the provider wrote into its cache, where it counts them."""
    reasoning_tokens: int = 0
    """The part of the output tokens that is reasoning."""
    estimated: bool = False
    """Whether Podium estimated any part (four characters a token), since the provider did not count it."""
    implausible: str | None = None
    """The provider's count, where it cannot be true and an estimate of Podium's stands in its place."""
    billed_usd: float | None = None
    """Dollars that the provider says it billed. None if it does not say."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            estimated=self.estimated or other.estimated,
            implausible=self.implausible or other.implausible,
            billed_usd=_sum(self.billed_usd, other.billed_usd),
        )


NO_USAGE = Usage()
"""The usage of what took no tokens."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and dollars of a call, a plan or an answer: one value from the completion to the trace."""

    usage: Usage = NO_USAGE
    cost_usd: float = 0.0
    """Dollars that were paid."""
    unpriced: bool = False
    """Whether the price of some tokens is unknown, so that `cost_usd` leaves them out."""
    saved_usd: float = 0.0
    """The dollars that replies from the response cache cost when they were made."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.usage + other.usage,
            self.cost_usd + other.cost_usd,
            self.unpriced or other.unpriced,
            self.saved_usd + other.saved_usd,
        )


@dataclass(slots=True, eq=False)
class Receipt:
    """What a call or a plan that is under way has spent so far.

    Who pays hands it over; who spends fills it in. So it can be read however the call ends.
    """

    spent: Spent = Spent()

    def add(self, spent: Spent) -> None:
        """Count what was spent besides."""
        self.spent += spent


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The tokens of all of these together."""
    return reduce(add, [*usages] or [NO_USAGE])


class Rating(FrozenModel):
    """A worker's measured accuracy and cost on questions like this one."""

    kind: str
    """The cluster of questions that this one belongs to."""
    accuracy: float
    """Share of right answers, 0 to 1."""
    cost_usd: float
    """Mean dollars an answer."""
    questions: int
    """Questions of this cluster that were measured."""


class Profile(FrozenModel):
    """A worker, as a planner sees it."""

    name: str
    description: str = ""
    """Free text, as the pool file has it: "Strong at code and maths; dear."""
    skills: tuple[str, ...] = ()
    price: Price = Price()
    latency_s: float | None = None
    """Typical seconds a call, when known."""
    context_tokens: int | None = None
    sees: bool = False
    """Whether it understands images."""
    calls_tools: bool = False
    """Whether it can call the caller's tools."""
    requires_earlier_responses: bool = False
    """Whether it works on responses that it is shown alone, as a vote does: a step that sees none has no result."""
    rating: Rating | None = None
    """The rating for the question at hand. None if the worker was not measured."""


class Limits(FrozenModel):
    """Limits of the calls of one worker. Times are in seconds, and None sets no limit."""

    concurrency: int = Field(default=32, ge=1)
    rpm: float | None = Field(default=None, ge=1)
    """The most requests a minute."""
    tpm: float | None = Field(default=None, ge=1)
    """The most tokens a minute, input and output together."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds of one attempt, from the request to the whole reply."""
    connect_timeout: float = Field(default=10.0, gt=0)
    """Seconds until the connection is open."""
    first_token_timeout: float | None = Field(default=None, gt=0)
    """Seconds until a streamed reply begins."""
    max_tokens: int = Field(default=4096, ge=1)
    max_usd: float | None = Field(default=None, ge=0, le=MAX_USD, allow_inf_nan=False)
    """The most dollars of one call, for workers whose cost does not follow from price and max_tokens."""
    retries: int = Field(default=3, ge=0)
    """Further attempts after the first, for retryable failures."""
    retry_share: float = Field(default=1.0, ge=0)
    """The most retries a call, over all questions in the last minute; ten are always allowed."""
    hedge_quantile: float | None = Field(default=None, gt=0, lt=1)
    """Quantile of recent latencies: a call that takes longer is sent a second time, and the first reply counts."""
    failures_to_open: int = Field(default=10, ge=1)
    """Failures in a row that open the circuit breaker; fewer, if no call has succeeded for as long as one timeout."""
    probe_after: float = Field(default=10.0, gt=0)
    """Seconds of cooldown before one call probes whether the worker is back."""
    host: str | None = None
    """A name for the machine whose memory the worker's model shares with other workers' models. Calls are then ordered
    so that it seldom changes models. A team that is a worker orders its own calls alone. Without it, its
    model is always loaded."""
    loaded_at_once: int = Field(default=1, ge=1)
    """How many models that machine holds at once; all its workers say the same."""
    load_s: float = Field(default=0.0, ge=0)
    """Seconds that it takes to load the model there, for estimates."""


class Budget(FrozenModel):
    """Hard limits for one question. None sets no limit."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, gt=0)
    rounds: int = Field(default=1, ge=1)
    """The most plans that are executed, one after another."""


def estimate_tokens(text: str) -> int:
    """A rough count without a tokenizer: four characters a token, rounded up."""
    return -(-len(text) // 4)


def sent_tokens(messages: Iterable[Message], options: AnswerOptions = DEFAULT_OPTIONS) -> int:
    """A rough count of the input of a call: texts, tool calls, images, tools and the schema of the answer."""
    tokens = 0
    for message in messages:
        tokens += estimate_tokens(message.content) + IMAGE_TOKENS * len(message.images)
        for call in message.tool_calls:
            tokens += estimate_tokens(call.name + call.arguments)
        if message.provider_state is not None:
            tokens += estimate_tokens(message.provider_state.fields)
    if options.tools:
        tokens += estimate_tokens(json.dumps(options.tools, ensure_ascii=False))
    if options.response_format:
        tokens += estimate_tokens(json.dumps(options.response_format, ensure_ascii=False))
    return tokens
