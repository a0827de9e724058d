"""Reads tool calls that a model wrote into its text, where the server that runs it passes them on as text.

Small models do that in many forms: a JSON object or a list of them, bare, in a code fence, between tags, with doubled
braces, or as a call in Python. It counts only if the whole text is calls of tools that the request offers: an answer
that mentions such JSON beside prose stays an answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from podium.types import AnswerOptions, ToolCall

_NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input")
_OTHER_KEYS = frozenset({"type", "id", "index"})
_TAGS = ("tool_call", "function_call", "tool_calls", "tools", "function")
_OPENINGS = (*(f"<{tag}>" for tag in _TAGS), "<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]", "functools")
_TAGGED = "|".join(rf"{re.escape(opening)}|{re.escape(f'</{opening[1:]}')}" for opening in _OPENINGS)
_BETWEEN = re.compile(rf"(?:\s|[,;]|{_TAGGED})*")
_AFTER = re.compile(rf"(?:\s|;|{_TAGGED})*\Z")
_FENCE = re.compile(r"(?s)(`{3,}|~{3,})[ \t]*[\w-]*[ \t]*\n(.*?)\n?[ \t]*\1")
_FENCE_BEGUN = re.compile(r"`{1,2}\Z|~{1,2}\Z|(?:`{3,}|~{3,})[ \t]*[\w-]*[ \t]*\Z")
_FENCE_OPENED = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w-]*[ \t]*\n")
_KEY = re.compile(r'\[?\s*\{{1,2}\s*"(?P<key>[^"\\]*)"')
_KEY_BEGUN = re.compile(r'\[?\s*(?:\{{1,2}\s*(?:"[^"\\]*)?)?\Z')
_VALUE = re.compile(r'\s*:\s*(?:"(?P<name>[^"\\]*)"|(?P<other>[^\s"]))')
_MAX_CALL_CHARS = 64 << 10
"""The most characters of a text in which calls are looked for."""
_LONGEST_PYTHON = 8 << 10
"""The most characters of calls in Python, whose parser takes more time and memory."""


class TextToolCallParser:
    """The calls of the tools of these names in the text of one reply, which may come in pieces. Text that may be a call
    waits. If they are not `parallel`, only the first call counts."""

    def __init__(self, names: frozenset[str], *, parallel: bool = True) -> None:
        self._names = names
        self._parallel = parallel
        self._held: str | None = "" if names else None
        """The text that may be the beginning of a call. None once the text is known to be no call."""

    @classmethod
    def of(cls, options: AnswerOptions) -> TextToolCallParser:
        """Read the calls that a request with these options allows: none if it offers no tool, or wants text or JSON."""
        if not options.tools:
            return cls(frozenset())
        choice = options.tool_choice
        names = {tool["function"]["name"] for tool in options.tools if "function" in tool}
        if isinstance(choice, Mapping):
            names &= {choice.get("function", choice).get("name")}
        if choice == "none" or options.response_format is not None:
            names = set()
        return cls(frozenset(names), parallel=options.parallel_tool_calls is not False)

    def add(self, text: str) -> str:
        """The text that may be passed on now, with the next piece."""
        if self._held is None:
            return text
        self._held += text
        return "" if self._may_be_calls(self._held) else self._release()

    def end(self) -> str:
        """The rest of the text, if it is no call."""
        return "" if self._held is None or self.read(self._held) else self._release()

    def read(self, text: str) -> tuple[ToolCall, ...]:
        """The calls that `text` consists of, without ids; none if there is anything else in it."""
        text = text.strip()
        if not self._names or len(text) > _MAX_CALL_CHARS:
            return ()
        fenced = _FENCE.fullmatch(text)
        body = fenced.group(2).strip() if fenced else text
        try:
            calls = list(self._in_json(body)) or list(self._in_python(body))
        except (ValueError, RecursionError, MemoryError, SyntaxError):
            return ()
        return tuple(calls if self._parallel else calls[:1])

    def _release(self) -> str:
        held, self._held = self._held or "", None
        return held

    def _may_be_calls(self, text: str) -> bool:
        """Whether more text may make calls of this beginning."""
        rest = text.lstrip()
        if len(rest) > _MAX_CALL_CHARS:
            return False
        if _FENCE_BEGUN.match(rest):
            return True
        rest = _FENCE_OPENED.sub("", rest, count=1).lstrip()
        opening = next((opening_mark for opening_mark in _OPENINGS if rest.startswith(opening_mark)), "")
        rest = rest[len(opening) :].lstrip()
        if not rest or any(opening_mark.startswith(rest) for opening_mark in _OPENINGS):
            return True
        if rest.lstrip("[ \n")[:1] != "{":
            python = rest.lstrip("[ \n")
            return not python or any(python.startswith(f"{n}(") or n.startswith(python) for n in self._names)
        key = _KEY.match(rest)
        return _KEY_BEGUN.match(rest) is not None if key is None else self._may_begin(key)

    def _may_begin(self, key: re.Match[str]) -> bool:
        if key.group("key") not in _NAME_KEYS:
            return key.group("key") in {*_ARGUMENT_KEYS, *_OTHER_KEYS, "tool_calls"}
        value = _VALUE.match(key.string, key.end())
        return value is None or value.group("name") in self._names or value.group("other") == "{"

    def _in_json(self, text: str) -> Iterator[ToolCall]:
        """The calls in JSON values that stand one after the other, with or without tags. A `ValueError` says that
        something else stands there."""
        position = _value_start(text, 0)
        if text[position:].lstrip("[ \n")[:1] != "{":
            return
        if text[position:].lstrip("[ \n").startswith("{{"):
            text = text.replace("{{", "{").replace("}}", "}")
        decoder = json.JSONDecoder()
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            if isinstance(value, dict) and value.keys() == {"tool_calls"}:
                value = value["tool_calls"]
            for entry in value if isinstance(value, list) else [value]:
                yield self._call_of(entry)
            position = _value_start(text, end)

    def _call_of(self, entry: Any) -> ToolCall:
        if isinstance(entry, dict) and isinstance(inner := entry.get("function"), dict):
            if entry.keys() - {"function"} - _OTHER_KEYS:
                raise ValueError("no call")
            entry = inner
        if not isinstance(entry, dict):
            raise ValueError("no call")
        keys = entry.keys() - _OTHER_KEYS
        named = [key for key in _NAME_KEYS if key in keys]
        given = [key for key in _ARGUMENT_KEYS if key in keys]
        if len(named) != 1 or len(given) != 1 or len(keys) != 2:
            raise ValueError("no call")
        return self._call(entry[named[0]], entry[given[0]])

    def _call(self, name: Any, arguments: Any) -> ToolCall:
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if not (isinstance(name, str) and name in self._names and isinstance(arguments, dict)):
            raise ValueError("no call of a tool that is offered")
        written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        return ToolCall(id="", name=name, arguments=written)

    def _in_python(self, text: str) -> Iterator[ToolCall]:
        """The call, or the list of calls, with keyword arguments that are literals. A `ValueError` or `SyntaxError`
        says that something else stands there."""
        text = _AFTER.sub("", text[_value_start(text, 0) :])
        if len(text) > _LONGEST_PYTHON or not any(f"{name}(" in text for name in self._names):
            return
        parsed = ast.parse(text, mode="eval").body
        for call in parsed.elts if isinstance(parsed, ast.List | ast.Tuple) else [parsed]:
            if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
                raise ValueError("no call")
            if any(keyword.arg is None for keyword in call.keywords):
                raise ValueError("arguments that are not written out")
            arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
            yield self._call(call.func.id, arguments)


def _value_start(text: str, position: int) -> int:
    between = _BETWEEN.match(text, position)
    return position if between is None else between.end()
