"""Bodies that would be dear to read, check or refuse: a table that grows with every one that is found.

Each is within what a server takes of bytes. `benchmarks/bodies.py` measures what others notice of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ASK = "/api/ask"
HELLO = {"role": "user", "content": "Hello?"}
LONG = 10_000_000
"""Characters of what is too long; a server takes 20 MiB of a body."""


@dataclass(frozen=True)
class Hostile:
    """One body, and how it is refused."""

    name: str
    code: str
    """Of the refusal; "": it has none."""
    body: Callable[[], bytes]
    path: str = CHAT


def chat(*messages: Any, **more: Any) -> bytes:
    """The body of a chat completion."""
    return json.dumps({"model": "nobody", "messages": messages or [HELLO], **more}).encode()


@cache
def named(count: int, value: Any = 1) -> dict[str, Any]:
    """An object of as many members, made once: it takes longer than to refuse it."""
    return {f"k{number}": value for number in range(count)}


def text(part: str, count: int = 1) -> dict[str, Any]:
    """A message of as many parts."""
    return HELLO | {"content": [{"type": "text", "text": part}] * count}


UNKNOWN = "model_not_found"
MANY = "too_many_values"
INVALID = "invalid_value"

HOSTILE = (
    # More values than are taken.
    Hostile("empty messages", MANY, lambda: chat(*[{}] * 1_400_000)),
    Hostile("numbers in stop", MANY, lambda: chat(stop=[1] * 1_900_000)),
    Hostile("valid messages", MANY, lambda: chat(*[HELLO] * 200_000)),
    Hostile("parts of a message", MANY, lambda: chat(text("a", 200_000))),
    Hostile("fields of a message", MANY, lambda: chat(HELLO | named(400_000))),
    Hostile("fields", MANY, lambda: chat(**named(400_000))),
    Hostile("metadata", MANY, lambda: chat(metadata=named(400_000))),
    Hostile("values of a schema", MANY, lambda: chat(tools=[tool(named(400_000))])),
    Hostile("empty items", MANY, lambda: response([{}] * 1_400_000), RESPONSES),
    Hostile("workers", MANY, lambda: ask(deny=[1] * 1_900_000), ASK),
    # As many values as are taken, at places that do not take them.
    Hostile("messages with a fault", "missing_field", lambda: chat(*[{}] * 14_000)),
    Hostile("more messages than are taken", INVALID, lambda: chat(*[HELLO] * 9_000)),
    Hostile("more parts than are taken", INVALID, lambda: chat(text("a", 9_000))),
    Hostile("items with a fault", "missing_field", lambda: response([{}] * 14_000), RESPONSES),
    Hostile("more items than are taken", INVALID, lambda: response([HELLO] * 9_000), RESPONSES),
    Hostile("as many fields of a message", "model_not_found", lambda: chat(HELLO | named(29_000))),
    Hostile("as many long fields", "model_not_found", lambda: chat(HELLO | named(29_000, "x" * 300))),
    Hostile("as many fields", "unknown_field", lambda: chat(model="ada", **named(29_000))),
    Hostile("as much metadata", INVALID, lambda: chat(metadata=named(29_000))),
    Hostile("names of no text", INVALID, lambda: ask(allow=[1] * 29_000), ASK),
    # One that is long.
    Hostile("a long model", INVALID, lambda: chat(model="a" * LONG)),
    Hostile("a long planner", INVALID, lambda: ask(planner="single:" + "a" * LONG), ASK),
    Hostile("a long worker", INVALID, lambda: ask(deny=["a" * LONG]), ASK),
    Hostile("a long field", "unknown_field", lambda: chat(model="ada", **{"a" * LONG: 1})),
    Hostile("a long field of a message", "model_not_found", lambda: chat(HELLO | {"a" * LONG: 1})),
    Hostile("a long role", INVALID, lambda: chat(HELLO | {"role": "a" * LONG})),
    Hostile("a long kind of part", INVALID, lambda: chat(HELLO | {"content": [{"type": "a" * LONG}]})),
    Hostile("a long kind of item", INVALID, lambda: response([{"type": "a" * LONG}]), RESPONSES),
    Hostile(
        "a long answered call",
        UNKNOWN,
        lambda: chat({"role": "tool", "content": "", "tool_call_id": "a" * LONG}),
    ),
    Hostile("a long number", "invalid_json", lambda: b'{"seed": ' + b"9" * LONG + b"}"),
    Hostile("a long fraction", "missing_field", lambda: b'{"temperature": 0.' + b"9" * LONG + b"}"),
    Hostile("a long text of a question", UNKNOWN, lambda: chat(text("a" * LONG))),
    Hostile("a long question to the Conductor", "", lambda: chat(text("ab " * (LONG // 3)), model="podium")),
    Hostile("a long text of escapes", UNKNOWN, lambda: chat(text("\u00e9" * 3_300_000))),
    Hostile("a long text of escapes with a fault", INVALID, lambda: chat(text("\n" * LONG) | {"role": "x"})),
    # No JSON.
    Hostile("spaces", "missing_field", lambda: b"{" + b" " * LONG + b"}"),
    Hostile("a text that never ends", "invalid_json", lambda: b'{"a": "' + b'\\"' * LONG),
    Hostile("brackets that never end", "too_deep", lambda: b"[" * LONG),
    Hostile("brackets that never began", "invalid_json", lambda: b"]" * LONG),
    Hostile("quotes", "invalid_json", lambda: b'"' * LONG),
    Hostile("backslashes", "invalid_json", lambda: b"\\" * LONG),
    Hostile("no UTF-8", "invalid_json", lambda: b'"' + b"\xff" * LONG + b'"'),
)


def tool(parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool with this schema."""
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def response(items: list[Any]) -> bytes:
    """The body of a request for a response."""
    return json.dumps({"model": "nobody", "input": items}).encode()


def ask(**more: Any) -> bytes:
    """The body of a question that nobody waits for."""
    return json.dumps({"question": "Hello?", **more}).encode()
