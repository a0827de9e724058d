"""The body of a request for a response: its fields, and their translation into a `ChatRequest`.

As with OpenAI, null is the same as leaving a field out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from podium.server.answer_state import answer_message
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.openai.chat_body import ChatBody, JsonSchema, OpenAIBody, PlainFormat
from podium.server.openai.response_items import Item, find_trace, to_conversation
from podium.server.openai.tools import FlatToolChoice, FlatTools, tool_options
from podium.server.requests import BodyPart, ChatRequest, ListOf, Metadata, RefusedField, full_conversation
from podium.server.unsupported_fields import HINTS, REFUSED, UnsupportedFields, unknown_field
from podium.store import TraceStore
from podium.types import AnswerOptions, Message

_UNSUPPORTED = RefusedField("Podium does not support it.")
_OWN_HINTS: Mapping[str, tuple[Any, ...]] = {
    "context_management": (),
    "include": ([],),
    "max_tool_calls": (),
    "truncation": ("disabled",),
}
"""Hints that chat completions do not have (`BodyPart.hints`)."""
RESPONSE_KEY = "podium.response"
"""Metadata key of a trace that is a response: its `EchoedFields`, as JSON."""


class EchoedFields(BaseModel):
    """The fields of a request that its response repeats, and the time of the request. The trace's metadata keeps
    them."""

    created: int
    model: str
    previous: str | None = None
    instructed: bool = False
    """Whether the first message is the request's `instructions`."""
    background: bool = False
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @staticmethod
    def read(metadata: Mapping[str, str]) -> EchoedFields | None:
        """The fields in a trace's metadata. None if the trace is no response, whatever a client wrote there."""
        try:
            return EchoedFields.model_validate_json(metadata.get(RESPONSE_KEY, ""))
        except ValidationError:
            return None


class JsonSchemaFormat(JsonSchema):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class TextOptions(BodyPart):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {"verbosity": ("medium",)}

    format: Annotated[PlainFormat | JsonSchemaFormat, Field(discriminator="type")] | None = None


class ResponseBody(OpenAIBody):
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {**HINTS, **_OWN_HINTS}
    refused: ClassVar[Mapping[str, RefusedField]] = {
        **REFUSED,
        "access_programs": _UNSUPPORTED,
        "background_options": _UNSUPPORTED,
        "conversation": RefusedField("there are no stored conversations; use previous_response_id."),
        "image": _UNSUPPORTED,
        "prompt": RefusedField("there are no stored prompts; write the input."),
    }
    conversation_field: ClassVar[str] = "input"

    input: str | Annotated[ListOf[Item], Field(min_length=1)]
    instructions: str | None = None
    """The first system message. A response that continues this one does not inherit it."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**9)
    tools: FlatTools | None = None
    tool_choice: FlatToolChoice | None = None
    text: TextOptions | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    """Whether the reply comes at once, while the response is made without its caller."""

    @field_validator("metadata")
    @classmethod
    def _leave_own_key(cls, metadata: Metadata | None) -> Metadata | None:
        if metadata is not None and RESPONSE_KEY in metadata:
            raise ValueError(f"metadata: {RESPONSE_KEY} is Podium's own; take another name.")
        return metadata

    async def read_messages(
        self, worker: str | None, store: TraceStore, caller: Caller
    ) -> tuple[Message, ...]:
        instructions = (Message(role="system", content=self.instructions),) if self.instructions else ()
        previous = await self._previous_messages(store, caller)
        return (*instructions, *previous, *await to_conversation(self.input, store, caller))

    async def _previous_messages(self, store: TraceStore, caller: Caller) -> tuple[Message, ...]:
        if self.previous_response_id is None:
            return ()
        trace = await find_trace(self.previous_response_id, store, caller, "previous_response_id")
        if trace.answer is None:
            raise invalid(
                f"{self.previous_response_id} has no answer to go on from; ask it again.",
                "previous_response_id",
            )
        question, echoed = trace.question, EchoedFields.read(trace.metadata)
        if echoed is not None and echoed.instructed:
            question = question.model_copy(update={"history": question.history[1:]})
        return (*full_conversation(question), answer_message(trace))

    def answer_options(self, extra: dict[str, Any]) -> AnswerOptions:
        text_format = self.text and self.text.format
        return AnswerOptions(
            max_tokens=self.max_output_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            response_format=text_format and text_format.as_sent,
            extra=extra,
            **tool_options(self.tools, self.tool_choice, self.parallel_tool_calls),
        )

    def complete(self, request: ChatRequest) -> ChatRequest:
        echoed = EchoedFields(
            created=int(time.time()),
            model=self.model,
            previous=self.previous_response_id,
            instructed=bool(self.instructions),
            background=bool(self.background),
            safety_identifier=self.safety_identifier,
            prompt_cache_key=self.prompt_cache_key,
        )
        request = super().complete(request)
        return replace(request, metadata={**request.metadata, RESPONSE_KEY: echoed.model_dump_json()})

    def for_endpoint(self, fields: UnsupportedFields) -> UnsupportedFields:
        passed = fields.extra
        for name in sorted(passed.keys() & (ChatBody.model_fields.keys() - ResponseBody.model_fields.keys())):
            raise unknown_field(self, name)  # It would replace a field that Podium sets.
        extra = {name: passed[name] for name in passed.keys() - _OWN_HINTS.keys() - {"reasoning"}}
        reasoning = passed.get("reasoning")
        verbosity = self.text and (self.text.model_extra or {}).get("verbosity")
        if isinstance(reasoning, dict) and reasoning.get("effort"):
            extra["reasoning_effort"] = reasoning["effort"]
        if verbosity:
            extra["verbosity"] = verbosity
        if extra.get("top_logprobs"):
            extra["logprobs"] = True
        ignored = [name for name in fields.ignored if name != "text.verbosity"]
        return UnsupportedFields((*ignored, *sorted(_OWN_HINTS.keys() & passed.keys())), extra)
