"""The body of a chat completion: its fields, and their translation into a `ChatRequest`.

As with OpenAI, null is the same as leaving a field out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from podium.server.api_errors import invalid
from podium.server.conversation import images_as_text, stay_with_worker, to_question
from podium.server.keys import Caller
from podium.server.openai.tools import SentPart, Tool, ToolCallPart, ToolChoice, Tools, check_tool_choice
from podium.server.provider_state import KEY, with_state
from podium.server.requests import (
    NO_OPTIONS,
    Body,
    BodyPart,
    ChatRequest,
    ListOf,
    Metadata,
    Name,
    PodiumOptions,
    Unsupported,
)
from podium.server.service import Service
from podium.server.unsupported_fields import (
    HINTS,
    LOGPROBS,
    SAMPLING,
    handle_unsupported,
    ignore_names,
    takes_extra,
)
from podium.server.worker_selection import resolve_model
from podium.types import AnswerOptions, Message, ProviderState, ToolCall

_DEPRECATED = Unsupported("it is the old form; use tools and tool_choice.", kind="never")
_TEXTS = Unsupported("Podium answers with texts only.", kind="never")


class ImageAddress(BodyPart):
    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        "detail": Unsupported("every worker sees the image in its own way.", ("auto",))
    }

    url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:. The worker's provider fetches it; Podium does not."""


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
    name: str | None = None


class UserMessage(BodyPart):
    role: Literal["user"]
    name: str | None = None
    content: str | Annotated[ListOf[UserPart], Field(min_length=1)]


class AssistantMessage(BodyPart):
    """An earlier answer. Accepts every field that Podium's own replies have."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        "annotations": Unsupported("nobody reads them.", ([],)),
        "audio": _TEXTS,
        "function_call": _DEPRECATED,
    }

    role: Literal["assistant"]
    content: str | ListOf[AssistantPart] | None = None
    refusal: str | None = None
    tool_calls: Annotated[ListOf[ToolCallPart], Field(max_length=999)] | None = None
    reasoning_content: str | None = None
    """Progress from an earlier reply, or a worker's reasoning."""
    extra_content: dict[str, Any] | None = None
    """Provider state (`podium.server.provider_state`)."""
    name: str | None = None


class ToolMessage(BodyPart):
    role: Literal["tool"]
    content: Texts
    tool_call_id: str


ChatMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(BodyPart):
    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        "include_obfuscation": Unsupported("the pieces of a stream are not padded.", (False,))
    }

    include_usage: bool | None = None


