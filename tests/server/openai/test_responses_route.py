from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from chat_model import Say, chat_model
from openai_client import client
from podium.workers.pool import Pool
from running_server import Serve

ASKED = "What is 6 x 7?"
TOOL: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    "strict": True,
}


def test_the_official_client_gets_a_response(serve: Serve) -> None:
    made = client(serve()).responses.with_raw_response.create(
        model="podium", input=ASKED, metadata={"a": "b"}, user="eve"
    )
    response = made.parse()
    assert response.output_text
    assert response.status == "completed"
    assert response.metadata == {"a": "b"}
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0
    assert response.id == f"resp_{response.podium['trace_id']}"
    assert made.headers["x-podium-trace-id"] == response.podium["trace_id"]


def test_the_events_of_a_stream_are_numbered_and_make_up_the_response(serve: Serve) -> None:
    with chat_model("Six| by| seven| is| 42.") as model:
        stream = client(serve(Pool([model.worker()]), planner="single:wren")).responses.create(
            model="podium", input=ASKED, stream=True
        )
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["Six", " by", " seven", " is", " 42."]
    reasoning, message = events[-1].response.output
    assert (reasoning.type, message.type) == ("reasoning", "message")
    assert message.content[0].text == "Six by seven is 42."
    assert reasoning.summary[0].text.startswith("Plan of 1 step: wren.")


def test_response_items_and_instructions_become_messages(serve: Serve) -> None:
    given: list[Any] = [
        {"role": "user", "content": "Hello."},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
    ]
    with chat_model("42.") as model:
        client(serve(Pool([model.worker()]))).responses.create(
            model="wren", input=given, instructions="Be brief.", max_output_tokens=9, temperature=0.5
        )
    [body] = model.bodies
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "Hello."),
        ("assistant", "Hi."),
        ("user", ASKED),
    ]
    assert body["max_tokens"] == 9
    assert body["temperature"] == 0.5


def test_following_response_inherits_messages_but_not_instructions(serve: Serve, tmp_path: Path) -> None:
    with chat_model("42.") as model:
        url = serve(Pool([model.worker()]), store=tmp_path / "traces.sqlite")
        asking = client(url)
        first = asking.responses.create(model="wren", input=ASKED, instructions="Be brief.")
        second = asking.responses.create(model="wren", input="And 6 x 8?", previous_response_id=first.id)
        asking.responses.create(model="wren", input="Why?", previous_response_id=second.id)
    assert second.previous_response_id == first.id
    assert [(m["role"], m["content"]) for m in model.bodies[-1]["messages"]] == [
        ("user", ASKED),
        ("assistant", "42."),
        ("user", "And 6 x 8?"),
        ("assistant", "42."),
        ("user", "Why?"),
    ]


def test_a_response_that_is_not_stored_cannot_be_followed(serve: Serve, tmp_path: Path) -> None:
    asking = client(serve(store=tmp_path / "traces.sqlite"))
    made = asking.responses.create(model="podium", input=ASKED, store=False)
    assert made.store is False
    with pytest.raises(openai.NotFoundError) as refused:
        asking.responses.create(model="podium", input="And?", previous_response_id=made.id)
    assert refused.value.param == "previous_response_id"


@pytest.mark.parametrize("streamed", [False, True])
def test_function_calls_are_items_and_results_go_to_the_same_worker(
    serve: Serve, tmp_path: Path, streamed: bool
) -> None:
    def answer(body: dict[str, Any]) -> Say:
        given = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        return Say(given[0]) if given else Say(calls=[("w1", "weather", '{"town": "Oslo"}')])

    with chat_model(answer) as model:
        url = serve(
            Pool([model.worker(calls_tools=True)]), planner="single:wren", store=tmp_path / "traces.sqlite"
        )
        asking = client(url)
        if streamed:
            with asking.responses.stream(model="podium", input="Weather?", tools=[TOOL]) as stream:
                stream.until_done()
                first: Any = stream.get_final_response()
        else:
            first = asking.responses.create(model="podium", input="Weather?", tools=[TOOL])
        [call] = [item for item in first.output if item.type == "function_call"]
        second = asking.responses.create(
            model="podium",
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "snow"}],
            previous_response_id=first.id,
            tools=[TOOL],
        )
        third = asking.responses.create(
            model="podium", input="Thanks. And Rome?", previous_response_id=second.id, tools=[TOOL]
        )
    assert (call.name, call.arguments) == ("weather", '{"town": "Oslo"}')
    assert second.output_text == "snow"
    assert second.podium["planner"] == "single:wren"
    assert model.bodies[0]["tools"][0]["function"]["name"] == "weather"
    assert model.bodies[1]["messages"][-1]["tool_call_id"] == "w1"
    assert third.podium["planner"] == "single:wren"
    past = [message["content"] or "" for message in model.bodies[2]["messages"][:4]]
    assert past == ["Weather?", "", "snow", "snow"]


def test_a_structured_answer_is_requested_like_in_a_chat_completion(serve: Serve) -> None:
    wanted: Any = {
        "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    }
    with chat_model('{"a": 1}') as model:
        response = client(serve(Pool([model.worker()]))).responses.create(
            model="wren", input=ASKED, text=wanted
        )
    assert model.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
    }
    assert response.text.format.name == "n"


def test_a_response_that_was_cut_is_incomplete(serve: Serve) -> None:
    with chat_model(lambda body: Say("It is", finish="length")) as model:
        response = client(serve(Pool([model.worker()]))).responses.create(model="wren", input=ASKED)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"


def test_a_stream_without_an_answer_ends_in_a_failed_response(serve: Serve) -> None:
    with chat_model(lambda body: Say(status=400)) as model:
        url = serve(Pool([model.worker()]), planner="single:wren")
        events = list(client(url).responses.create(model="podium", input=ASKED, stream=True))
        with pytest.raises(openai.APIStatusError) as refused:
            client(url).responses.create(model="wren", input=ASKED)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "workers_failed"
    assert refused.value.status_code == 502


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"input": []}, "input"),
        ({"input": "  "}, "input.0.content"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input.0.content.0.file_data",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            "input.0.tool_call_id",
        ),
        ({"background": True, "store": False}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"metadata": {"podium.response": "true"}}, "metadata"),
        ({"colour": "red"}, "colour"),
        ({"podium": {"deny": ["nobody"]}}, "podium.deny"),
    ],
)
def test_unsupported_response_request_is_refused_with_its_field(
    plain_url: str, changed: dict[str, Any], param: str
) -> None:
    body = {"model": "podium", "input": ASKED} | changed
    with pytest.raises(openai.BadRequestError) as refused:
        client(plain_url).post("/responses", body=body, cast_to=object)
    assert refused.value.param == param, refused.value.message
