"""The body of a chat completion: its fields, and their translation into a `ChatRequest`.

As with OpenAI, null is the same as leaving a field out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from podium.server.answer_state import KEY, with_state
from podium.server.keys import Caller
from podium.server.openai.tools import SentPart, ToolCallPart, ToolChoice, Tools, tool_options
from podium.server.question_body import ContentPart, QuestionBody, TextPart, text_and_images, text_of
from podium.server.requests import BodyPart, ChatRequest, ListOf, Metadata, RefusedField
from podium.server.unsupported_fields import HINTS, LOGPROBS, REFUSED, UnsupportedFields
from podium.store import TraceStore
from podium.types import AnswerOptions, Message, ProviderState, ToolCall

_DEPRECATED = RefusedField("it is the old form; use tools and tool_choice.")
_TEXTS = RefusedField("Podium answers with texts only.")


class ImageAddress(BodyPart):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {"detail": ("auto",)}

    url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:. The worker's provider fetches it; Podium does not."""


class ChatText(TextPart):
    type: Literal["text"]


class ImagePart(ContentPart):
    type: Literal["image_url"]
    image_url: ImageAddress

    @property
    def images(self) -> tuple[str, ...]:
        return (self.image_url.url,)


class RefusalPart(ContentPart):
    type: Literal["refusal"]
    refusal: str

    @property
    def words(self) -> str:
        return self.refusal


Texts = str | Annotated[ListOf[ChatText], Field(min_length=1)]
UserPart = Annotated[ChatText | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[ChatText | RefusalPart, Field(discriminator="type")]


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

    refused: ClassVar[Mapping[str, RefusedField]] = {"audio": _TEXTS, "function_call": _DEPRECATED}
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {"annotations": ([],)}

    role: Literal["assistant"]
    content: str | ListOf[AssistantPart] | None = None
    refusal: str | None = None
    tool_calls: Annotated[ListOf[ToolCallPart], Field(max_length=999)] | None = None
    reasoning_content: str | None = None
    """Progress from an earlier reply, or a worker's reasoning."""
    extra_content: dict[str, Any] | None = None
    """Provider state (`podium.server.answer_state`)."""
    name: str | None = None


class ToolMessage(BodyPart):
    role: Literal["tool"]
    content: Texts
    tool_call_id: str


ChatMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(BodyPart):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {"include_obfuscation": (False,)}

    include_usage: bool | None = None


class JsonSchema(SentPart):
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None

    @property
    def as_sent(self) -> dict[str, Any]:
        return {"type": "json_schema", "json_schema": self.sent}


class PlainFormat(BodyPart):
    type: Literal["text", "json_object"]

    @property
    def as_sent(self) -> dict[str, Any] | None:
        """The format as a chat completion has it. None for text, which needs no format."""
        return None if self.type == "text" else {"type": self.type}


class SchemaFormat(BodyPart):
    type: Literal["json_schema"]
    json_schema: JsonSchema

    @property
    def as_sent(self) -> dict[str, Any]:
        return self.json_schema.as_sent


class OpenAIBody(QuestionBody):
    """The fields that the bodies of both of OpenAI's APIs have."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    parallel_tool_calls: bool | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: str | None = None
    """OpenAI's new name for `user`."""
    prompt_cache_key: str | None = None
    """A hint for a provider's cache; accepted without effect."""
    store: bool | None = None
    """Whether the trace is kept. Without it no later request can continue from this one."""
    stream_options: StreamOptions | None = None

    def complete(self, request: ChatRequest) -> ChatRequest:
        user = self.user if self.user is not None else self.safety_identifier
        return replace(request, metadata=self.metadata or {}, user=user, keep=self.store is not False)


_StopText = Annotated[str, StringConstraints(min_length=1)]


class ChatBody(OpenAIBody):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **HINTS,
        "prediction": (),
        "reasoning_effort": (),
        "verbosity": (),
        "web_search_options": (),
    }
    refused: ClassVar[Mapping[str, RefusedField]] = {
        **REFUSED,
        "audio": _TEXTS,
        "function_call": _DEPRECATED,
        "functions": _DEPRECATED,
        "logit_bias": RefusedField("not every worker supports it.", ({},), for_worker=True),
        "logprobs": RefusedField(LOGPROBS, (False,), for_worker=True),
        "modalities": _TEXTS._replace(values=(["text"],)),
    }

    messages: Annotated[ListOf[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(default=None, ge=1, le=10**9)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=10**9)
    stop: _StopText | Annotated[ListOf[_StopText], Field(max_length=4)] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    n: Literal[1] | None = None
    """Each question has one answer."""
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None

    async def read_messages(
        self, worker: str | None, store: TraceStore, caller: Caller
    ) -> tuple[Message, ...]:
        return tuple(_message(message, worker) for message in self.messages)

    def answer_options(self, extra: dict[str, Any]) -> AnswerOptions:
        stop = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        limits = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        return AnswerOptions(
            max_tokens=min(limits, default=None),
            temperature=self.temperature,
            top_p=self.top_p,
            stop=stop,
            response_format=self.response_format and self.response_format.as_sent,
            extra=extra,
            **tool_options(self.tools, self.tool_choice, self.parallel_tool_calls),
        )

    def for_endpoint(self, fields: UnsupportedFields) -> UnsupportedFields:
        if self.seed is None:
            return fields
        return fields._replace(extra={**fields.extra, "seed": self.seed})

    def complete(self, request: ChatRequest) -> ChatRequest:
        request = super().complete(request)
        return request if self.seed is None else replace(request, seed=str(self.seed))


def _message(message: ChatMessage, worker: str | None) -> Message:
    match message:
        case UserMessage(content=content):
            text, images = text_and_images(content)
            return Message(role="user", content=text, name=message.name, images=images)
        case AssistantMessage():
            calls = tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in message.tool_calls or ()
            )
            text = text_of(message.content) or message.refusal or ""
            turn = Message(role="assistant", content=text, name=message.name, tool_calls=calls)
            return _with_state(turn, message, worker)
        case ToolMessage():
            return Message(role="tool", content=text_of(message.content), tool_call_id=message.tool_call_id)
        case _:
            return Message(role="system", content=text_of(message.content), name=message.name)


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
