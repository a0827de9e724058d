"""The input items of a response (messages, tool calls, tool results, references), and their conversion to messages.

`responses_body` has the other fields of a request, `responses_reply` the items of an answer.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from podium.errors import APIError
from podium.server.answer_state import answer_message, with_state
from podium.server.api_errors import invalid, not_found
from podium.server.keys import Caller
from podium.server.openai.chat_body import ImageAddress, RefusalPart
from podium.server.question_body import ContentPart, TextPart, images_of, text_and_images, text_of
from podium.server.requests import BodyPart, ListOf, RefusedField
from podium.store import TraceStore
from podium.store.background_table import BackgroundRow, BackgroundTable
from podium.trace import Trace
from podium.types import Message, ToolCall

_ID = re.compile(r"resp_([0-9a-f]{32})")
_ITEM_ID = re.compile(r"(?P<kind>msg|fc)_(?P<trace>[0-9a-f]{32})(?:_(?P<number>\d{1,3}))?")


class InputText(TextPart):
    type: Literal["input_text", "text"]


class InputImage(ContentPart):
    refused: ClassVar[Mapping[str, RefusedField]] = {
        "file_id": RefusedField("there are no stored files; send the image.")
    }
    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = ImageAddress.hints

    type: Literal["input_image"]
    image_url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:. The worker's provider fetches it; Podium does not."""

    @property
    def images(self) -> tuple[str, ...]:
        return (self.image_url,)


class OutputText(TextPart):
    type: Literal["output_text"]
    annotations: tuple[Any, ...] | None = None
    logprobs: tuple[Any, ...] | None = None


class InputFile(ContentPart):
    """A text file; its content becomes part of the message."""

    type: Literal["input_file"]
    file_data: str
    """Base64, also as a data: URL."""
    filename: str = "file"
    file_id: None = None
    file_url: None = None

    @model_validator(mode="after")
    def _check_is_text(self) -> Self:
        _ = self.words
        return self

    @property
    def words(self) -> str:
        try:
            contents = b64decode(self.file_data.rpartition(",")[2], validate=True).decode()
        except ValueError:
            raise ValueError(
                f"{self.filename[:100]!r} is no text in UTF-8; send its text, or its pages as images."
            ) from None
        return f"File {self.filename}:\n{contents}"


Content = Annotated[
    InputText | InputImage | InputFile | OutputText | RefusalPart, Field(discriminator="type")
]
ResultPart = Annotated[InputText | InputImage | InputFile, Field(discriminator="type")]


class MessageItem(BodyPart):
    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[ListOf[Content], Field(min_length=1)]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(BodyPart):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class ResultItem(BodyPart):
    """The result of a tool that the caller ran. With `name` but no `call_id`: a note of the caller's program."""

    type: Literal["function_call_output"]
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    output: str | Annotated[ListOf[ResultPart], Field(min_length=1)]
    id: str | None = None
    status: str | None = None

    @model_validator(mode="after")
    def _require_call(self) -> Self:
        if self.call_id is None and self.name is None:
            raise ValueError("The field 'call_id' is missing.")
        return self


