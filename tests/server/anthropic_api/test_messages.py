from __future__ import annotations

import base64
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import Anthropic

from podium.workers.pool import Pool
from podium_testing import Answer, FaultServer, Rule, Status
from running_server import Serve, capable_worker

ASKED: list[Any] = [{"role": "user", "content": "Say only blue"}]
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather in a town.",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}},
}


@pytest.fixture
def client(url: str) -> Anthropic:
    return Anthropic(base_url=url, api_key="none", max_retries=0)


def test_the_official_client_gets_a_message(client: Anthropic) -> None:
    made = client.messages.with_raw_response.create(
        model="podium", max_tokens=50, system="Be brief.", messages=ASKED, metadata={"user_id": "eve"}
    )
    message: Any = made.parse()
    [text] = message.content
    assert (text.type, text.text, message.stop_reason) == ("text", "blue", "end_turn")
    assert message.id == f"msg_{message.podium['trace_id']}"
    assert message.usage.input_tokens > 0
    assert message.usage.cost == message.podium["cost_usd"] > 0
    assert made.headers["request-id"]


def test_a_stream_is_assembled_into_the_same_message(client: Anthropic) -> None:
    with client.messages.stream(model="podium", max_tokens=50, messages=ASKED) as stream:
        assert "".join(stream.text_stream) == "blue"
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["text"]
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 1)


@pytest.mark.parametrize("streamed", [False, True])
def test_tools_are_called_and_their_results_go_to_the_same_worker(
    client: Anthropic, endpoint: FaultServer, streamed: bool
) -> None:
    asked: list[Any] = [{"role": "user", "content": "How is the weather in Oslo?"}]
    request: Any = {"model": "podium", "max_tokens": 99, "tools": [WEATHER]}
    if streamed:
        with client.messages.stream(messages=asked, **request) as stream:
            first = stream.get_final_message()
    else:
        first = client.messages.create(messages=asked, **request)
    [call] = first.content
    assert (first.stop_reason, call.type, call.name, call.input) == (
        "tool_use",
        "tool_use",
        "get_weather",
        {"town": "Oslo"},
    )
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "snow"}]}
    turn: list[Any] = [*asked, {"role": "assistant", "content": [call.model_dump()]}]
    second: Any = client.messages.create(messages=[*turn, {"role": "user", "content": [result]}], **request)
    assert second.content[0].text == "The tools say: snow"
    assert second.podium["planner"] == "single:quill"
    assert endpoint.requests[-1].body["messages"][-1]["role"] == "tool"
    # A remark beside the result is the next turn, which stays with the worker too.
    remark = {"type": "text", "text": "Say only thanks"}
    third: Any = client.messages.create(
        messages=[*turn, {"role": "user", "content": [result, remark]}], **request
    )
    assert third.podium["planner"] == "single:quill"
    assert [m["role"] for m in endpoint.requests[-1].body["messages"]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}),
        ({"type": "none"}, "none"),
    ],
)
def test_the_choice_of_tools_is_passed_on(
    client: Anthropic, endpoint: FaultServer, choice: Any, wanted: Any
) -> None:
    client.messages.create(model="quill", max_tokens=50, messages=ASKED, tools=[WEATHER], tool_choice=choice)
    assert endpoint.requests[-1].body["tool_choice"] == wanted


