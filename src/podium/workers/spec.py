"""A worker as a pool file describes it: one class for each value of `kind`.

Holds only what TOML can say. `build` turns a spec into a worker, and says how a package of its own adds a kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union

from pydantic import AliasChoices, Field, create_model, field_validator, model_validator

from podium.config import Settings
from podium.types import Limits, Price, Profile
from podium.workers.chat.endpoint import check_names, check_plain, check_query


class WorkerSpec(Settings):
    """What every kind has. A kind adds `kind`, a `Literal` of its name, and keys of its own."""

    name: str = Field(min_length=1)
    profile: str = ""
    """Free text that planners read: "Strong at code and maths; dear."""
    skills: tuple[str, ...] = ()
    price: Price = Price()
    """Dollars per million tokens."""
    limits: Limits = Limits()
    fallback: str | None = None
    """Name of the worker that takes over a call that failed for good."""
    latency: float | None = Field(default=None, ge=0)
    """Typical seconds a call, shown to planners."""
    context_tokens: int | None = Field(default=None, ge=1)

    def to_profile(self, description: str = "") -> Profile:
        """The profile that planners see; `description` stands in for an empty one."""
        return Profile(
            name=self.name,
            description=self.profile or description,
            skills=self.skills,
            price=self.price,
            latency_s=self.latency,
            context_tokens=self.context_tokens,
        )


Chance = Annotated[float, Field(ge=0, le=1)]

_SECRET = re.compile(
    r"(x[-_])?api[-_]?key|authorization|password|secret|(access|auth)[-_]?token", re.IGNORECASE
)
"""Names of `extra` that hold a secret; others sound like one and are none, such as prompt_cache_key."""


class OpenAISpec(WorkerSpec):
    """An endpoint that speaks OpenAI's /chat/completions."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: str
    """Up to and without /chat/completions, as in "https://api.openai.com/v1"."""
    query: dict[str, str] = Field(default_factory=dict)
    """Added to the address, as in { api-version = "2024-10-21" }."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: no key is sent."""
    key_header: str | None = None
    """Header that takes the bare key, as Azure's "api-key"; None: Authorization, as "Bearer KEY"."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers, sent as they are; no secrets."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Further headers that are secrets: header -> name of the environment variable that holds its value."""
    sees: bool = False
    """Whether the model understands images; others are not shown any."""
    calls_tools: bool = True
    """Whether it can call the caller's tools."""
    system: str | None = None
    """The worker's own system prompt; stands before everything else."""
    temperature: float | None = Field(default=None, ge=0)
    """None: none is sent, for models that refuse one."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What the endpoint calls `limits.max_tokens`; None: the second for api.openai.com, else the first."""
    stream: bool = False
    """Whether to ask for streamed replies; needed for `limits.first_token_timeout`."""
    send_seed: bool = False
    """Whether each call sends a seed of its own, a number of 31 bits, the same when the question is asked again."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body, sent as they are: reasoning_effort, thinking, top_p, top_k, ..."""

    def to_profile(self, description: str = "") -> Profile:
        """The profile with what the model can do."""
        can = {"sees": self.sees, "calls_tools": self.calls_tools}
        return super().to_profile(description).model_copy(update=can)

    @field_validator("headers")
    @classmethod
    def _plain(cls, headers: dict[str, str]) -> dict[str, str]:
        check_plain(headers)
        return headers

    @field_validator("query")
    @classmethod
    def _open(cls, query: dict[str, str]) -> dict[str, str]:
        check_query(query)
        return query

    @field_validator("extra")
    @classmethod
    def _further(cls, extra: dict[str, Any]) -> dict[str, Any]:
        for name in extra:
            if name in ("model", "stream"):
                raise ValueError(f"{name} has a key of its own; write it beside extra.")
            if name == "messages":
                raise ValueError("messages are made for each question; leave them out.")
            if _SECRET.fullmatch(name):
                raise ValueError(f"{name!r} looks like a secret; send it as a header, by headers_env.")
        return extra

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        key = [self.key_header or "Authorization"] if self.api_key_env is not None else []
        check_names([*key, *self.headers, *self.headers_env])
        if self.key_header is not None and self.api_key_env is None:
            raise ValueError("key_header needs api_key_env; add it, or leave key_header out.")
        if self.limits.first_token_timeout is not None and not self.stream:
            raise ValueError(
                "limits.first_token_timeout needs stream = true; add it, or leave the limit out."
            )
        return self


class SpecialistSpec(WorkerSpec):
    """A simulated model that really computes."""

    kind: Literal["specialist"]
    limits: Limits = Limits(retries=0)
    """A simulated worker has no failures that pass."""
    ability: dict[str, Chance]
    """Skill -> chance of success."""
    seconds: float = Field(default=1.0, ge=0)
    """Typical seconds a call, claimed and not slept."""


class ScriptedFailure(Settings):
    """A reply that is a failed call."""

    error: str
    """Kind of the `WorkerError`, such as "timeout"."""
    message: str = "The script says so."
    retryable: bool = Field(default=False, validation_alias=AliasChoices("retryable", "passing"))
    retry_after_s: float | None = Field(default=None, ge=0)


