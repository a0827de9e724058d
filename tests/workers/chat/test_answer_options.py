"""What a caller wants of the answer, on its way to an endpoint and back: settings, tools, images, text as it comes."""

from __future__ import annotations

import json

from chat_worker import ChatClient, chat_worker
from podium.types import AnswerOptions, Limits, Message, Profile, ToolCall
from podium.workers.base import Request
from podium.workers.chat.request_body import short_id
from podium.workers.chat.response_reader import StreamScrubber
from podium.workers.openai import OpenAIWorker
from podium.workers.redaction import Secrets
from podium_testing import FaultServer, Rule, Verbatim

KEY = "sk-1234567890-abcdefghij"
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
ASKED = (Message(role="user", content="How is the weather in Oslo?"),)


def worker(server: FaultServer, key: str | None = None, **settings: object) -> OpenAIWorker:
    return chat_worker(
        Profile(name="m"), ChatClient(server.url, key), "m", limits=Limits(max_tokens=100), **settings
    )


async def test_the_callers_settings_win_over_the_workers_but_never_its_limit():
    async with FaultServer("Fine.") as server:
        asked = worker(server, temperature=0.2, extra={"top_k": 5, "top_p": 0.1})
        options = AnswerOptions(max_tokens=7, temperature=1.5, top_p=0.9, stop=("END",))
        await asked.answer(Request(ASKED, seed="", options=options))
        await asked.answer(Request(ASKED, seed="", options=AnswerOptions(max_tokens=5_000)))
        await asked.close()
        first, second = (request.body for request in server.requests)
        assert {key: first[key] for key in ("max_tokens", "temperature", "top_p", "top_k", "stop")} == {
            "max_tokens": 7,
            "temperature": 1.5,
            "top_p": 0.9,
            "top_k": 5,
            "stop": ["END"],
        }
        assert (second["max_tokens"], second["temperature"]) == (100, 0.2)


async def test_the_callers_further_keys_replace_neither_messages_nor_limits():
    further = {"model": "x", "messages": [], "n": 8, "stream": True, "max_tokens": 10**5, "top_k": 3}
    async with FaultServer("Fine.") as server:
        asked = worker(server)
        await asked.answer(
            Request(ASKED, seed="", options=AnswerOptions(extra=further | {"max_completion_tokens": 10**5}))
        )
        await asked.close()
        (sent,) = (request.body for request in server.requests)
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": ASKED[0].content}],
        "max_tokens": 100,
        "top_k": 3,
    }


async def test_reply_parameters_list_all_sent_fields_without_secrets():
    async with FaultServer("Fine.") as server:
        asked = worker(server, KEY, system="Be brief.", temperature=0.2)
        options = AnswerOptions(tools=(TOOL,), stop=(f"stop at {KEY}",))
        reply = await asked.answer(Request(ASKED, seed="", options=options))
        await asked.close()
        (sent,) = (request.body for request in server.requests)
    assert reply.parameters == {
        "system": "Be brief.",
        **{name: value for name, value in sent.items() if name != "messages"},
        "stop": ["stop at ***"],
    }
    assert reply.parameters["tools"] == [TOOL]


async def test_tools_are_offered_and_their_calls_come_back_whole_and_in_pieces():
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    ]
    whole = {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"city": '}},
        {"index": 0, "function": {"arguments": '"Oslo"}'}},
    ]
    events = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    streamed = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    async with FaultServer("") as server:
        for fault, stream in (
            (Verbatim(body=json.dumps(whole)), False),
            (Verbatim(body=streamed, content_type="text/event-stream"), True),
        ):
            server.rules = [Rule(fault=fault)]
            asked = worker(server, stream=stream)
            reply = await asked.answer(Request(ASKED, seed="", options=AnswerOptions(tools=(TOOL,))))
            assert reply.tool_calls == (ToolCall(id="c1", name="weather", arguments='{"city": "Oslo"}'),)
            assert (reply.text, reply.finish) == ("", "tool_calls")
            assert server.requests[-1].body["tools"] == [TOOL]
            await asked.close()


async def test_a_key_that_an_endpoint_puts_into_a_call_of_a_tool_is_taken_out():
    calls = [
        {"id": KEY, "type": "function", "function": {"name": f"f_{KEY}", "arguments": f'{{"a": "{KEY}"}}'}}
    ]
    whole = {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    async with FaultServer("", rules=[Rule(fault=Verbatim(body=json.dumps(whole)))]) as server:
        asked = worker(server, KEY)
        reply = await asked.answer(Request(ASKED, seed="", options=AnswerOptions(tools=(TOOL,))))
        await asked.close()
    assert KEY not in repr(reply)
    assert reply.tool_calls[0].name == "f_***"


async def test_a_conversation_with_tools_and_images_is_sent_in_openais_form():
    call = ToolCall(id="c1", name="weather", arguments="{}")
    messages = (
        Message(role="user", content="Is it this sky?", images=("https://example.com/sky.png",)),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="rain", tool_call_id="c1"),
    )
    async with FaultServer("It rains.") as server:
        asked = worker(server)
        await asked.answer(Request(messages, seed=""))
        await asked.close()
        user, assistant, tool = server.requests[0].body["messages"]
    assert user["content"] == [
        {"type": "text", "text": "Is it this sky?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/sky.png"}},
    ]
    id_ = short_id("c1")
    assert assistant["tool_calls"] == [
        {"id": id_, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ]
    assert (assistant["content"], tool) == (None, {"role": "tool", "content": "rain", "tool_call_id": id_})


async def test_a_key_that_an_endpoint_repeats_is_in_no_piece():
    async with FaultServer(f"You sent {KEY}, did you not? {KEY[:-1]}!") as server:
        asked, told = worker(server, KEY), []
        reply = await asked.answer(Request(ASKED, seed="", on_text=told.append))
        await asked.close()
    assert KEY not in "".join(told)
    assert "".join(told).startswith("You sent ***, did you not? ")
    assert KEY not in reply.text


def test_stream_holds_back_only_a_possible_start_of_a_secret():
    secrets, told = Secrets(), []
    secrets.add(KEY)
    scrubber = StreamScrubber(told.append, secrets)
    for character in f"a sky {KEY} b":
        scrubber.add(character)
    assert "".join(told) == "a sky *** b"
    scrubber.add("s")
    assert told[-1] == "b"
    scrubber.end()
    assert told[-1] == "s"


def test_a_character_in_two_halves_is_streamed_whole():
    told: list[str] = []
    scrubber = StreamScrubber(told.append, Secrets())
    for piece in ("rain \ud83d", "\ude00!", "\ud83d"):
        scrubber.add(piece)
    scrubber.end()
    assert "".join(told) == "rain \U0001f600!\ufffd"
