"""Functions of the caller, as a request describes them, and the calls that a worker makes of them.

Passed on as they are: they are run by the caller alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from podium.server.api_errors import invalid
from podium.server.body import Part, Several
from podium.types import ToolCall

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
MOST = 128
"""Tools of one request."""
_ID = re.compile(r"call_([0-9a-f]{32})_(\d{1,3})")


class Function(Part):
    """What a worker may have called."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Part):
    """A tool of the one kind that there is."""

    type: Literal["function"]
    function: Function


class ChosenName(Part):
    name: FunctionName


class ChosenTool(Part):
    """The one tool that has to be called."""

    type: Literal["function"]
    function: ChosenName


class CalledFunction(Part):
    name: str
    arguments: str


class Called(Part):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


ToolChoice = Literal["none", "auto", "required"] | ChosenTool
Tools = Annotated[Several[Tool], Field(max_length=MOST)]


def check_choice(tools: Sequence[str], choice: str | None, parallel: bool | None, param: str) -> None:
    """Refuse what is said of tools that there are not.

    Args:
        tools: the names of those that there are.
        choice: the one that has to be called; or a word, which is none.
        param: where that one is named.

    Raises:
        APIError: 400.
    """
    if not tools and (choice is not None or parallel is not None):
        name = "parallel_tool_calls" if choice is None else "tool_choice"
        raise invalid(f"{name} is about tools, and the request has none.", name)
    if choice is not None and choice not in ("none", "auto", "required", *tools):
        raise invalid(f"tool_choice names {choice!r}; the request's tools are {', '.join(tools)}.", param)


def call_id(trace_id: str, number: int) -> str:
    """The id under which a caller is told of a call: it names the trace. At most 40 characters, OpenAI's limit."""
    return f"call_{trace_id}_{number}"


def named_trace(id_: str) -> tuple[str, int] | None:
    """The trace and the number of the call that an id names; None: it is not one of ours."""
    match = _ID.fullmatch(id_)
    return None if match is None else (match[1], int(match[2]))


def written_call(call: ToolCall, trace_id: str, number: int) -> dict[str, Any]:
    """A call as a chat completion has it."""
    return {
        "id": call_id(trace_id, number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
