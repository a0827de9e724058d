"""One tool loop through each API, with the providers' own packages and real tool calls of Qwen2.5-Coder-1.5B.

`runs/real-models.sh` runs it; it is not collected with the others, since the model has a gigabyte.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI
from served_process import served

ASKED = "How is the weather in Oslo today? Answer in one sentence."
SEEN = "Heavy snow, 7 degrees below zero."
DESCRIPTION = "The weather in a town."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
FUNCTION: dict[str, Any] = {"name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA}


def chat(url: str) -> tuple[Any, str]:
    """The arguments of the model's call, and its answer to the tool's result."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    tools: Any = [{"type": "function", "function": FUNCTION}]
    said: list[Any] = [{"role": "user", "content": ASKED}]
    first = client.chat.completions.create(model="podium", messages=said, tools=tools, tool_choice="required")
    (call,) = first.choices[0].message.tool_calls
    assert first.choices[0].finish_reason == "tool_calls"
    said.append(first.choices[0].message.model_dump(exclude_none=True))
    said.append({"role": "tool", "tool_call_id": call.id, "content": SEEN})
    second = client.chat.completions.create(model="podium", messages=said, tools=tools, tool_choice="none")
    return json.loads(call.function.arguments), second.choices[0].message.content


def responses(url: str) -> tuple[Any, str]:
    """As `chat`."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    tools: Any = [{"type": "function", **FUNCTION}]
    first = client.responses.create(model="podium", input=ASKED, tools=tools, tool_choice="required")
    (call,) = [item for item in first.output if item.type == "function_call"]
    second = client.responses.create(
        model="podium",
        previous_response_id=first.id,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": SEEN}],
        tools=tools,
        tool_choice="none",
    )
    return json.loads(call.arguments), second.output_text


def messages(url: str) -> tuple[Any, str]:
    """As `chat`."""
    client = Anthropic(base_url=url, api_key="none", max_retries=0)
    tools: Any = [{"name": "get_weather", "description": DESCRIPTION, "input_schema": SCHEMA}]
    said: list[Any] = [{"role": "user", "content": ASKED}]
    first = client.messages.create(
        model="podium", max_tokens=200, messages=said, tools=tools, tool_choice={"type": "any"}
    )
    (call,) = [block for block in first.content if block.type == "tool_use"]
    assert first.stop_reason == "tool_use"
    said.append({"role": "assistant", "content": [block.model_dump() for block in first.content]})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": SEEN}
    said.append({"role": "user", "content": [result]})
    second = client.messages.create(
        model="podium", max_tokens=200, messages=said, tools=tools, tool_choice={"type": "none"}
    )
    return call.input, "".join(block.text for block in second.content if block.type == "text")


@pytest.mark.parametrize("api", [chat, responses, messages])
def test_a_real_model_calls_a_tool_and_reads_its_result(
    api: Callable[[str], tuple[Any, str]], endpoint: Callable[[str], str], tmp_path: Path
) -> None:
    pool = tmp_path / "pool.toml"
    pool.write_text(
        '[[worker]]\nname = "qwen"\nkind = "openai"\nmodel = "qwen-1.5b"\ntemperature = 0.0\ncalls_tools = true\n'
        f'base_url = "{endpoint("qwen-1.5b")}"\nlimits = {{ max_tokens = 200, timeout = 300 }}\n'
    )
    with served(tmp_path, "--pool", str(pool), "--planner", "single:qwen") as server:
        arguments, answer = api(server.url)
    assert arguments == {"town": "Oslo"}
    assert "snow" in answer.lower()
