"""Checks of a request's choice among its tools, which all APIs share."""

from __future__ import annotations

from collections.abc import Sequence

from podium.server.api_errors import invalid


def check_has_tools(tools: Sequence[str], field: str) -> None:
    """Check that the request has functions.

    Args:
        tools: the names of the request's functions.
        field: the field that is about them.

    Raises:
        APIError: 400, it has none.
    """
    if not tools:
        raise invalid(f"{field} is about tools, and the request has none.", field)


def check_tool_name(tools: Sequence[str], name: str, field: str) -> None:
    """Check that the tool that must be called is one of the request's functions.

    Args:
        field: the field with the name.

    Raises:
        APIError: 400, the request has no function of this name.
    """
    if name not in tools:
        raise invalid(f"tool_choice names {name!r}; the request's tools are {', '.join(tools)}.", field)