@pytest.mark.parametrize(
    ("choice", "tools", "param"),
    [
        ({"type": "any"}, [], "tool_choice"),
        ({"type": "tool", "name": "get_weather"}, [], "tool_choice"),
        ({"type": "tool"}, [WEATHER], "tool_choice.name"),
        ({"type": "tool", "name": "get_wether"}, [WEATHER], "tool_choice.name"),
    ],
)
def test_tool_choice_must_name_a_tool_of_the_request(
    client: Anthropic, choice: Any, tools: Any, param: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(model="quill", max_tokens=50, messages=ASKED, tools=tools, tool_choice=choice)
    error: Any = refused.value.body
    assert error["error"]["param"] == param


def test_thinking_of_a_single_worker_is_a_block_before_the_text(client: Anthropic) -> None:
    request: Any = {
        "model": "quill",
        "max_tokens": 3000,
        "messages": ASKED,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    whole = client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        thinking, text = message.content
        assert (thinking.type, text.type) == ("thinking", "text")
        assert thinking.thinking.startswith("The user asks: Say only blue")
    # Thoughts that come back are no part of the conversation.
    again = [*ASKED, {"role": "assistant", "content": [b.model_dump() for b in whole.content]}, *ASKED]
    assert client.messages.create(**{**request, "messages": again}).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("tokens", "effort"), [(1024, "low"), (8192, "medium"), (10**6, "high"), ("many", "medium")]
)
def test_the_budget_of_thinking_becomes_an_effort(
    client: Anthropic, endpoint: FaultServer, tokens: Any, effort: str
) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": tokens}
    client.messages.create(model="quill", max_tokens=50, messages=ASKED, thinking=thinking)
    assert endpoint.requests[-1].body["reasoning_effort"] == effort


def test_fields_unsupported_by_one_worker_are_listed_or_refused(url: str, endpoint: FaultServer) -> None:
    body = {"model": "quill", "max_tokens": 50, "messages": ASKED, "top_k": 3, "reasoning_effort": "low"}
    hints = {"service_tier": "priority", "context_management": {"edits": []}, "colour": None}
    made = httpx.post(f"{url}/v1/messages", json=body | hints)
    assert (made.status_code, made.headers["x-podium-ignored"]) == (200, "service_tier, context_management")
    sent = endpoint.requests[-1].body
    assert (sent["top_k"], sent["reasoning_effort"]) == (3, "low")
    assert not hints.keys() & sent.keys()
    refused = httpx.post(f"{url}/v1/messages", json=body | {"temprature": 0.5})
    assert refused.status_code == 400
    assert "temprature" in refused.json()["error"]["message"]


def test_team_progress_is_sent_as_thinking_on_request(client: Anthropic) -> None:
    with client.messages.stream(
        model="podium", max_tokens=3000, messages=ASKED, thinking={"type": "enabled", "budget_tokens": 1024}
    ) as stream:
        thinking, text = stream.get_final_message().content
    assert thinking.thinking.startswith("Plan of 1 step: quill.")
    assert text.text == "blue"


def test_images_and_documents_reach_a_worker_that_sees(client: Anthropic, endpoint: FaultServer) -> None:
    data = base64.b64encode(b"png").decode()
    content: list[Any] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x,y"}},
        {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
    ]
    message: Any = client.messages.create(
        model="quill", max_tokens=50, messages=[{"role": "user", "content": content}]
    )
    text, image = endpoint.requests[-1].body["messages"][0]["content"]
    assert image["image_url"]["url"] == f"data:image/png;base64,{data}"
    assert "x,y" in text["text"]
    assert message.podium["ignored"] == ["messages.*.content.*.cache_control"]
    with pytest.raises(anthropic.BadRequestError, match="sees"):
        client.messages.create(model="lark", max_tokens=50, messages=[{"role": "user", "content": content}])


def test_messages_api_passes_json_schema_and_max_tokens(client: Anthropic, endpoint: FaultServer) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    message: Any = client.messages.create(
        model="quill",
        max_tokens=50,
        messages=[{"role": "user", "content": "Give me 7"}],
        extra_body={"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    )
    assert message.content[0].text == '{"n": 7}'
    cut = client.messages.create(
        model="quill", max_tokens=1, messages=[{"role": "user", "content": "Count from 1 to 30."}]
    )
    assert cut.stop_reason == "max_tokens"


def test_tokens_are_counted_without_a_call(client: Anthropic, endpoint: FaultServer, url: str) -> None:
    before = len(endpoint.requests)
    counted = client.messages.count_tokens(model="podium", messages=ASKED, tools=[WEATHER], system="x" * 400)
    assert counted.input_tokens > 100
    assert len(endpoint.requests) == before
    assert httpx.head(url).status_code == 200


@pytest.mark.parametrize(
    ("changed", "kind", "word"),
    [
        ({"model": "gpt-9"}, anthropic.NotFoundError, "gpt-9"),
        ({"messages": []}, anthropic.BadRequestError, "messages"),
        ({"colour": "red"}, anthropic.BadRequestError, "colour"),
        ({"mcp_servers": [{"type": "url"}]}, anthropic.BadRequestError, "mcp_servers"),
        ({"max_tokens": 0}, anthropic.BadRequestError, "max_tokens"),
        (
            {"messages": [*ASKED, {"role": "assistant", "content": "It"}]},
            anthropic.BadRequestError,
            "continue",
        ),
    ],
)
def test_unsupported_request_gets_an_error_in_anthropic_form(
    client: Anthropic, changed: Any, kind: type[anthropic.APIStatusError], word: str
) -> None:
    body = {"model": "podium", "max_tokens": 50, "messages": ASKED, **changed}
    with pytest.raises(kind, match=word) as refused:
        client.post("/v1/messages", body=body, cast_to=object)
    error: Any = refused.value.body
    assert error["type"] == "error"
    assert error["error"]["type"] in ("invalid_request_error", "not_found_error")


def test_a_worker_that_fails_is_an_error_and_in_a_stream_an_event(serve: Serve) -> None:
    with FaultServer(Answer("42"), rules=[Rule(fault=Status(code=400))]).in_thread() as broken:
        asking = Anthropic(
            base_url=serve(Pool([capable_worker(broken)]), planner="single:quill"),
            api_key="none",
            max_retries=0,
        )
        with pytest.raises(anthropic.APIStatusError) as refused:
            asking.messages.create(model="podium", max_tokens=50, messages=ASKED)
        assert (refused.value.status_code, refused.value.body["error"]["type"]) == (502, "api_error")  # type: ignore[index]
        thinking: Any = {"type": "enabled", "budget_tokens": 1024}
        with (
            pytest.raises(anthropic.APIStatusError, match="quill"),
            asking.messages.stream(
                model="podium", max_tokens=2000, messages=ASKED, thinking=thinking
            ) as stream,
        ):
            stream.until_done()


async def test_the_key_is_read_from_anthropics_header(url: str) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, auth_token="x", max_retries=0) as asking:
        message = await asking.messages.create(model="podium", max_tokens=50, messages=ASKED)
    assert message.content
