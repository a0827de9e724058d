"""The body of a chat completion, as far as Podium can honour it.

Lenient where OpenAI is (null is as good as nothing); what would be dropped is refused.


@@From the body of a chat completion to what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.openai.conversation import (
    Called,
    ChosenTool,
    ToolChoice,
    Tools,
    check_choice,
    resume_after_tools,
    to_messages,
)
from podium.server.requests import (
    NO_OPTIONS,
    Body,
    BodyPart,
    ChatRequest,
    ListOf,
    Metadata,
    Name,
    PodiumOptions,
    to_budget,
    to_early_stop,
    to_steps,
)
from podium.server.service import Service
from podium.server.worker_selection import resolve_model
from podium.types import AnswerOptions, Message, Question, ToolCall

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


class ImageAddress(BodyPart):
    url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:; a worker's provider fetches it, not Podium."""
    detail: Literal["auto"] | None = None


class TextPart(BodyPart):
    type: Literal["text"]
    text: str


class ImagePart(BodyPart):
    type: Literal["image_url"]
    image_url: ImageAddress


class RefusalPart(BodyPart):
    type: Literal["refusal"]
    refusal: str


Texts = str | Annotated[ListOf[TextPart], Field(min_length=1)]
UserPart = Annotated[TextPart | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[TextPart | RefusalPart, Field(discriminator="type")]


class SystemMessage(BodyPart):
    role: Literal["system", "developer"]
    content: Texts


class UserMessage(BodyPart):
    role: Literal["user"]
    content: str | Annotated[ListOf[UserPart], Field(min_length=1)]


class AssistantMessage(BodyPart):
    """An answer of before; what Podium's own replies have beside the text is taken back, too."""

    role: Literal["assistant"]
    content: str | ListOf[AssistantPart] | None = None
    refusal: str | None = None
    tool_calls: Annotated[ListOf[Called], Field(max_length=999)] | None = None
    reasoning_content: str | None = None
    """Progress that a reply told of; no part of the conversation."""
    annotations: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    audio: None = None
    function_call: None = None


class ToolMessage(BodyPart):
    role: Literal["tool"]
    content: Texts
    tool_call_id: str


ChatMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(BodyPart):
    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None
    """Chunks are not padded."""


class JsonSchema(BodyPart):
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class PlainFormat(BodyPart):
    type: Literal["text", "json_object"]


class SchemaFormat(BodyPart):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class ChatBody(Body):
    """The body of a chat completion."""

    ignorable: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {
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
    messages: Annotated[ListOf[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(default=None, ge=1, le=10**9)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: str | Annotated[ListOf[str], Field(max_length=4)] | None = None
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
    podium: PodiumOptions | None = None


async def read_chat(body: ChatBody, service: Service, caller: Caller) -> ChatRequest:
    """What `body` asks.

    Raises:
        APIError: it cannot be asked so.
    """
    wanted, settings = body.podium or NO_OPTIONS, service.settings
    planner, worker = resolve_model(body.model, wanted.planner, service.pool, caller)
    text, history, message = to_messages(tuple(_message(m) for m in body.messages))
    question = Question(
        text=text,
        history=history,
        images=() if message is None else message.images,
        options=_options(body),
    )
    asked = ChatRequest(
        question=question,
        model=body.model,
        budget=to_budget(wanted, settings),
        allow=wanted.allow,
        deny=wanted.deny or (),
        planner=planner,
        worker=worker,
        max_steps=to_steps(wanted, settings),
        early_stop=to_early_stop(wanted, settings),
        dry_run=bool(wanted.dry_run),
        seed=token_hex(8) if body.seed is None else str(body.seed),
        metadata=body.metadata or {},
        user=body.user if body.user is not None else body.safety_identifier,
        keep=body.store is not False,
    )
    return await resume_after_tools(asked, service, caller)


def _message(message: ChatMessage) -> Message:
    match message:
        case UserMessage(content=content):
            return Message(role="user", content=_text(content), images=_images(content))
        case AssistantMessage():
            calls = tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in message.tool_calls or ()
            )
            text = _text(message.content or "") or message.refusal or ""
            return Message(role="assistant", content=text, tool_calls=calls)
        case ToolMessage():
            return Message(role="tool", content=_text(message.content), tool_call_id=message.tool_call_id)
        case _:
            return Message(role="system", content=_text(message.content))


def _text(content: str | tuple[TextPart, ...] | tuple[UserPart, ...] | tuple[AssistantPart, ...]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part.text if isinstance(part, TextPart) else part.refusal
        for part in content
        if isinstance(part, TextPart | RefusalPart)
    )


def _images(content: str | tuple[UserPart, ...]) -> tuple[str, ...]:
    if isinstance(content, str):
        return ()
    return tuple(part.image_url.url for part in content if isinstance(part, ImagePart))


def _options(body: ChatBody) -> AnswerOptions:
    stop = (body.stop,) if isinstance(body.stop, str) else body.stop or ()
    if "" in stop:
        raise invalid("stop: a text before which the answer ends may not be empty.", "stop")
    choice = body.tool_choice
    check_choice(
        [tool.function.name for tool in body.tools or ()],
        choice.function.name if isinstance(choice, ChosenTool) else choice,
        body.parallel_tool_calls,
        "tool_choice.function.name",
    )
    given = [n for n in (body.max_tokens, body.max_completion_tokens) if n is not None]
    return AnswerOptions(
        max_tokens=min(given, default=None),
        temperature=body.temperature,
        top_p=body.top_p,
        stop=stop,
        tools=tuple(tool.model_dump(exclude_unset=True) for tool in body.tools or ()),
        tool_choice=choice.model_dump() if isinstance(choice, ChosenTool) else choice,
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body),
    )


def _format(body: ChatBody) -> dict[str, Any] | None:
    wanted = body.response_format
    if wanted is None or wanted.type == "text":
        return None
    return wanted.model_dump(exclude_unset=True, by_alias=True)
