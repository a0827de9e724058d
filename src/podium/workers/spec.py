"""The tables of a team file: one class for each value of `kind`.

A class only describes a worker. `build` makes a worker from a spec, and says how another package adds a kind.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from podium.config import Settings
from podium.errors import WorkerErrorKind
from podium.types import Limits, Price, Profile
from podium.workers.base import COSTLESS, ENDPOINT, LITELLM, LOCAL_MODEL, TOOL, WorkerTraits
from podium.workers.chat.endpoint import check_names, check_plain, check_query


def _check_one_line(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{name!r} has a line break or control character; write a name on one line.")
    return name


class WorkerSpec(Settings):
    """The keys of every kind. A kind narrows `kind` to a `Literal` of its name, and adds its own keys."""

    traits: ClassVar[WorkerTraits] = WorkerTraits()
    """The traits of workers of this kind."""
    requires_earlier_responses: ClassVar[bool] = False
    """Whether workers of this kind need responses of earlier steps (`Profile.requires_earlier_responses`)."""
    runs_programs: ClassVar[bool] = False
    """Whether workers of this kind run a program that they are shown (`Profile.runs_programs`)."""
    description: ClassVar[str] = ""
    """What planners read if `profile` is empty."""
    kind: str
    name: Annotated[str, AfterValidator(_check_one_line)] = Field(min_length=1)
    profile: str = ""
    """Free text that planners read, such as `Strong at code and maths; dear`."""
    skills: tuple[str, ...] = ()
    price: Price = Price()
    """Dollars per million tokens."""
    limits: Limits = Limits()
    fallback: str | None = None
    """Name of the worker that gets a call after its last retry failed."""
    latency: float | None = Field(default=None, ge=0)
    """Typical seconds of a call, which planners see."""
    context_tokens: int | None = Field(default=None, ge=1)

    @property
    def path_keys(self) -> frozenset[str]:
        """Keys of this worker whose text is a path, and no name."""
        return frozenset()

    def to_profile(self) -> Profile:
        """The profile that planners see."""
        return Profile(
            name=self.name,
            description=self.profile or self.description,
            skills=self.skills,
            price=self.price,
            latency_s=self.latency,
            context_tokens=self.context_tokens,
            requires_earlier_responses=self.requires_earlier_responses,
            runs_programs=self.runs_programs,
        )


_SECRET = re.compile(
    r"(x[-_])?api[-_]?key|authorization|password|secret|(access|auth)[-_]?token", re.IGNORECASE
)
"""Matches keys of `extra` that hold a secret. It leaves out keys such as prompt_cache_key, which hold none."""


class ChatSpec(WorkerSpec):
    """A language model behind a chat API."""

    system: str | None = None
    """The worker's own system prompt, the first message of every call."""
    temperature: float | None = Field(default=None, ge=0)
    """The sampling temperature. Default: none is sent, since some models refuse any temperature."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys that are sent unchanged in each request: reasoning_effort, thinking, top_p, top_k, ..."""
    calls_tools: bool = True
    """Whether the model can call the caller's tools."""
    stream: bool = False
    """Whether to ask for streamed replies. `limits.first_token_timeout` needs them."""
    send_seed: bool = False
    """Whether each call sends a seed, a number of 31 bits that is derived from the question's seed, the round and the
    step, so that a repeated run of the question sends the same seeds. An endpoint may ignore it."""

    def to_profile(self) -> Profile:
        """The profile with what the model can do."""
        return super().to_profile().model_copy(update={"calls_tools": self.calls_tools})

    @model_validator(mode="after")
    def _refuse_unreserved(self) -> Self:
        """Refuse keys by which a call could cost more than a budget reserves for it."""
        for name in ("n", "best_of"):
            if name in self.extra:
                raise ValueError(f"{name} makes answers that no budget reserves; leave it out of extra.")
        for name in ("max_tokens", "max_completion_tokens"):
            limit = self.extra.get(name)
            if isinstance(limit, int) and limit > self.limits.max_tokens:
                raise ValueError(
                    f"extra.{name} is above limits.max_tokens ({self.limits.max_tokens:,}), which budgets reserve; "
                    "raise limits.max_tokens."
                )
        return self


