"""The body of a request to Anthropic's Messages API, and its translation into a `ChatRequest`.

Content blocks become messages, tool calls and tool results: the form that all routes share.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.server.answer_state import with_state
from podium.server.anthropic.content_blocks import (
    DocumentBlock,
    Image,
    OtherBlock,
    ResultPart,
    SearchResult,
    Text,
    known_or_other,
)
from podium.server.conversation import check_tool_choice
from podium.server.keys import Caller
from podium.server.question_body import ContentPart, QuestionBody, images_of, text_and_images, text_of
from podium.server.requests import BodyPart, ChatRequest, ListOf, RefusedField, UnsupportedTool
from podium.server.unsupported_fields import UnsupportedFields
from podium.store import TraceStore
from podium.types import AnswerOptions, Message, ToolCall

ToolName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
_WORKER_NAME_CHARS = 64
"""Characters that the name of a function may have at workers' endpoints."""
_LOW, _MEDIUM = 2048, 8192
"""The largest `budget_tokens` that become the reasoning efforts "low" and "medium". More becomes "high"."""


class ToolUse(BodyPart):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]
    caller: Any = None
    """Podium's replies have this field, and clients send it back."""


class ToolResult(BodyPart):
    type: Literal["tool_result"]
    tool_use_id: str
    content: str | ListOf[ResultPart] | None = None
    is_error: bool | None = None


class Thinking(BodyPart):
    """The thoughts of a worker in an earlier reply, with the state of its answer (`podium.server.answer_state`)."""

    type: Literal["thinking", "redacted_thinking"]
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


_Block = Annotated[
    Annotated[
        Text | Image | DocumentBlock | SearchResult | ToolUse | ToolResult | Thinking,
        Field(discriminator="type"),
        Tag("known"),
    ]
    | Annotated[OtherBlock, Tag("other")],
    known_or_other(Text, Image, DocumentBlock, SearchResult, ToolUse, ToolResult, Thinking),
]


class InputMessage(BodyPart):
    role: Literal["user", "assistant", "system"]
    content: str | Annotated[ListOf[_Block], Field(min_length=1)]


class ClientTool(BodyPart):
    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None


def _tool_kind(tool: Any) -> str:
    return "foreign" if isinstance(tool, dict) and tool.get("type") not in (None, "custom") else "function"


_AnyTool = Annotated[
    Annotated[ClientTool, Tag("function")] | Annotated[UnsupportedTool, Tag("foreign")],
    Discriminator(_tool_kind),
]


class ToolChoiceMode(BodyPart):
    type: Literal["auto", "any", "none"]
    disable_parallel_tool_use: bool | None = None


class NamedToolChoice(BodyPart):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class JsonOutput(BodyPart):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(BodyPart):
    format: JsonOutput | None = None


class MessageMetadata(BodyPart):
    user_id: str | None = None


