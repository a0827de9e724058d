"""What clients do with a response that was kept: refer to its items, list its input, delete it."""

from __future__ import annotations

import base64
from typing import Any

import openai
import pytest
from openai import OpenAI

import openai_client
from podium_testing import FaultServer

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
}


@pytest.fixture
def client(url: str) -> OpenAI:
    return openai_client.client(url)


def reference(id_: str) -> dict[str, str]:
    return {"type": "item_reference", "id": id_}


def sent(endpoint: FaultServer) -> list[tuple[str, str]]:
    return [(m["role"], str(m["content"])) for m in endpoint.requests[-1].body["messages"]]


def test_an_item_that_is_referred_to_is_read_from_the_store(client: OpenAI, endpoint: FaultServer) -> None:
    first = client.responses.create(model="quill", input="Say only blue")
    [message] = first.output
    given: list[Any] = [
        {"role": "user", "content": "Say only blue"},
        reference("rs_" + message.id.removeprefix("msg_")),
        reference(message.id),
        {"role": "user", "content": "Why?"},
    ]
    client.responses.create(model="quill", input=given)
    assert sent(endpoint) == [("user", "Say only blue"), ("assistant", "blue"), ("user", "Why?")]
    # An item that is also there counts once.
    client.responses.create(model="quill", input=[*given[:1], message.model_dump(), *given[2:]])
    assert sent(endpoint) == [("user", "Say only blue"), ("assistant", "blue"), ("user", "Why?")]


def test_a_tool_call_that_is_referred_to_is_answered(client: OpenAI) -> None:
    asked: Any = {"role": "user", "content": "How is the weather in Oslo?"}
    first = client.responses.create(model="podium", input=[asked], tools=[WEATHER])
    [call] = first.output
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "snow"}
    second = client.responses.create(
        model="podium", input=[asked, reference(call.id), result], tools=[WEATHER]
    )
    assert second.output_text == "The tools say: snow"


def test_results_of_tools_stay_together_and_notes_and_images_follow_them(
    client: OpenAI, endpoint: FaultServer
) -> None:
    calls: list[Any] = [
        {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"} for n in range(2)
    ]
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    given: list[Any] = [
        {"role": "user", "content": "Look twice."},
        *calls,
        {"type": "function_call_output", "call_id": "c0", "output": [picture]},
        {"type": "function_call_output", "name": "goal", "output": "to see"},
        {"type": "function_call_output", "call_id": "c1", "output": "fog"},
    ]
    client.responses.create(model="quill", input=given)
    assert [role for role, _ in sent(endpoint)] == ["user", "assistant", "tool", "tool", "user", "system"]
    assert sent(endpoint)[-1] == ("system", "goal: to see")
    with pytest.raises(openai.BadRequestError, match="call_id"):
        client.responses.create(model="quill", input=[{"type": "function_call_output", "output": "x"}])


@pytest.mark.parametrize("id_", ["x", "msg_" + "0" * 32, "fc_" + "0" * 32 + "_0"])
def test_an_item_that_nobody_made_is_not_found(client: OpenAI, id_: str) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.responses.create(model="quill", input=[reference(id_), {"role": "user", "content": "Why?"}])
    assert (refused.value.code, refused.value.param) == ("item_not_found", "input.0")


def test_a_deleted_response_is_gone(client: OpenAI) -> None:
    made = client.responses.create(model="quill", input="Hello.")
    client.responses.delete(made.id)
    for read in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(openai.NotFoundError):
            read(made.id)


def test_a_text_file_is_part_of_the_message_and_another_is_refused(
    client: OpenAI, endpoint: FaultServer
) -> None:
    def asked(contents: bytes) -> Any:
        data = f"data:text/csv;base64,{base64.b64encode(contents).decode()}"
        file = {"type": "input_file", "filename": "a.csv", "file_data": data}
        return [{"role": "user", "content": [file, {"type": "input_text", "text": "What is in it?"}]}]

    client.responses.create(model="quill", input=asked(b"x,y"))
    assert sent(endpoint) == [("user", "File a.csv:\nx,y\nWhat is in it?")]
    [file, question] = asked(b"x,y")[0]["content"]
    call: Any = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    result: Any = {"type": "function_call_output", "call_id": "c", "output": [file]}
    client.responses.create(model="quill", input=[{"role": "user", "content": [question]}, call, result])
    assert sent(endpoint)[-1] == ("tool", "File a.csv:\nx,y")
    with pytest.raises(openai.BadRequestError, match="no text in UTF-8"):
        client.responses.create(model="quill", input=asked(b"%PDF-\xff"))


def test_a_response_has_every_field_of_open_responses(client: OpenAI) -> None:
    made: Any = client.responses.create(
        model="quill", input="Hello.", safety_identifier="eve", prompt_cache_key="k", temperature=0.5
    )
    assert (made.safety_identifier, made.prompt_cache_key, made.temperature, made.top_p) == (
        "eve",
        "k",
        0.5,
        1.0,
    )
    assert made.completed_at >= made.created_at
    assert (made.presence_penalty, made.frequency_penalty, made.top_logprobs) == (0, 0, 0)
    assert made.usage.cost == made.podium["cost_usd"]


def test_a_stored_response_is_the_one_that_was_made(client: OpenAI) -> None:
    first = client.responses.create(model="quill", input="Hello.")
    made = client.responses.create(
        model="podium",
        input="Say only blue",
        instructions="Be brief.",
        previous_response_id=first.id,
        safety_identifier="eve",
        prompt_cache_key="k",
        metadata={"shelf": "2"},
    )
    assert client.responses.retrieve(made.id).model_dump() == made.model_dump()


def test_a_stored_dry_run_is_its_plan(client: OpenAI) -> None:
    planned: Any = client.responses.create(
        model="podium", input="Say only blue", extra_body={"podium": {"dry_run": True}}
    )
    read: Any = client.responses.retrieve(planned.id)
    assert (read.status, read.output_text) == ("completed", planned.output_text)
    assert read.podium == {key: value for key, value in planned.podium.items() if key != "estimate"}


@pytest.mark.parametrize("sent", ["no JSON", "[]", '{"echo": 1}'])
def test_an_answer_of_chat_is_read_as_a_response_whatever_its_metadata(client: OpenAI, sent: str) -> None:
    kept = client.chat.completions.create(
        model="podium",
        messages=[{"role": "user", "content": "Hello."}],
        metadata={"podium.response": sent},
    )
    trace_id: Any = kept.model_dump()["podium"]["trace_id"]
    assert client.responses.retrieve(f"resp_{trace_id}").output_text == kept.choices[0].message.content