class OpenAISpec(ChatSpec):
    """An endpoint that speaks OpenAI's /chat/completions."""

    traits = ENDPOINT
    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: str
    """The address before /chat/completions, such as "https://api.openai.com/v1"."""
    query: Annotated[dict[str, str], AfterValidator(check_query)] = Field(default_factory=dict)
    """Query parameters that are added to the address, such as { api-version = "2024-10-21" }."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key. Default: no key is sent."""
    key_header: str | None = None
    """Header that carries the bare key, such as Azure's "api-key". Default: Authorization, with "Bearer KEY"."""
    headers: Annotated[dict[str, str], AfterValidator(check_plain)] = Field(default_factory=dict)
    """Further headers that are sent unchanged. They must not be secrets."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Further headers that are secrets: for each header, the name of the environment variable that holds its value."""
    sees: bool = False
    """Whether the model understands images. Only then it gets images."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """Request key for `limits.max_tokens`. Default: max_completion_tokens for api.openai.com, else max_tokens."""

    def to_profile(self) -> Profile:
        return super().to_profile().model_copy(update={"sees": self.sees})

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, extra: dict[str, Any]) -> dict[str, Any]:
        for name in extra:
            if name in ("model", "stream"):
                raise ValueError(f"{name} has a setting of its own; use that instead of extra.")
            if name == "messages":
                raise ValueError("messages are made for each question; leave them out.")
            if _SECRET.fullmatch(name):
                raise ValueError(f"{name!r} looks like a secret; send it as a header, by headers_env.")
        return extra

    @model_validator(mode="after")
    def _refuse_conflicts(self) -> Self:
        key = [self.key_header or "Authorization"] if self.api_key_env is not None else []
        check_names([*key, *self.headers, *self.headers_env])
        if self.key_header is not None and self.api_key_env is None:
            raise ValueError("key_header needs api_key_env; add it, or leave key_header out.")
        if self.limits.first_token_timeout is not None and not self.stream:
            raise ValueError(
                "limits.first_token_timeout needs stream = true; add it, or leave the limit out."
            )
        return self


class GgufSpec(ChatSpec):
    """A model in a GGUF file, which a child process of Podium serves."""

    traits = LOCAL_MODEL
    kind: Literal["gguf"]
    file: str = Field(min_length=1)
    """The file, relative to the team file's folder, or a file of the Hugging Face hub, as hub:OWNER/NAME/FILE.gguf."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    """The SHA-256 that the file must have. Default: any file is loaded."""
    limits: Limits = Limits(concurrency=4, timeout=600, max_tokens=1024)
    """The limits of the worker's calls. `concurrency` is also the number of the server's slots."""
    context_tokens: int = Field(default=8192, ge=256)
    """Tokens of a call, prompt and answer together. Each slot takes memory for them."""
    threads: int | None = Field(default=None, ge=1)
    """Threads that compute. Default: llama.cpp's choice, which is the machine's cores."""
    stream: bool = True
    send_seed: bool = True

    @property
    def path_keys(self) -> frozenset[str]:
        return frozenset() if self.file.startswith("hub:") else frozenset({"file"})


class LocalSpec(WorkerSpec):
    """A language model in a folder of this machine."""

    traits = LOCAL_MODEL
    kind: Literal["local"]
    path: Path
    """The Hugging Face folder, relative to the team file's folder."""
    limits: Limits = Limits(retries=0, concurrency=64, max_tokens=256)
    system: str | None = None
    """The worker's own system prompt, the first message of every call."""
    temperature: float = Field(default=0.0, ge=0)
    """The sampling temperature. 0 always takes the most likely token."""
    reads: Literal["messages", "view"] = "messages"
    """What the model reads: the executor's messages, or their content in a few short lines, for small models that were
    trained on such lines."""
    price_compute: bool = False
    """Whether a call costs what it computes: a dollar for 10^12 parameters times tokens, of prompt and answer
    together."""


class ScriptedFailure(Settings):
    """A call that fails, in place of a scripted reply."""

    error: WorkerErrorKind
    """Kind of the `WorkerError`."""
    message: str = "The script says so."
    retryable: bool = False
    retry_after_s: float | None = Field(default=None, ge=0)


class ScriptedSpec(WorkerSpec):
    """Replies that are written beforehand."""

    traits = COSTLESS
    kind: Literal["scripted"]
    replies: tuple[str | ScriptedFailure, ...] | dict[str, str | ScriptedFailure]
    """The replies in the order of the calls, or by a text that the subtask or the question contains."""
    delay: float = Field(default=0.0, ge=0)
    """Seconds that each call takes."""


