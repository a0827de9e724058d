"""The tools of a request in OpenAI's two APIs: functions, the choice among functions, and calls in earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.server.conversation import check_has_tools, check_tool_name
from podium.server.requests import BodyPart, ListOf, UnsupportedTool

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
MAX_TOOLS = 128
"""The most tools of one request."""


class SentPart(BodyPart):
    """A part of the body that is sent to workers' endpoints."""

    @property
    def sent(self) -> dict[str, Any]:
        """The part's known fields besides its type, as the caller wrote them."""
        return self.model_dump(
            exclude_unset=True, by_alias=True, include=type(self).model_fields.keys() - {"type"}
        )


class Function(SentPart):
    """A function that a worker may call."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(BodyPart):
    """A function as a tool."""

    type: Literal["function"]
    function: Function


def tool_kind(tool: Any) -> str:
    """The discriminator of a tool or of a choice: "function" or "foreign"."""
    return "function" if not isinstance(tool, dict) or tool.get("type") == "function" else "foreign"


class ChosenName(BodyPart):
    name: FunctionName


class ChosenTool(BodyPart):
    """The one tool that must be called."""

    type: Literal["function"]
    function: ChosenName


class FunctionCall(BodyPart):
    name: str
    arguments: str


class ToolCallPart(BodyPart):
    """A tool call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall
    extra_content: dict[str, Any] | None = None
    """Provider state (`podium.server.provider_state`)."""


class FlatChoice(BodyPart):
    """A `ChosenTool` in the flat form of the Responses API."""

    type: Literal["function"]
    name: FunctionName


class UnsupportedChoice(UnsupportedTool):
    """The choice of a tool of another type."""


Choice = Literal["none", "auto", "required"]
ToolChoice = (
    Choice
    | Annotated[
        Annotated[ChosenTool, Tag("function")] | Annotated[UnsupportedChoice, Tag("foreign")],
        Discriminator(tool_kind),
    ]
)
_AnyTool = Annotated[
    Annotated[Tool, Tag("function")] | Annotated[UnsupportedTool, Tag("foreign")], Discriminator(tool_kind)
]
Tools = Annotated[ListOf[_AnyTool], Field(max_length=MAX_TOOLS)]


def check_tool_choice(
    tools: Sequence[str],
    choice: str | ChosenTool | FlatChoice | UnsupportedChoice | None,
    parallel: bool | None,
) -> tuple[str | dict[str, Any] | None, bool | None]:
    """Check a request's choice among `tools`, the names of its functions, and return `tool_choice` and
    `parallel_tool_calls` as in a chat completion.

    Raises:
        APIError: 400, the choice refers to a tool that the request does not have.
    """
    if choice not in (None, "none", "auto"):
        check_has_tools(tools, "tool_choice")
    if not tools:
        return None, None
    if isinstance(choice, UnsupportedChoice):
        return None, parallel
    if choice is None or isinstance(choice, str):
        return choice, parallel
    flat = isinstance(choice, FlatChoice)
    wanted = choice.name if isinstance(choice, FlatChoice) else choice.function.name
    check_tool_name(tools, wanted, "tool_choice.name" if flat else "tool_choice.function.name")
    return {"type": "function", "function": {"name": wanted}}, parallel
