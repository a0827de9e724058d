"""Loops with the caller's tools in the three APIs: planned once, then all of it goes to the worker that called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import openai_client
from podium_testing import FaultServer, capable
from running_server import Serve

POOL = """
[conductor]
plans = "text"
base_url = "{url}"
model = "plans"

[[worker]]
name = "lark"
kind = "openai"
model = "lark-1"
base_url = "{url}"

[[worker]]
name = "quill"
kind = "openai"
model = "quill-1"
base_url = "{url}"
"""
PLAN = 'model_id = [1]\nsubtasks = ["Find out."]\naccess_list = [[]]'
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOLD = "The weather in a town."
WEATHER = {"Oslo": "snow", "Rome": "sun"}

Turn = Callable[[str], Any]
"""Asks one more question in a conversation, runs the tool that is called, and returns the last reply."""


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    models = {"plans": PLAN, "lark-1": capable, "quill-1": capable}
    with FaultServer(models=models).in_thread() as running:
        yield running


def chat(url: str, more: Mapping[str, Any]) -> Turn:
    client, messages = openai_client.client(url), []
    function = {"name": "get_weather", "description": TOLD, "parameters": SCHEMA}
    told: list[Any] = messages

    def ask() -> Any:
        reply = client.chat.completions.create(
            model="podium", messages=told, tools=[{"type": "function", "function": function}], **more
        )
        told.append(reply.choices[0].message.model_dump(exclude_none=True))
        return reply

    def turn(text: str) -> Any:
        told.append({"role": "user", "content": text})
        for call in ask().choices[0].message.tool_calls:
            town = json.loads(call.function.arguments)["town"]
            told.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER[town]})
        return ask()

    return turn


def responses(url: str, more: Mapping[str, Any]) -> Turn:
    client = openai_client.client(url)
    items: list[Any] = []
    tool: Any = {"type": "function", "name": "get_weather", "description": TOLD, "parameters": SCHEMA}

    def ask() -> Any:
        reply = client.responses.create(model="podium", input=items, tools=[tool], **more)
        items.extend(item.model_dump(exclude_none=True) for item in reply.output)
        return reply

    def turn(text: str) -> Any:
        items.append({"role": "user", "content": text})
        for call in ask().output:
            if call.type == "function_call":
                said = WEATHER[json.loads(call.arguments)["town"]]
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": said})
        return ask()

    return turn


def messages(url: str, more: Mapping[str, Any]) -> Turn:
    anthropic = pytest.importorskip("anthropic")
    client, told = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0), []
    tool = {"name": "get_weather", "description": TOLD, "input_schema": SCHEMA}

    def ask() -> Any:
        reply = client.messages.create(model="podium", max_tokens=99, messages=told, tools=[tool], **more)
        told.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        return reply

    def turn(text: str) -> Any:
        told.append({"role": "user", "content": text})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": WEATHER[block.input["town"]]}
            for block in ask().content
            if block.type == "tool_use"
        ]
        told.append({"role": "user", "content": results})
        return ask()

    return turn


@pytest.fixture(params=["traces.sqlite", None], ids=["with a store", "without"])
def url(serve: Serve, endpoint: FaultServer, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    pool = tmp_path / "pool.toml"
    pool.write_text(POOL.format(url=endpoint.url))
    return serve(str(pool), store=request.param and tmp_path / request.param)


@pytest.mark.parametrize(
    ("begin", "more"),
    [(chat, {}), (chat, {"store": False}), (responses, {}), (responses, {"store": False}), (messages, {})],
)
def test_a_loop_is_planned_once_and_stays_with_the_worker_that_called(
    url: str, endpoint: FaultServer, begin: Callable[[str, Mapping[str, Any]], Turn], more: Mapping[str, Any]
) -> None:
    turn = begin(url, more)
    for town, said in (("Oslo", "The tools say: snow"), ("Rome", "The tools say: snow; sun")):
        reply = turn(f"How is the weather in {town}?")
        assert reply.podium["planner"] == "single:quill"
        assert said in reply.model_dump_json()
        assert endpoint.requests[-1].body["messages"][-1]["role"] == "tool"
    assert [request.model for request in endpoint.requests] == ["plans", *["quill-1"] * 4]
    asked = endpoint.requests[0].body["messages"][-1]["content"]
    assert "Only the model of the last step is told of them" in asked
    assert f"get_weather: {TOLD}" in asked


@pytest.mark.parametrize(("trained", "told"), [("{}", False), ('{"prompt": {"tools": true}}', True)])
def test_trained_conductor_prompt_lists_tools_only_if_trained_with_tools(
    serve: Serve, endpoint: FaultServer, tmp_path: Path, trained: str, told: bool
) -> None:
    (tmp_path / "podium.json").write_text(trained)
    pool = tmp_path / "pool.toml"
    pool.write_text(POOL.format(url=endpoint.url).replace('plans = "text"', 'podium_file = "podium.json"'))
    chat(serve(str(pool)), {})("How is the weather in Oslo?")
    asked = endpoint.requests[0].body["messages"][-1]["content"]
    assert ("get_weather" in asked) == told
