from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import openai
import pytest

from chat_model import Say, chat_model
from openai_client import client
from podium.workers.pool import Pool
from running_server import Serve

ASKED: list[Any] = [{"role": "user", "content": "What is the weather in Oslo and in Rome?"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a town.",
            "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
            "strict": True,
        },
    }
]


def forecaster(body: dict[str, Any]) -> Say:
    """Calls the tool for two towns, then says what it gave."""
    given = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if given:
        return Say(" and| ".join(given))
    return Say(calls=[("w1", "weather", '{"town": "Oslo"}'), ("w2", "weather", '{"town": "Rome"}')])


def results(message: Any) -> list[Any]:
    """What a caller sends next: the message that called, and what the tools gave."""
    said = {"Oslo": "snow", "Rome": "sun"}
    return [
        message.model_dump(exclude_none=True),
        *(
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": next(w for town, w in said.items() if town in call.function.arguments),
            }
            for call in message.tool_calls
        ),
    ]


def test_a_workers_calls_come_back_with_ids_that_name_the_trace(serve: Serve) -> None:
    with chat_model(forecaster) as model:
        url = serve(Pool([model.worker(calls_tools=True)]), planner="single:wren")
        reply = client(url).chat.completions.create(
            model="podium", messages=ASKED, tools=TOOLS, tool_choice="auto", parallel_tool_calls=True
        )
    [choice] = reply.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert [call.function.arguments for call in choice.message.tool_calls] == [
        '{"town": "Oslo"}',
        '{"town": "Rome"}',
    ]
    for number, call in enumerate(choice.message.tool_calls):
        assert re.fullmatch(f"call_{reply.podium['trace_id']}[g-zG-Z]{{2}}{number}", call.id)
        assert len(call.id) <= 40
    [body] = model.bodies
    assert body["tools"] == TOOLS
    assert body["tool_choice"] == "auto"
    assert body["parallel_tool_calls"] is True


def test_tool_results_go_to_the_worker_that_called_with_its_past(serve: Serve, tmp_path: Path) -> None:
    with chat_model(forecaster) as model, chat_model("I am another.") as other:
        pool = Pool([other.worker("lark", calls_tools=True), model.worker(calls_tools=True)])
        url = serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite")
        asking = client(url)
        first = asking.chat.completions.create(model="podium", messages=ASKED, tools=TOOLS)
        called = first.choices[0].message
        # Another planner would have asked another worker.
        second = asking.chat.completions.create(
            model="podium/single:lark", messages=[*ASKED, *results(called)], tools=TOOLS
        )
    assert second.choices[0].message.content == "snow and sun"
    assert second.podium["planner"] == "single:wren"
    assert other.bodies == []
    before, after = (body["messages"] for body in model.bodies)
    assert after[: len(before)] == before
    said, oslo, rome = after[len(before) :]
    assert [call["id"] for call in said["tool_calls"]] == ["w1", "w2"]
    assert (oslo["role"], oslo["tool_call_id"], oslo["content"]) == ("tool", "w1", "snow")
    assert (rome["role"], rome["tool_call_id"], rome["content"]) == ("tool", "w2", "sun")


def test_tool_results_reach_the_calling_worker_without_a_stored_trace(serve: Serve) -> None:
    with chat_model(forecaster) as model, chat_model("I am another.") as other:
        pool = Pool([other.worker("lark", calls_tools=True), model.worker(calls_tools=True)])
        asking = client(serve(pool, planner="single:wren"))
        called = asking.chat.completions.create(model="podium", messages=ASKED, tools=TOOLS, store=False)
        late = {"role": "system", "content": "Be brief."}
        messages = [*ASKED, *results(called.choices[0].message), late]
        reply = asking.chat.completions.create(
            model="podium/single:lark", messages=messages, tools=TOOLS, store=False
        )
    assert reply.podium["planner"] == "single:wren"
    assert reply.choices[0].message.content == "snow and sun"
    assert [message["role"] for message in model.bodies[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert other.bodies == []


def test_results_of_unknown_tool_calls_are_answered_without_planning(serve: Serve) -> None:
    with chat_model(forecaster) as model, chat_model("I am blind.") as other:
        pool = Pool([other.worker("lark"), model.worker(calls_tools=True)])
        called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        messages = [
            *ASKED,
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "fog"},
        ]
        reply = client(serve(pool, planner="random")).chat.completions.create(
            model="podium", messages=messages, tools=TOOLS
        )
    assert (reply.podium["planner"], reply.choices[0].message.content) == ("single:wren", "fog")


def test_the_next_turn_after_tools_stays_with_their_worker(serve: Serve) -> None:
    with chat_model(forecaster) as model, chat_model("I am another.") as other:
        pool = Pool([other.worker("lark", calls_tools=True), model.worker(calls_tools=True)])
        asking = client(serve(pool, planner="single:wren"))
        called = asking.chat.completions.create(model="podium", messages=ASKED, tools=TOOLS)
        turn = [
            *ASKED,
            *results(called.choices[0].message),
            {"role": "assistant", "content": "snow and sun"},
            {"role": "user", "content": "And Paris?"},
        ]
        second = asking.chat.completions.create(model="podium/single:lark", messages=turn, tools=TOOLS)
        assert second.podium["planner"] == "single:wren"
        assert model.bodies[-1]["messages"][-1] == turn[-1]
        # A request without tools is a question like any other.
        third = asking.chat.completions.create(model="podium/single:lark", messages=turn)
    assert third.podium["planner"] == "single:lark"


def test_tool_calls_are_streamed(serve: Serve) -> None:
    with chat_model(forecaster) as model:
        url = serve(Pool([model.worker(calls_tools=True)]))
        with client(url).chat.completions.stream(model="wren", messages=ASKED, tools=TOOLS) as stream:
            stream.until_done()
            [choice] = stream.get_final_completion().choices
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls] == ["weather", "weather"]
    assert re.fullmatch(r"call_[0-9a-f]{32}[g-zG-Z]{2}0", choice.message.tool_calls[0].id)


