"""The body of a request for a response, as far as Podium can honour it.

Lenient where OpenAI is (null is as good as nothing); what would be dropped is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.server.body import Body, Metadata, Name, Part, Several
from podium.server.chat.request import HINTS
from podium.server.extension import Extension
from podium.server.tools import MOST, FunctionName

_ABSENT = "Podium has no such thing."


class InputText(Part):
    type: Literal["input_text", "text"]
    text: str


class InputImage(Part):
    type: Literal["input_image"]
    image_url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:; a worker's provider fetches it, not Podium."""
    detail: Literal["auto"] | None = None
    file_id: None = None


class OutputText(Part):
    """Of an answer that is given back."""

    type: Literal["output_text"]
    text: str
    annotations: tuple[Any, ...] | None = None
    logprobs: tuple[Any, ...] | None = None


class Refusal(Part):
    type: Literal["refusal"]
    refusal: str


Content = Annotated[InputText | InputImage | OutputText | Refusal, Field(discriminator="type")]


class MessageItem(Part):
    """A message, of a user or given back."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[Several[Content], Field(min_length=1)]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(Part):
    """A call that is given back."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class ResultItem(Part):
    """What the caller's tool gave."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Annotated[Several[InputText], Field(min_length=1)]
    id: str | None = None
    status: str | None = None


class ReasoningItem(Part):
    """Progress that a response told of; no part of the conversation."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: tuple[Any, ...] = ()
    content: tuple[Any, ...] | None = None
    encrypted_content: str | None = None
    status: str | None = None


def _kind(item: Any) -> str:
    return str(item.get("type") or "message") if isinstance(item, dict) else "message"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class FlatTool(Part):
    """A function, in the flat form of responses."""

    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FlatChoice(Part):
    type: Literal["function"]
    name: FunctionName


class PlainText(Part):
    type: Literal["text", "json_object"]


class SchemaText(Part):
    type: Literal["json_schema"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextWanted(Part):
    format: Annotated[PlainText | SchemaText, Field(discriminator="type")] | None = None
    verbosity: Literal["medium"] | None = None


class ResponseStreamOptions(Part):
    include_obfuscation: Literal[False] | None = None
    """Events are not padded."""


class ResponseBody(Body):
    """The body of a request for a response."""

    idle: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {
        **HINTS,
        "access_programs": ((), _ABSENT),
        "background": ((False,), "ask with POST /api/ask, and follow the trace's events."),
        "background_options": ((), _ABSENT),
        "context_management": ((), _ABSENT),
        "conversation": ((), "there are no stored conversations; use previous_response_id."),
        "image": ((), _ABSENT),
        "include": (([],), "there is nothing to include."),
        "max_tool_calls": ((), "there are no tools of the server's."),
        "prompt": ((), "there are no stored prompts; write the input."),
        "reasoning": (({},), "not every worker can be told; set it in the pool file, with extra."),
        "top_logprobs": ((0,), "the probabilities of workers' tokens are not known here."),
        "truncation": (("disabled",), "nothing is cut off in silence."),
    }

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    input: str | Annotated[Several[Item], Field(min_length=1)]
    instructions: str | None = None
    """The first system message; not carried over to what follows on this response."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    tools: Annotated[Several[FlatTool], Field(max_length=MOST)] | None = None
    tool_choice: Literal["none", "auto", "required"] | FlatChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextWanted | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: str | None = None
    """As `user`, under its new name."""
    prompt_cache_key: str | None = None
    """A hint to a provider's own cache: taken, and without effect."""
    previous_response_id: str | None = None
    store: bool | None = None
    """False: no trace is kept, and nothing can follow on the response."""
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    podium: Extension | None = None
