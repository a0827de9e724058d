from __future__ import annotations

import json
from typing import Any

import pytest

from podium_testing import capable

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a town.",
        "parameters": {
            "type": "object",
            "properties": {
                "town": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
                "days": {"type": "integer"},
            },
        },
    },
}
TIME = {"type": "function", "function": {"name": "clock", "description": "Tells the time."}}


def ask(text: str, *earlier: dict[str, Any], **body: Any) -> Any:
    messages = [*earlier, {"role": "user", "content": text}]
    return capable(messages, {"messages": messages, **body})


def test_capable_model_calls_the_matching_tool_with_fitting_arguments() -> None:
    [call] = ask("How is the weather in Oslo in kelvin for 3 days?", tools=[TIME, WEATHER]).tool_calls
    assert call.name == "get_weather"
    assert json.loads(call.arguments) == {"town": "Oslo", "unit": "kelvin", "days": 3}


@pytest.mark.parametrize(
    ("text", "choice", "called"),
    [
        ("Hello.", "auto", []),
        ("Hello.", "required", ["clock"]),
        ("How is the weather?", "none", []),
        ("Hello.", {"type": "function", "function": {"name": "get_weather"}}, ["get_weather"]),
        ("How is the weather in Oslo and Rome?", "auto", ["get_weather", "get_weather"]),
    ],
)
def test_capable_model_obeys_tool_choice(text: str, choice: Any, called: list[str]) -> None:
    answer = ask(text, tools=[TIME, WEATHER], tool_choice=choice)
    assert [call.name for call in answer.tool_calls] == called


def test_capable_model_honours_schema_limit_stop_and_reasoning_effort() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    assert json.loads(ask("Give me 7", response_format=wanted).text) == {"n": 7}
    assert ask("Count from 1 to 30.", max_tokens=1).finish_reason == "length"
    assert ask("Count from 1 to 9.", stop=["4"]).text == "1, 2, 3, "
    assert ask("Hello.", reasoning_effort="high").reasoning
    assert not ask("Think.", reasoning_effort="none").reasoning
    assert ask("Say only yes", logprobs=True).logprobs["content"][0]["token"] == "yes"


def test_capable_model_uses_earlier_messages_and_tool_results() -> None:
    told = {"role": "user", "content": "My name is Alice."}
    assert ask("What is my name?", told).text == "It is Alice."
    messages = [told, {"role": "tool", "tool_call_id": "c", "content": "snow"}]
    assert capable(messages, {"messages": messages, "tools": [WEATHER]}).text == "The tools say: snow"
