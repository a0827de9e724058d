"""The small values that all packages share: messages, questions, prices, spending, limits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

SEED_PREFIX_CHARS = 2**16
"""Only the first characters of a question seed its randomness, since hashing 10 MB takes 0.3 s."""


MAX_USD = 1e9
"""The highest price of a million tokens, and of a call. Spend limits count whole nano-dollars, in 64 bits."""


IMAGE_TOKENS = 1000
"""Assumed tokens of an image."""


ANSWER_WHOLE_QUESTION = "Answer the whole question."
"""The subtask of a step that answers the whole question."""


T = TypeVar("T")


def fast_replace(value: T, **fields: object) -> T:
    """`dataclasses.replace` for any object without slots, without its `__post_init__`. It takes a tenth of the time,
    which matters for values that each call copies."""
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
    """The provider's own id, where it differs from `id`, for the worker that wrote the message."""
    provider_state: str = ""
    """What the provider wants back with the call, such as a thought signature: a JSON object, or ""."""


class ProviderState(FrozenModel):
    """What a worker's provider wants back with a message that the worker wrote: signatures, reasoning, ids."""

    worker: str
    """The name of the worker that wrote the message. No other worker is sent the state."""
    fields: str = ""
    """Further fields of the message, as a JSON object with the provider's keys. It is "" if there are none."""


class Message(FrozenModel):
    """One message of a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None
    """The participant who wrote the message, where several have the same role."""
    images: tuple[str, ...] = ()
    """URLs of the images in the message, https: or data:."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Set in messages of an assistant."""
    tool_call_id: str | None = None
    """Set in messages of a tool: the id of the call that the message answers."""
    provider_state: ProviderState | None = None
    """Set in messages of an assistant whose worker is known. Each tool call has its own state besides."""


class AnswerOptions(FrozenModel):
    """The caller's sampling settings and tools, for the step that writes the answer. Where a field is None, the
    worker's own setting holds."""

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
    """Further keys of the request's body, which some workers send to their endpoints."""


DEFAULT_OPTIONS = AnswerOptions()


class Question(FrozenModel):
    """The user's question, with the chat history before it."""

    text: str
    history: tuple[Message, ...] = ()
    """Messages that came before the question, oldest first."""
    images: tuple[str, ...] = ()
    """URLs of images. Only workers that understand images get them (`Profile.sees`)."""
    options: AnswerOptions = Field(default_factory=lambda: DEFAULT_OPTIONS)
    # Pydantic would make a deep copy of a plain default for each question.


class Price(FrozenModel):
    """Dollars per million tokens."""

    input: float = Field(default=0.0, ge=0, le=MAX_USD, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, le=MAX_USD, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, le=MAX_USD, allow_inf_nan=False)
    """The price of input that the provider read from its own cache. Default: `input`."""
    cache_write: float | None = Field(default=None, ge=0, le=MAX_USD, allow_inf_nan=False)
    """The price of input that the provider wrote into its cache and bills separately. Default: `input`."""

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> dict[str, float | None]:
        # Recordings and cached answers are found by this form, so it must not contain a price that nobody gave.
        values: dict[str, float | None] = dump(self)
        if self.cache_write is None:
            values.pop("cache_write", None)
        return values

    @property
    def is_known(self) -> bool:
        """Whether somebody gave the price. A price of zero that was written down is known: nothing is paid."""
        return bool(self.model_fields_set)

    @property
    def is_zero(self) -> bool:
        """Whether every part is zero, since nothing is paid or nobody gave the price."""
        return not (self.max_input or self.output)

    @property
    def is_declared_free(self) -> bool:
        """Whether somebody wrote down that nothing is paid."""
        return self.is_known and self.is_zero

    @property
    def max_input(self) -> float:
        """The highest price of any input, whether the provider caches it or not."""
        return max(self.input, self.cached_input or 0.0, self.cache_write or 0.0)

    def cost(self, usage: Usage) -> float:
        """Dollars for `usage` at this price. If the provider says that it billed more, what it billed."""
        read = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        other = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        sent = other * self.input + usage.cached_tokens * read + usage.cache_write_tokens * write
        return max((sent + usage.output_tokens * self.output) / 1e6, usage.billed_usd or 0.0)

    def spent(self, usage: Usage) -> Spent:
        """Tokens and dollars of a call at this price. It is unpriced if neither Podium nor the provider knows them."""
        usd = self.cost(usage)
        unpriced = not usd and usage.tokens > 0 and usage.billed_usd is None and not self.is_known
        return Spent(usage, usd, unpriced=unpriced)


