"""A loop with a tool that is really run, in each of the three APIs, with published models behind llama.cpp."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from model_files import MODELS

sys.path.append(str(Path(__file__).parents[1] / "server"))

from running_server import Serve

pytestmark = pytest.mark.timeout(900)

ASKED = {
    "smol": 'Reply with this JSON, word for word:\n```json\n{"name": "multiply", "arguments": {"a": 6, "b": 7}}\n```',
    "qwen-1.5b": "Multiply 4821 by 377 with the tool, and then tell me the product.",
}
"""The small one decides nothing by itself. Both write their calls as text, which llama.cpp passes on."""
TOKENS = {"smol": 60, "qwen-1.5b": 200}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
TOOL = {"name": "multiply", "description": "Gives the product of two numbers."}
WORKER = """
[[worker]]
name = "writer"
kind = "openai"
model = "{name}"
base_url = "{url}"
temperature = 0.0
limits = {{ max_tokens = {tokens}, retries = 0, timeout = 800 }}
"""

Post = Callable[[str, dict[str, Any]], dict[str, Any]]


def product(arguments: dict[str, Any]) -> str:
    assert arguments.keys() == {"a", "b"}
    return str(arguments["a"] * arguments["b"])


def chat(post: Post, asked: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    more = {"tools": [{"type": "function", "function": {**TOOL, "parameters": SCHEMA}}]}
    reply = post("/v1/chat/completions", {"messages": messages, "tool_choice": "required", **more})
    message = reply["choices"][0]["message"]
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    messages.append(message)
    for call in message["tool_calls"]:
        said = product(json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    reply = post("/v1/chat/completions", {"messages": messages, "tool_choice": "none", **more})
    text: str = reply["choices"][0]["message"]["content"]
    return text


def responses(post: Post, asked: str) -> str:
    items: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    more = {"tools": [{"type": "function", **TOOL, "parameters": SCHEMA}]}
    output = post("/v1/responses", {"input": items, "tool_choice": "required", **more})["output"]
    calls = [item for item in output if item["type"] == "function_call"]
    assert calls
    items += output
    for call in calls:
        said = product(json.loads(call["arguments"]))
        items.append({"type": "function_call_output", "call_id": call["call_id"], "output": said})
    output = post("/v1/responses", {"input": items, "tool_choice": "none", **more})["output"]
    return "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])


def messages(post: Post, asked: str) -> str:
    told: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    more = {"tools": [{**TOOL, "input_schema": SCHEMA}], "max_tokens": 200}
    reply = post("/v1/messages", {"messages": told, "tool_choice": {"type": "any"}, **more})
    assert reply["stop_reason"] == "tool_use"
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": product(block["input"])}
        for block in reply["content"]
        if block["type"] == "tool_use"
    ]
    told += [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": results}]
    reply = post("/v1/messages", {"messages": told, "tool_choice": {"type": "none"}, **more})
    return "".join(block["text"] for block in reply["content"] if block["type"] == "text")


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    with Serve() as starting:
        yield starting


@pytest.mark.parametrize("loop", [chat, responses, messages])
@pytest.mark.parametrize("name", [name for name in ASKED if (MODELS / f"{name}.gguf").exists()])
def test_real_model_calls_a_tool_and_answers_with_its_result(
    endpoint: Callable[[str], str], serve: Serve, tmp_path: Path, name: str, loop: Callable[[Post, str], str]
) -> None:
    pool = tmp_path / "pool.toml"
    pool.write_text(WORKER.format(name=name, url=endpoint(name), tokens=TOKENS[name]))
    url = serve(str(pool), planner="single:writer")

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = httpx.post(f"{url}{path}", json={"model": "writer", **body}, timeout=800)
        assert reply.status_code == 200, reply.text
        told: dict[str, Any] = reply.json()
        return told

    answer = loop(post, ASKED[name])
    assert answer.strip()
    if name == "qwen-1.5b":
        assert str(4821 * 377) in answer.replace(",", "").replace(" ", "")