def test_only_workers_that_call_tools_are_offered(serve: Serve) -> None:
    with chat_model(forecaster) as model, chat_model("I cannot.") as other:
        url = serve(Pool([other.worker("lark"), model.worker(calls_tools=True)]), planner="random")
        for seed in range(4):
            reply = client(url).chat.completions.create(
                model="podium", messages=ASKED, tools=TOOLS, seed=seed
            )
            assert {step["worker"] for step in reply.podium["plan"]} == {"wren"}
        with pytest.raises(openai.BadRequestError) as refused:
            client(url).chat.completions.create(model="lark", messages=ASKED, tools=TOOLS)
    assert refused.value.param == "tools"
    assert "lark" in refused.value.message


def test_a_call_that_is_not_answered_is_refused(serve: Serve) -> None:
    with chat_model(forecaster) as model:
        asking = client(serve(Pool([model.worker(calls_tools=True)])))
        called = asking.chat.completions.create(model="wren", messages=ASKED, tools=TOOLS)
        messages = [*ASKED, *results(called.choices[0].message)[:2]]
        with pytest.raises(openai.BadRequestError) as refused:
            asking.chat.completions.create(model="wren", messages=messages, tools=TOOLS)
    assert refused.value.param == "messages.1.tool_calls"


def test_tool_choice_must_name_a_tool_of_the_request(serve: Serve) -> None:
    with chat_model(forecaster) as model:
        asking = client(serve(Pool([model.worker(calls_tools=True)])))
        with pytest.raises(openai.BadRequestError) as refused:
            asking.chat.completions.create(
                model="wren",
                messages=ASKED,
                tools=TOOLS,
                tool_choice={"type": "function", "function": {"name": "wether"}},
            )
    assert refused.value.param == "tool_choice.function.name"


def test_images_go_only_to_workers_that_accept_images(serve: Serve) -> None:
    address = "data:image/png;base64,iVBORw0KGgo="
    asked: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": address}},
            ],
        }
    ]
    with chat_model("A cat.") as model, chat_model("I am blind.") as other:
        url = serve(Pool([other.worker("lark"), model.worker(sees=True)]), planner="random")
        for name in ("podium", "wren"):
            reply = client(url).chat.completions.create(model=name, messages=asked)
            assert reply.choices[0].message.content == "A cat."
        with pytest.raises(openai.BadRequestError) as refused:
            client(url).chat.completions.create(model="lark", messages=asked)
    assert refused.value.param == "messages"
    assert other.bodies == []
    for body in model.bodies:
        parts = body["messages"][-1]["content"]
        assert {"type": "image_url", "image_url": {"url": address}} in parts


def test_a_call_of_a_tool_ends_the_question_whatever_its_rounds(serve: Serve) -> None:
    with chat_model(forecaster) as model:
        url = serve(Pool([model.worker(calls_tools=True)]), planner="single:wren")
        reply = client(url).chat.completions.create(
            model="podium", messages=ASKED, tools=TOOLS, extra_body={"podium": {"max_rounds": 3}}
        )
        assert reply.choices[0].finish_reason == "tool_calls"
        assert len(reply.choices[0].message.tool_calls) == 2