class MessagesBody(QuestionBody):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "betas": (),
        "cache_control": (),
        "compaction": (),
        "context_management": (),
        "diagnostics": (),
        "fallbacks": (),
        "inference_geo": (),
        "service_tier": ("auto", "standard_only"),
        "speed": (),
        "thinking": ({"type": "disabled"},),
        "top_k": (),
    }
    refused: ClassVar[Mapping[str, RefusedField]] = {
        "container": RefusedField("there are no containers."),
        "mcp_servers": RefusedField("Podium calls no servers of tools.", ([],)),
    }
    endpoint_fields: ClassVar[Container[str] | None] = ("top_k", "reasoning_effort", "thinking")

    messages: Annotated[ListOf[InputMessage], Field(min_length=1)]
    max_tokens: int | None = Field(default=None, ge=1, le=10**9)
    """POST /v1/messages requires it; count_tokens does not."""
    system: str | ListOf[Text] | None = None
    temperature: float | None = Field(default=None, ge=0, le=1)
    stop_sequences: ListOf[Annotated[str, StringConstraints(min_length=1)]] | None = None
    tools: ListOf[_AnyTool] | None = None
    tool_choice: Annotated[ToolChoiceMode | NamedToolChoice, Field(discriminator="type")] | None = None
    output_config: OutputConfig | None = None
    output_format: JsonOutput | None = None
    """The older name of output_config.format."""
    metadata: MessageMetadata | None = None

    @property
    def thinking(self) -> dict[str, Any] | None:
        """The settings of the thinking blocks that the caller requested. None if it requested none."""
        wanted = (self.model_extra or {}).get("thinking")
        enabled = isinstance(wanted, dict) and wanted.get("type") in ("enabled", "adaptive")
        return wanted if enabled else None

    @property
    def long_names(self) -> dict[str, str]:
        """For each tool name that is shortened for workers, the long name by the short name."""
        names = [tool.name for tool in self.tools or () if isinstance(tool, ClientTool)]
        return {short: name for name in names if (short := _worker_name(name)) != name}

    def complete(self, request: ChatRequest) -> ChatRequest:
        return request if self.metadata is None else replace(request, user=self.metadata.user_id)

    async def read_messages(
        self, worker: str | None, store: TraceStore, caller: Caller
    ) -> tuple[Message, ...]:
        system = text_of(self.system)
        first = (Message(role="system", content=system),) if system else ()
        return (*first, *(message for turn in self.messages for message in _unfold(turn)))

    def for_endpoint(self, fields: UnsupportedFields) -> UnsupportedFields:
        extra = {name: value for name, value in fields.extra.items() if name != "thinking"}
        if self.thinking is not None:
            budget = self.thinking.get("budget_tokens")
            tokens = budget if budget and isinstance(budget, int | float) else _MEDIUM
            extra["reasoning_effort"] = "low" if tokens <= _LOW else "medium" if tokens <= _MEDIUM else "high"
        return fields._replace(extra=extra)

    def answer_options(self, extra: dict[str, Any]) -> AnswerOptions:
        functions = [tool for tool in self.tools or () if isinstance(tool, ClientTool)]
        choice = self.tool_choice or ToolChoiceMode(type="auto")
        output = (self.output_config and self.output_config.format) or self.output_format
        return AnswerOptions(
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stop=self.stop_sequences or (),
            tools=tuple({"type": "function", "function": _function(tool)} for tool in functions),
            tool_choice=_tool_choice(self, [tool.name for tool in functions], choice),
            parallel_tool_calls=False if functions and choice.disable_parallel_tool_use else None,
            response_format=None
            if output is None
            else {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": output.schema_, "strict": True},
            },
            extra=extra,
        )


def _unfold(turn: InputMessage) -> Iterator[Message]:
    """Yield one message for each tool result, then one message with the text, images and tool calls."""
    if isinstance(turn.content, str):
        yield Message(role=turn.role, content=turn.content)
        return
    parts: list[ContentPart] = []
    shown: tuple[str, ...] = ()
    calls: list[ToolCall] = []
    state: str | None = None
    answers = False
    for block in turn.content:
        match block:
            case ToolUse():
                arguments = json.dumps(block.input, separators=(",", ":"))
                calls.append(ToolCall(id=block.id, name=_worker_name(block.name), arguments=arguments))
            case ToolResult():
                answers = True
                shown += images_of(block.content)
                text = text_of(block.content)
                marked = f"Error: {text}" if block.is_error else text
                yield Message(role="tool", content=marked, tool_call_id=block.tool_use_id)
            case Thinking():
                state = block.signature or block.data or state
            case _:
                parts.append(block)
    text, images = text_and_images(parts)
    if shown and not text:
        text = "(See the image.)"
    if text or calls or (parts and not answers):
        message = Message(role=turn.role, content=text, images=(*images, *shown), tool_calls=tuple(calls))
        yield with_state(message, state)


def _worker_name(name: str) -> str:
    """The name of a tool for workers. A long name is cut, and ends with a digest of the whole name."""
    if len(name) <= _WORKER_NAME_CHARS:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _WORKER_NAME_CHARS - 9]}_{digest}"


def _tool_choice(
    body: MessagesBody, names: Sequence[str], choice: ToolChoiceMode | NamedToolChoice
) -> str | dict[str, Any] | None:
    """The choice among functions as in a chat completion. A tool that Anthropic runs itself is ignored."""
    if choice.type in ("auto", "none"):
        return "none" if names and choice.type == "none" else None
    if not isinstance(choice, NamedToolChoice):
        check_tool_choice(names)
        return "required"
    foreign = [tool for tool in body.tools or () if isinstance(tool, UnsupportedTool)]
    if choice.name in [(tool.model_extra or {}).get("name") for tool in foreign]:
        return None
    check_tool_choice(names)
    check_tool_choice(names, choice.name, "tool_choice.name")
    return {"type": "function", "function": {"name": _worker_name(choice.name)}}


def _function(tool: ClientTool) -> dict[str, Any]:
    fields = {"description": tool.description, "parameters": tool.input_schema, "strict": tool.strict}
    return {
        "name": _worker_name(tool.name),
        **{name: value for name, value in fields.items() if value is not None},
    }
