"""LangChain's ChatOpenAI, pointed at Podium."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from chat_model import Say, chat_model
from podium.workers.pool import Pool
from running_server import Serve


def chat(url: str, **settings: Any) -> ChatOpenAI:
    settings = {"model": "podium", "max_retries": 0} | settings
    return ChatOpenAI(base_url=f"{url}/v1", api_key="none", **settings)  # type: ignore[arg-type]


@tool
def weather(town: str) -> str:
    """The weather in a town."""
    return {"Oslo": "snow"}.get(town, "sun")


def forecaster(body: dict[str, Any]) -> Say:
    given = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return Say(given[0]) if given else Say(calls=[("w1", "weather", '{"town": "Oslo"}')])


@pytest.mark.parametrize("responses", [False, True])
def test_a_chat_model_is_invoked_and_its_usage_counted(serve: Serve, responses: bool) -> None:
    reply = chat(serve(), use_responses_api=responses).invoke(
        [SystemMessage("Be brief."), HumanMessage("What is 6 x 7?")]
    )
    assert reply.text
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["total_tokens"] > 0


@pytest.mark.parametrize("responses", [False, True])
async def test_a_chat_model_streams(serve: Serve, responses: bool) -> None:
    with chat_model("Six| by| seven| is| 42.") as model:
        asking = chat(serve(Pool([model.worker()])), model="wren", use_responses_api=responses)
        pieces = [chunk.text async for chunk in asking.astream("What is 6 x 7?")]
    assert [piece for piece in pieces if piece] == ["Six", " by", " seven", " is", " 42."]


@pytest.mark.parametrize("responses", [False, True])
def test_tools_are_bound_called_and_answered(serve: Serve, tmp_path: Any, responses: bool) -> None:
    with chat_model(forecaster) as model:
        url = serve(
            Pool([model.worker(calls_tools=True)]), planner="single:wren", store=tmp_path / "traces.sqlite"
        )
        asking = chat(url, use_responses_api=responses).bind_tools([weather])
        asked = HumanMessage("What is the weather in Oslo?")
        called = asking.invoke([asked])
        assert isinstance(called, AIMessage)
        [call] = called.tool_calls
        result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
        assert asking.invoke([asked, called, result]).text == "snow"
    assert model.bodies[1]["messages"][-1]["tool_call_id"] == "w1"