class ScriptedSpec(WorkerSpec):
    """Replies written down beforehand."""

    kind: Literal["scripted"]
    replies: tuple[str | ScriptedFailure, ...] | dict[str, str | ScriptedFailure]
    """In the order of the calls; or by text that the subtask contains."""
    delay: float = Field(default=0.0, ge=0)
    """Seconds that each call takes."""


class ReplaySpec(WorkerSpec):
    """A recorded model, which gives the responses that it once gave."""

    kind: Literal["replay"]
    limits: Limits = Limits(retries=0)
    recording: Path
    """NAME.parquet, seen from the pool file's folder."""
    worker: str | None = None
    """Its name in the recording; None: the same."""
    samples: Literal["in turn", "random"] = "in turn"
    """Which of several responses to a question comes first; the others follow as it is asked again."""
    assumed_output_tokens: int | None = Field(default=None, ge=0)
    """Tokens of every response, in place of what the recording knows: for models whose thinking is hidden."""


class CommandSpec(WorkerSpec):
    """A program of the user's, run for each call."""

    kind: Literal["command"]
    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments; no shell. A program with a slash is seen from `folder`, another is in PATH."""
    folder: Path = Path()
    """Where it is run, seen from the pool file's folder."""
    output: Literal["text", "json"] = "text"
    """Whether it writes its answer as it is, or as { "text": ..., "usage": ..., "cost_usd": ... }."""
    env: tuple[str, ...] = ()
    """Variables that it sees, with PATH, HOME, LANG, LC_* and TMPDIR; their values are removed from its output."""
    cache: bool = False
    """Whether its answers may be kept: the same messages get the same answer, whatever the seed."""


class FunctionSpec(WorkerSpec):
    """A Python function of the user's."""

    kind: Literal["python"]
    callable: str
    """As in "package.module:function"."""
    path: Path | None = None
    """Folder of its module, seen from the pool file's folder; None: it is installed."""
    env: tuple[str, ...] = ()
    """Variables that it reads: they have to be set, and are taken for secrets in what it says."""
    cache: bool = False
    """Whether its answers may be kept: the same messages, and seed if it asks for one, get the same answer."""


class LiteLLMSpec(WorkerSpec):
    """A model behind any provider that litellm knows."""

    kind: Literal["litellm"]
    model: str = Field(min_length=1)
    """litellm's name for it, with its provider, as in "bedrock/...", "vertex_ai/..."."""
    base_url: str | None = None
    """None: the provider's own."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: litellm looks for one where it is used to."""
    env: tuple[str, ...] = ()
    """Variables that litellm reads for itself: they have to be set, and are taken for secrets in what it says."""
    system: str | None = None
    """The worker's own system prompt; stands before everything else."""
    temperature: float | None = Field(default=None, ge=0)
    """None: none is sent."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of litellm's acompletion, such as reasoning_effort, top_p, aws_region_name."""

    @field_validator("extra")
    @classmethod
    def _further(cls, extra: dict[str, Any]) -> dict[str, Any]:
        for name in extra:
            if name in ("model", "messages", "stream", "api_base", "base_url", "timeout", "num_retries"):
                raise ValueError(f"{name} is not litellm's to be told in extra; leave it out.")
            if _SECRET.search(name):
                raise ValueError(f"{name!r} looks like a secret; name its environment variable in env.")
        return extra


class VoteSpec(WorkerSpec):
    """The built-in tool that counts answers."""

    kind: Literal["vote"]
    limits: Limits = Limits(retries=0)


class CalculatorSpec(WorkerSpec):
    """The built-in tool that computes exactly."""

    kind: Literal["calculator"]
    limits: Limits = Limits(retries=0)


class CodeSpec(WorkerSpec):
    """The built-in tool that runs Python programs in the sandbox."""

    kind: Literal["code"]
    limits: Limits = Limits(retries=0)
    """What a program prints beyond `max_tokens`, four characters each, is cut off."""
    seconds: float = Field(default=6.0, gt=0)
    """Processor time of a program; three times as much by the clock."""
    memory_mb: int = Field(default=2048, ge=64)
    """Megabytes of a program with all its processes."""
    allow_weak_sandbox: bool = False
    """Whether programs run without walls where bubblewrap is not to be had: only for programs that you trust."""


AnySpec = Annotated[
    OpenAISpec
    | LiteLLMSpec
    | CommandSpec
    | FunctionSpec
    | SpecialistSpec
    | ScriptedSpec
    | ReplaySpec
    | VoteSpec
    | CalculatorSpec
    | CodeSpec,
    Field(discriminator="kind"),
]


class PoolSpec(Settings):
    """A pool file whose workers are of built-in kinds; `pool_form` makes one with others."""

    ratings: Path | None = None
    """What the workers were measured at (`podium rate`), seen from the pool file's folder."""
    conductor: dict[str, Any] = Field(default_factory=dict)
    """Who leads them; `podium.conductor.opening` reads it."""
    worker: tuple[AnySpec, ...] = ()


def pool_form(specs: Iterable[type[WorkerSpec]]) -> type[PoolSpec]:
    """The form of a pool file whose workers have these specs.

    Args:
        specs: each with a field `kind`, a `Literal` of its name.
    """
    members: Any = Union[tuple(specs)]  # noqa: UP007 - known at run time alone
    workers: Any = tuple[Annotated[members, Field(discriminator="kind")], ...]
    return create_model("PoolSpec", __base__=PoolSpec, worker=(workers, ()))
