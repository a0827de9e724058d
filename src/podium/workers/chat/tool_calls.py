"""Collects the tool calls of one reply, in every form that providers give them.

Arguments come as JSON text or as objects; pieces of a stream come with an index for each call, with one index for all,
or with none; the old form is one `function_call`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.types import ToolCall

_CALL = 2048
"""Added to `length` for each tool call, because even an empty tool call takes memory."""
_MAX_CHECKED_CHARS = 16 << 10
"""The longest arguments that are parsed while the call may go on."""
CALL_STATE_KEYS = frozenset({"extra_content", "thought_signature", "provider_specific_fields"})
"""What providers want back with a call."""


def is_cut(call: ToolCall) -> bool:
    """Whether the arguments are the beginning of JSON text, and not the whole."""
    try:
        json.loads(call.arguments)
    except json.JSONDecodeError as error:
        return error.pos >= len(call.arguments.rstrip()) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


@dataclass(slots=True)
class _Begun:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    length: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object, so that another call must follow."""
        if not self.arguments or self.length > _MAX_CHECKED_CHARS or not self.arguments[-1].endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


class ToolCallCollector:
    """Collects the tool calls of one message, from a whole reply or from the chunks of a stream."""

    def __init__(self) -> None:
        self.length = 0
        """Characters collected, with `_CALL` for each call."""
        self._calls: list[_Begun] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, message: Mapping[str, Any], *, whole: bool) -> None:
        """Add the calls of a delta, which may continue others, or of a whole message, in which each entry is a call of
        its own."""
        pieces = message.get("tool_calls")
        if isinstance(pieces, list) and pieces:
            for position, piece in enumerate(pieces):
                if isinstance(piece, dict):
                    function = piece.get("function")
                    self._take(
                        piece, function if isinstance(function, dict) else {}, None if whole else position
                    )
        elif isinstance(old := message.get("function_call"), dict) and (not self._calls or not whole):
            self._take({"index": "function_call"}, old, None if whole else 0)

    def read(self) -> tuple[ToolCall, ...]:
        """The calls that have a name, in order. The id of one without an id is empty."""
        ordered = sorted(self._calls, key=lambda call: call.index if isinstance(call.index, int) else 0)
        return tuple(
            ToolCall(
                id=call.id,
                name=call.name,
                arguments="".join(call.arguments).strip() or "{}",
                provider_state=json.dumps(call.state) if call.state else "",
            )
            for call in ordered
            if call.name
        )

    def _take(self, piece: Mapping[str, Any], function: Mapping[str, Any], position: int | None) -> None:
        """Add one piece. `position` is its own in its delta, or None for a whole call."""
        id_ = _text(piece.get("id"))
        name = _text(function.get("name") or piece.get("name"))
        call = None if position is None else self._call_to_continue(piece.get("index"), id_, name, position)
        if call is None:
            call = _Begun(piece.get("index"))
            self._calls.append(call)
            self.length += _CALL
        call.id, call.name = call.id or id_, call.name or name
        arguments = function.get("arguments", piece.get("arguments"))
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments[:] = [json.dumps(arguments, ensure_ascii=False)]
        added = len(id_) + len(name) + (len(call.arguments[-1]) if arguments is not None else 0)
        for holder in (piece, function):
            for key in CALL_STATE_KEYS:
                if value := holder.get(key):
                    call.state[key] = value
                    added += len(json.dumps(value))
        call.length += added
        self.length += added

    def _call_to_continue(self, index: object, id_: str, name: str, position: int) -> _Begun | None:
        """The call that a piece continues, or None if it begins one."""
        if isinstance(index, int | str):
            call = next((call for call in reversed(self._calls) if call.index == index), None)
        elif id_:
            call = next((call for call in reversed(self._calls) if call.id == id_), None)
        elif position < len(self._calls) and position > 0:
            call = self._calls[position]
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or (id_ and call.id and call.id != id_) or (name and call.name and call.is_whole):
            return None
        return call


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