class OpenAIBody(Body):
    """The fields that the bodies of both of OpenAI's APIs have."""

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    parallel_tool_calls: bool | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: str | None = None
    """OpenAI's new name for `user`."""
    prompt_cache_key: str | None = None
    """A hint for a provider's cache; accepted without effect."""
    store: bool | None = None
    """Whether the trace is kept. Without it no later request can continue from this one."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    podium: PodiumOptions | None = None

    @property
    def end_user(self) -> str | None:
        """The end user for whom the caller asks."""
        return self.user if self.user is not None else self.safety_identifier


class JsonSchema(SentPart):
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class PlainFormat(BodyPart):
    type: Literal["text", "json_object"]


class SchemaFormat(BodyPart):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class ChatBody(OpenAIBody):
    """The body of a chat completion."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        **HINTS,
        "audio": _TEXTS,
        "function_call": _DEPRECATED,
        "functions": _DEPRECATED,
        "logit_bias": Unsupported(SAMPLING, ({},), "meaning"),
        "logprobs": Unsupported(LOGPROBS, (False,), "meaning"),
        "modalities": _TEXTS._replace(values=(["text"],)),
        "prediction": Unsupported("it is a hint that speeds some models up."),
        "reasoning_effort": Unsupported(SAMPLING),
        "verbosity": Unsupported(SAMPLING),
        "web_search_options": Unsupported("the pool decides what workers can do."),
    }

    messages: Annotated[ListOf[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(default=None, ge=1, le=10**9)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=10**9)
    stop: str | Annotated[ListOf[str], Field(max_length=4)] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    """The seed of the question's randomness."""
    n: int | None = Field(default=None, ge=1, le=8)
    """Number of independent answers."""
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None


async def read_chat(body: ChatBody, service: Service, caller: Caller) -> ChatRequest:
    """Translate `body` into a `ChatRequest`."""
    options = body.podium or NO_OPTIONS
    planner, worker = resolve_model(body.model, options.planner, service.pool, caller)
    unsupported = handle_unsupported(body, passes=takes_extra(service.pool, worker))
    messages = tuple(_message(message, worker) for message in body.messages)
    if not takes_extra(service.pool, worker):
        unsupported = ignore_names(messages, unsupported)
    elif body.seed is not None:
        unsupported.extra["seed"] = body.seed
    request = ChatRequest(
        question=to_question(
            messages,
            _options(body, unsupported.extra),
            direct=worker is not None,
        ),
        messages=None if worker is None else messages,
        options=options,
        model=body.model,
        planner=planner,
        worker=worker,
        seed=token_hex(8) if body.seed is None else str(body.seed),
        metadata=body.metadata or {},
        user=body.end_user,
        keep=body.store is not False,
        ignored=unsupported.ignored,
    )
    return await stay_with_worker(request, service, caller)


def _message(message: ChatMessage, worker: str | None) -> Message:
    match message:
        case UserMessage(content=content):
            images = _images(content)
            text = images_as_text(_text(content), images)
            return Message(role="user", content=text, name=message.name, images=images)
        case AssistantMessage():
            calls = tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in message.tool_calls or ()
            )
            text = _text(message.content or "") or message.refusal or ""
            turn = Message(role="assistant", content=text, name=message.name, tool_calls=calls)
            return _with_state(turn, message, worker)
        case ToolMessage():
            return Message(role="tool", content=_text(message.content), tool_call_id=message.tool_call_id)
        case _:
            return Message(role="system", content=_text(message.content), name=message.name)


def _with_state(turn: Message, message: AssistantMessage, worker: str | None) -> Message:
    """The message with its provider state: Podium's own text, or else the provider's fields, for the one worker."""
    extras = [call.extra_content or {} for call in message.tool_calls or ()]
    for extra in (*extras[:1], message.extra_content or {}):
        if (known := with_state(turn, extra.get(KEY))) is not turn:
            return known
    wanted = {"reasoning_content": message.reasoning_content} if turn.tool_calls else {}
    fields = {**wanted, "extra_content": message.extra_content}
    fields = {name: value for name, value in fields.items() if value}
    if worker is None or not (fields or any(extras)):
        return turn
    calls = [
        call.model_copy(update={"provider_state": json.dumps({"extra_content": extra}) if extra else ""})
        for call, extra in zip(turn.tool_calls, extras, strict=True)
    ]
    state = ProviderState(worker=worker, fields=json.dumps(fields) if fields else "")
    return turn.model_copy(update={"provider_state": state, "tool_calls": tuple(calls)})


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


def _options(body: ChatBody, extra: dict[str, Any]) -> AnswerOptions:
    stop = (body.stop,) if isinstance(body.stop, str) else body.stop or ()
    if "" in stop:
        raise invalid("stop: a text before which the answer ends may not be empty.", "stop")
    functions = [tool for tool in body.tools or () if isinstance(tool, Tool)]
    choice, parallel = check_tool_choice(
        [tool.function.name for tool in functions],
        body.tool_choice,
        body.parallel_tool_calls,
    )
    limits = [limit for limit in (body.max_tokens, body.max_completion_tokens) if limit is not None]
    return AnswerOptions(
        max_tokens=min(limits, default=None),
        temperature=body.temperature,
        top_p=body.top_p,
        stop=stop,
        tools=tuple({"type": "function", "function": tool.function.sent} for tool in functions),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=_response_format(body),
        extra=extra,
    )


def _response_format(body: ChatBody) -> dict[str, Any] | None:
    response_format = body.response_format
    if response_format is None or response_format.type == "text":
        return None
    if response_format.type == "json_object":
        return {"type": "json_object"}
    assert isinstance(response_format, SchemaFormat)
    return {"type": "json_schema", "json_schema": response_format.json_schema.sent}