class ReplaySpec(WorkerSpec):
    """A recorded model, whose recorded responses are returned."""

    traits = COSTLESS
    kind: Literal["replay"] = "replay"
    limits: Limits = Limits(retries=0)
    recording: Path
    """NAME.parquet, relative to the team file's folder."""
    worker: str | None = None
    """The worker's name in the recording. Default: `name`."""
    samples: Literal["in turn", "random"] = "in turn"
    """Order of several responses to a question: as recorded, or shuffled by the question's seed. Each further call gets
    the next response."""
    assumed_output_tokens: int | None = Field(default=None, ge=0)
    """Output tokens of every response, in place of the recorded number, for models whose reasoning is hidden."""


class CommandSpec(WorkerSpec):
    """A program of the user that runs once for each call."""

    kind: Literal["command"]
    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments, without a shell. A name with a slash is relative to `folder`. Any other name is
    searched in PATH."""
    folder: Path = Path()
    """The program's working directory, relative to the team file's folder."""
    output: Literal["text", "json"] = "text"
    """Whether the program prints its answer as plain text, or as { "text": ..., "usage": ..., "cost_usd": ... }."""
    env: tuple[str, ...] = ()
    """Variables that the program gets besides PATH, HOME, LANG, LC_* and TMPDIR. Their values are removed from its
    output."""
    cache: bool = False
    """Whether answers may be cached. The program must give the same answer to the same messages, whatever the seed."""


class FunctionSpec(WorkerSpec):
    """A Python function of the user."""

    kind: Literal["python"]
    callable: str
    """The function, such as "package.module:function"."""
    path: Path | None = None
    """Folder of the function's module, relative to the team file's folder. Default: the module is installed."""
    env: tuple[str, ...] = ()
    """Variables that the function reads. They must be set, and their values are removed from its answers."""
    cache: bool = False
    """Whether answers may be cached. The function must give the same answer to the same messages, and to the same seed
    if it takes one."""


class LiteLLMSpec(ChatSpec):
    """A model of any provider that litellm supports."""

    traits = LITELLM
    kind: Literal["litellm"]
    model: str = Field(min_length=1)
    """litellm's name for the model, with its provider, such as "bedrock/..." or "vertex_ai/..."."""
    base_url: str | None = None
    """The address of the API. Default: the provider's own."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key. Default: litellm finds a key by its own rules."""
    env: tuple[str, ...] = ()
    """Variables that litellm reads by itself. They must be set, and their values are removed from answers."""

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, extra: dict[str, Any]) -> dict[str, Any]:
        for name in extra:
            if name in ("model", "messages", "stream", "api_base", "base_url", "timeout", "num_retries"):
                raise ValueError(f"{name} cannot be set in extra; leave it out.")
            if _SECRET.search(name):
                raise ValueError(f"{name!r} looks like a secret; name its environment variable in env.")
        return extra


class VoteSpec(WorkerSpec):
    """The built-in tool that returns the most common answer."""

    traits = TOOL
    requires_earlier_responses = True
    description = "A tool: returns the most common final answer among the responses it is shown. Free."
    kind: Literal["vote"] = "vote"
    limits: Limits = Limits(retries=0)


class CalculatorSpec(WorkerSpec):
    """The built-in tool that computes exactly."""

    traits = TOOL
    description = (
        "A tool: computes exactly the arithmetic that is written as a formula in its subtask, or in the latest final "
        "answer that it is shown. Free."
    )
    kind: Literal["calculator"] = "calculator"
    limits: Limits = Limits(retries=0)


class CodeSpec(WorkerSpec):
    """The built-in tool that runs Python programs in the sandbox."""

    traits = TOOL
    requires_earlier_responses = True
    runs_programs = True
    description = (
        "A tool: runs the Python program that an earlier step was told to write, "
        "and gives what it prints. Free."
    )
    kind: Literal["code"] = "code"
    limits: Limits = Limits(retries=0)
    """Output beyond `max_tokens`, counted as four characters per token, is cut off."""
    seconds: float = Field(default=6.0, gt=0)
    """Limit of CPU time of a program. Its wall time may be three times as long."""
    memory_mb: int = Field(default=2048, ge=64)
    """Memory limit of a program with all its processes."""
    allow_weak_sandbox: bool = False
    """Whether programs run without isolation where bubblewrap does not work. Use it only for programs that you
    trust."""
