"""The body of a chat completion, as far as Podium can honour it.

Lenient where OpenAI is (null is as good as nothing); what would be dropped is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from podium.server.body import Body, Metadata, Name, Part, Several
from podium.server.extension import Extension
from podium.server.tools import Called, ToolChoice, Tools

_OLD = "it is the old form; use tools and tool_choice."
_SAMPLING = "not every worker can be told; set it in the pool file, with extra."
_ABSENT = "Podium's answers are texts of the team; it has no such thing."
_HINT = "it is a hint to a provider's own cache."

HINTS: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "moderation": ((), _ABSENT),
    "prompt_cache_options": ((), _HINT),
    "prompt_cache_retention": ((), _HINT),
    "service_tier": (("auto", "default"), "workers have no tiers here."),
}


class ImageAddress(Part):
    url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:; a worker's provider fetches it, not Podium."""
    detail: Literal["auto"] | None = None


class TextPart(Part):
    type: Literal["text"]
    text: str


class ImagePart(Part):
    type: Literal["image_url"]
    image_url: ImageAddress


class RefusalPart(Part):
    type: Literal["refusal"]
    refusal: str


Texts = str | Annotated[Several[TextPart], Field(min_length=1)]
UserPart = Annotated[TextPart | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[TextPart | RefusalPart, Field(discriminator="type")]


class SystemMessage(Part):
    role: Literal["system", "developer"]
    content: Texts


class UserMessage(Part):
    role: Literal["user"]
    content: str | Annotated[Several[UserPart], Field(min_length=1)]


class AssistantMessage(Part):
    """An answer of before; what Podium's own replies have beside the text is taken back, too."""

    role: Literal["assistant"]
    content: str | Several[AssistantPart] | None = None
    refusal: str | None = None
    tool_calls: Annotated[Several[Called], Field(max_length=999)] | None = None
    reasoning_content: str | None = None
    """Progress that a reply told of; no part of the conversation."""
    annotations: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    audio: None = None
    function_call: None = None


class ToolMessage(Part):
    role: Literal["tool"]
    content: Texts
    tool_call_id: str


ChatMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(Part):
    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None
    """Chunks are not padded."""


class JsonSchema(Part):
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class PlainFormat(Part):
    type: Literal["text", "json_object"]


class SchemaFormat(Part):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class ChatBody(Body):
    """The body of a chat completion."""

    idle: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {
        **HINTS,
        "audio": ((), _ABSENT),
        "frequency_penalty": ((0,), _SAMPLING),
        "function_call": ((), _OLD),
        "functions": ((), _OLD),
        "logit_bias": (({},), _SAMPLING),
        "logprobs": ((False,), "the probabilities of workers' tokens are not known here."),
        "modalities": ((["text"],), _ABSENT),
        "prediction": ((), _ABSENT),
        "presence_penalty": ((0,), _SAMPLING),
        "reasoning_effort": ((), _SAMPLING),
        "top_logprobs": ((0,), "the probabilities of workers' tokens are not known here."),
        "verbosity": ((), _SAMPLING),
        "web_search_options": ((), "what workers can do is the pool's to say."),
    }

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    messages: Annotated[Several[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(default=None, ge=1, le=10**9)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: str | Annotated[Several[str], Field(max_length=4)] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    """Names the randomness of the question."""
    n: int | None = Field(default=None, ge=1, le=8)
    """So many independent answers."""
    user: str | None = None
    safety_identifier: str | None = None
    """As `user`, under its new name."""
    prompt_cache_key: str | None = None
    """A hint to a provider's own cache: taken, and without effect."""
    metadata: Metadata | None = None
    store: bool | None = None
    """False: no trace is kept."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    podium: Extension | None = None