class ReasoningItem(BodyPart):
    """Progress from an earlier response, with the state of its answer (`podium.server.answer_state`)."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: tuple[Any, ...] = ()
    content: tuple[Any, ...] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class ReferenceItem(BodyPart):
    type: Literal["item_reference"] | None = None
    id: str


def _kind(item: Any) -> str:
    if not isinstance(item, dict):
        return "message"
    reference = "id" in item and "role" not in item
    return str(item.get("type") or ("item_reference" if reference else "message"))


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")]
    | Annotated[ReferenceItem, Tag("item_reference")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


async def find_trace(response_id: str, store: TraceStore, caller: Caller, param: str) -> Trace:
    """The trace of a response.

    Raises:
        APIError: 404 for a response that is unknown or of another key, 400 for a response that is still being made.
    """
    match = _ID.fullmatch(response_id)
    if match is None:
        raise unknown_response(response_id, param)
    trace = await store.to_thread(store.find, match[1], caller.visible_owner)
    if trace is not None:
        return trace
    if param != "id" and await find_background(response_id, store, caller) is not None:
        text = f"{response_id} is still being made; wait until its status is completed."
        raise invalid(text, param, code="response_in_progress")
    raise unknown_response(response_id, param)


async def find_background(response_id: str, store: TraceStore, caller: Caller) -> BackgroundRow | None:
    match = _ID.fullmatch(response_id)
    if match is None:
        return None
    return await BackgroundTable(store).find(match[1], caller.visible_owner)


def unknown_response(response_id: str, param: str) -> APIError:
    """The error for a response that does not exist, or that another key made."""
    code = "previous_response_not_found" if param == "previous_response_id" else "response_not_found"
    return not_found(f"There is no response {response_id[:64]!r} that you made.", param, code=code)


async def to_conversation(
    input_items: str | tuple[Item, ...], store: TraceStore, caller: Caller
) -> tuple[Message, ...]:
    """The input of a request as messages.

    Raises:
        APIError: 404, a reference names an item that is not stored.
    """
    if isinstance(input_items, str):
        return (Message(role="user", content=input_items),)
    known = {item.id for item in input_items if not isinstance(item, ReferenceItem)}
    items: list[Item] = []
    for number, item in enumerate(input_items):
        if not isinstance(item, ReferenceItem):
            items.append(item)
        elif item.id not in known and not item.id.startswith("rs_"):
            items.append(await _referred(item.id, store, caller, f"input.{number}"))
    return _messages(tuple(items))


async def _referred(id_: str, store: TraceStore, caller: Caller, param: str) -> Item:
    unknown = not_found(
        f"There is no item {id_[:64]!r} that you made; send the item itself.", param, code="item_not_found"
    )
    match = _ITEM_ID.fullmatch(id_)
    if match is None:
        raise unknown
    try:
        trace = await find_trace(f"resp_{match['trace']}", store, caller, param)
    except APIError:
        raise unknown from None
    number = int(match["number"] or 0)
    if match["kind"] == "msg" and trace.answer:
        return MessageItem(role="assistant", content=trace.answer)
    if match["kind"] == "fc" and number < len(trace.tool_calls):
        call = answer_message(trace).tool_calls[number]
        return CallItem(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments)
    raise unknown


def _messages(items: tuple[Item, ...]) -> tuple[Message, ...]:
    """The input items as messages. Adjacent tool calls become one assistant message. Tool results stay together, and
    the notes and images that come with them follow."""
    messages: list[Message] = []
    later: list[Message] = []
    states: dict[int, str] = {}
    """The state of assistants' messages, by the index of the message. A state may come before or after its message."""
    for item in items:
        if not isinstance(item, ResultItem):
            messages += later
            later = []
        match item:
            case MessageItem():
                role = "system" if item.role == "developer" else item.role
                text, images = text_and_images(item.content)
                messages.append(Message(role=role, content=text, images=images))
            case CallItem():
                if not (messages and messages[-1].role == "assistant"):
                    messages.append(Message(role="assistant", content=""))
                call = ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
                calls = (*messages[-1].tool_calls, call)
                messages[-1] = messages[-1].model_copy(update={"tool_calls": calls})
            case ReasoningItem(encrypted_content=str() as state):
                follows = bool(messages) and messages[-1].role == "assistant"
                states[len(messages) - follows] = state
            case ResultItem(call_id=None):
                later.append(Message(role="system", content=f"{item.name}: {text_of(item.output)}"))
            case ResultItem():
                messages.append(Message(role="tool", content=text_of(item.output), tool_call_id=item.call_id))
                if images := images_of(item.output):
                    later.append(Message(role="user", content="(See the image.)", images=images))
    return (*(with_state(message, states.get(index)) for index, message in enumerate(messages)), *later)
