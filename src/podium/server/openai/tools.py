"""The tools of a request in OpenAI's two APIs: functions, the choice among functions, and calls in earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.server.conversation import check_tool_choice
from podium.server.requests import BodyPart, ListOf, UnsupportedTool

T = TypeVar("T", bound=BodyPart)

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class SentPart(BodyPart):
    """A part of the body that is sent to workers' endpoints."""

    @property
    def sent(self) -> dict[str, Any]:
        """The part's known fields besides its type, as the caller wrote them."""
        return self.model_dump(
            exclude_unset=True, by_alias=True, include=type(self).model_fields.keys() - {"type"}
        )


class Function(SentPart):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(BodyPart):
    type: Literal["function"]
    function: Function


def _tool_kind(tool: Any) -> str:
    """The discriminator of a tool or of a choice: "function" or "foreign"."""
    return "function" if not isinstance(tool, dict) or tool.get("type") == "function" else "foreign"


class FlatTool(Function):
    """A function as a tool, in the flat form of the Responses API."""

    type: Literal["function"]

    @property
    def function(self) -> Function:
        """The function, which the tool itself is."""
        return self


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
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall
    extra_content: dict[str, Any] | None = None
    """Provider state (`podium.server.answer_state`)."""


class FlatChoice(ChosenName):
    """A `ChosenTool` in the flat form of the Responses API."""

    type: Literal["function"]

    @property
    def function(self) -> ChosenName:
        """The function, which the choice itself is."""
        return self


_FunctionOrOther = Annotated[
    Annotated[T, Tag("function")] | Annotated[UnsupportedTool, Tag("foreign")], Discriminator(_tool_kind)
]
_Choice = Literal["none", "auto", "required"]
ToolChoice = _Choice | _FunctionOrOther[ChosenTool]
FlatToolChoice = _Choice | _FunctionOrOther[FlatChoice]
Tools = Annotated[ListOf[_FunctionOrOther[Tool]], Field(max_length=128)]
FlatTools = Annotated[ListOf[_FunctionOrOther[FlatTool]], Field(max_length=128)]


def tool_options(
    tools: Sequence[Tool | FlatTool | UnsupportedTool] | None,
    choice: ToolChoice | FlatToolChoice | None,
    parallel: bool | None,
) -> dict[str, Any]:
    """The fields of `AnswerOptions` about tools, in the form of a chat completion.

    Raises:
        APIError: 400, the choice refers to a tool that the request does not have.
    """
    functions = [tool.function for tool in tools or () if not isinstance(tool, UnsupportedTool)]
    names = [function.name for function in functions]
    if choice not in (None, "none", "auto"):
        check_tool_choice(names)
    if not functions:
        return {}
    chosen: str | dict[str, Any] | None = None
    if isinstance(choice, str):
        chosen = choice
    elif isinstance(choice, ChosenTool | FlatChoice):
        field = "tool_choice.name" if isinstance(choice, FlatChoice) else "tool_choice.function.name"
        check_tool_choice(names, choice.function.name, field)
        chosen = {"type": "function", "function": {"name": choice.function.name}}
    return {
        "tools": tuple({"type": "function", "function": function.sent} for function in functions),
        "tool_choice": chosen,
        "parallel_tool_calls": parallel,
    }