class Usage(FrozenModel):
    """Tokens of one or more calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input tokens that the provider read from its own cache."""
    cache_write_tokens: int = 0
    """The part of the input tokens that the provider wrote into its cache. 0 if the provider does not count them."""
    reasoning_tokens: int = 0
    """The part of the output tokens that is reasoning."""
    estimated: bool = False
    """Whether the provider left some tokens uncounted, so that Podium estimated them: four characters a token."""
    implausible: str | None = None
    """The provider's count, if it cannot be true. The other fields then have Podium's estimate. None otherwise."""
    billed_usd: float | None = None
    """Dollars that the provider says it billed. None if the provider does not say."""

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
"""The usage of a call that took no tokens."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens and dollars that a call, a plan or an answer took."""

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

    @property
    def paid_before(self) -> Spent:
        """The same spending as a cached answer counts it: all dollars were paid earlier."""
        return replace(self, cost_usd=0.0, saved_usd=self.cost_usd + self.saved_usd)


@dataclass(slots=True, eq=False)
class Receipt:
    """What a call or a plan that is under way has spent so far: the payer can read it even if the call fails or is
    cancelled."""

    spent: Spent = Spent()

    def add(self, spent: Spent) -> None:
        """Add what was spent."""
        self.spent += spent


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of all `usages`."""
    return reduce(add, [*usages] or [NO_USAGE])


MessageLayout = Literal["packed", "chat"]
"""How a worker sees earlier work: as fenced blocks in one message, or as exchanges of a chat."""


class Rating(FrozenModel):
    """A worker's measured accuracy and cost on questions like this one."""

    cluster: str
    """The cluster of questions to which the present question belongs."""
    accuracy: float
    """Share of right answers, 0 to 1."""
    cost_usd: float
    """Mean dollars of an answer."""
    questions: int
    """How many questions of this cluster were measured."""


class Profile(FrozenModel):
    """A worker, as a planner sees it."""

    name: str
    description: str = ""
    """Free text from the team file, such as `Strong at code and maths; dear`."""
    skills: tuple[str, ...] = ()
    price: Price = Price()
    latency_s: float | None = None
    """Typical seconds of a call. None if they are not known."""
    context_tokens: int | None = None
    sees: bool = False
    """Whether the worker understands images."""
    calls_tools: bool = False
    """Whether the worker can call the caller's tools."""
    requires_earlier_responses: bool = False
    """Whether the worker needs responses of earlier steps, as a vote does. A step that shows it none has no result."""
    runs_programs: bool = False
    """Whether the worker runs a program that it is shown, and writes none."""
    rating: Rating | None = None
    """The worker's rating for the present question. None if the worker was not measured."""


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
    hedge_quantile: float | None = Field(default=None, gt=0, lt=1)
    """A quantile of recent latencies. A call that takes longer is sent a second time, and the first reply counts."""
    failures_to_open: int = Field(default=10, ge=1)
    """Failures in a row that open the circuit breaker; fewer, if no call has succeeded for as long as one timeout."""
    probe_after: float = Field(default=10.0, gt=0)
    """Seconds of cooldown, after which a single call tests whether the worker answers again."""
    host: str | None = None
    """A name for the machine whose memory the worker's model shares with other workers' models. Podium then orders
    calls so that the machine seldom changes models. A team that is a worker orders only its own calls. Default: the
    worker's model is always loaded."""
    loaded_at_once: int = Field(default=1, ge=1)
    """How many models that machine holds at once. All workers of the machine must have the same value."""
    load_s: float = Field(default=0.0, ge=0)
    """Seconds that the machine takes to load the model, for estimates."""

    def answer_tokens(self, asked: int | None) -> int:
        """The most tokens of an answer, if the caller asks for at most so many."""
        return min(self.max_tokens, asked or self.max_tokens)


class Budget(FrozenModel):
    """Hard limits for one question. None sets no limit."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, gt=0)
    rounds: int = Field(default=1, ge=1)
    """The most plans that are run, one after another."""


def estimate_tokens(text: str) -> int:
    """A rough count without a tokenizer: four characters a token, rounded up."""
    return -(-len(text) // 4)


def sent_tokens(messages: Iterable[Message], options: AnswerOptions = DEFAULT_OPTIONS) -> int:
    """A rough count of the input of a call: texts, tool calls, images, tools and the schema of the answer."""
    tokens = 0
    for message in messages:
        tokens += estimate_tokens(message.content) + IMAGE_TOKENS * len(message.images)
        for call in message.tool_calls:
            tokens += estimate_tokens(call.name + call.arguments + call.provider_state)
        if message.provider_state is not None:
            tokens += estimate_tokens(message.provider_state.fields)
    for sent in filter(None, (options.tools, options.response_format, options.extra)):
        tokens += estimate_tokens(json.dumps(sent, ensure_ascii=False))
    return tokens
