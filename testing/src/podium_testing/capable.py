"""A rule-based model that follows requests: it calls tools, writes JSON for a schema, reasons and recalls names.

Use it to test an API: a test then fails because of the API, and never because a real model did not follow the request.
Its reasoning is a fixed text, and it knows nothing. `FaultServer(capable)` serves it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from podium.types import ToolCall, estimate_tokens
from podium_testing.completion import Answer, content_text

_EXACTLY = re.compile(r"\b(?:exactly|only|just)[:,]?\s+[\"'`]?([\w-]+)", re.I)
_NAMED = re.compile(r"\b(?:my name is|(?:secret |code ?)word(?: is)?[: ]) *([\w-]+)", re.I)
_FENCED = re.compile(r"(.*?)\n<<<end (\w+)>>>\n.*<<<your subtask \2>>>", re.S)
"""The question, and the end of it, in Podium's messages to a worker."""
_PROPER = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_NUMBER = re.compile(r"-?\d+")
_TOKEN = re.compile(r"\s*\S+|\s+")
_WORD = re.compile(r"[a-z]{3,}")
_FILLERS = frozenset({"get", "the", "for", "and", "what", "current", "given", "call", "use", "tool", "with"})


def capable(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    """The answer to a request. It calls tools that the question seems to be about, or that the request demands."""
    question = next((content_text(m.get("content")) for m in reversed(messages) if m["role"] == "user"), "")
    if fenced := _FENCED.match(question):
        question = fenced[1]
    calls = () if messages[-1]["role"] == "tool" else _calls(question, body)
    text = "" if calls else _text(messages, question, body)
    for stop in [body["stop"]] if isinstance(body.get("stop"), str) else body.get("stop") or ():
        text = text.partition(stop)[0]
    effort = body.get("reasoning_effort") or ("low" if "think" in question.lower() else "none")
    thinks = effort != "none"
    reasoning = f"The user asks: {question[:80]} I consider it step by step." if thinks else ""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit is not None and estimate_tokens(text) > limit:
        return Answer(text[: 4 * limit], finish_reason="length", reasoning=reasoning, output_tokens=limit)
    logprobs = _logprobs(text, body.get("top_logprobs") or 0) if body.get("logprobs") is True else None
    return Answer(text, reasoning=reasoning, tool_calls=calls, logprobs=logprobs)


def _logprobs(text: str, top: int) -> dict[str, Any]:
    """Made-up log probabilities: every word is a token, and nearly certain."""
    tokens = [
        {"token": token, "logprob": -0.01, "bytes": list(token.encode())} for token in _TOKEN.findall(text)
    ]
    return {"content": [{**one, "top_logprobs": [one] * min(top, 1)} for one in tokens], "refusal": None}


def _calls(question: str, body: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    tools = [tool["function"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice") or "auto"
    if choice == "none" or not tools:
        return ()
    if isinstance(choice, dict):
        tools = [tool for tool in tools if tool["name"] == choice["function"]["name"]]
    else:
        about = set(_WORD.findall(question.lower())) - _FILLERS
        fitting = [tool for tool in tools if about & _words(tool)]
        tools = fitting or (tools[:1] if choice == "required" else [])
    nouns = _PROPER.findall(question.partition(" ")[2])
    calls = [(tool, nouns) for tool in tools]
    if len(tools) == 1 and " and " in question and body.get("parallel_tool_calls") is not False:
        calls = [(tools[0], [noun]) for noun in nouns] or calls
    if body.get("parallel_tool_calls") is False:
        calls = calls[:1]
    return tuple(
        ToolCall(
            id=f"call_{number}_{len(body['messages'])}",
            name=tool["name"],
            arguments=json.dumps(_instance(tool.get("parameters") or {}, question, proper)),
        )
        for number, (tool, proper) in enumerate(calls)
    )


def _words(tool: Mapping[str, Any]) -> set[str]:
    text = f"{tool['name'].replace('_', ' ')} {tool.get('description') or ''}".lower()
    return set(_WORD.findall(text)) - _FILLERS


def _text(messages: Sequence[Mapping[str, Any]], question: str, body: Mapping[str, Any]) -> str:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"].get("schema") or {}
        return json.dumps(_instance(schema, question, _PROPER.findall(question)))
    if wanted.get("type") == "json_object":
        return json.dumps({"answer": "yes"})
    if messages[-1]["role"] == "tool":
        found = [content_text(m.get("content")) for m in messages if m["role"] == "tool"]
        return f"The tools say: {'; '.join(found)}"
    return _said(messages, question)


def _said(messages: Sequence[Mapping[str, Any]], question: str) -> str:
    """A text answer, for which no format is required."""
    earlier = "\n".join(content_text(m.get("content")) for m in messages[:-1])
    if known := _NAMED.findall(earlier):
        return f"It is {known[-1]}."
    if exactly := _EXACTLY.search(question):
        return exactly[1]
    if "from 1 to" in question:
        return ", ".join(map(str, range(1, int(_NUMBER.findall(question)[-1]) + 1)))
    pictures = sum(isinstance(m.get("content"), list) for m in messages)
    return f"You said: {question[:200]}" + (f" I see {pictures} picture." if pictures else "")


def _instance(schema: Mapping[str, Any], question: str, proper: Sequence[str]) -> Any:
    """A value that fits a JSON schema, filled with what the question names."""
    if options := [schema["const"]] if "const" in schema else schema.get("enum"):
        return next((one for one in options if str(one).lower() in question.lower()), options[0])
    if forms := (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        return _instance(forms[0], question, proper)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        inside = schema.get("properties") or {}
        return {name: _instance(one, question, proper) for name, one in inside.items()}
    if kind == "array":
        return [_instance(schema.get("items") or {}, question, proper)] * max(1, schema.get("minItems", 1))
    number = (_NUMBER.findall(question) or ["1"])[0]
    plain = {"integer": int(number), "number": float(number), "boolean": True, "null": None}
    return plain.get(kind, proper[0] if proper else "text")
