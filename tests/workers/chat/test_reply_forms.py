"""The forms in which providers write one reply: thoughts, reasons why it ended, tool calls, and state to give back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat_endpoint import DONE, MESSAGES, USAGE, Endpoint, ask, delta, event, failure
from chat_worker import ChatClient
from podium.types import AnswerOptions, Message, ProviderState, ToolCall
from podium.workers.chat.reply_builder import read_finish
from podium.workers.chat.request_body import short_id

OFFERED = AnswerOptions(tools=({"type": "function", "function": {"name": "weather"}},))
FULL = '{"city": "Oslo"}'
ROME = '{"city": "Rome"}'


def whole(message: dict[str, Any], finish: str | None = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}


def part(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def call(id_: str | None, arguments: Any, name: str | None = "weather", **more: Any) -> dict[str, Any]:
    return {**more, **({"id": id_} if id_ else {}), "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "<think>5?</think>\n4"}, "4", "5?"),
        ({"content": "5?\n</think>\n4"}, "4", "5?"),
        ({"content": "<think>5?</think>4", "reasoning_content": "First."}, "4", "First.\n\n5?"),
        ({"content": "4", "reasoning": "5?"}, "4", "5?"),
        ({"content": "4", "reasoning_details": [{"type": "reasoning.text", "text": "5?"}]}, "4", "5?"),
        ({"content": [{"type": "thinking", "thinking": "5?"}, {"type": "text", "text": "4"}]}, "4", "5?"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "5?"}]},
                    {"type": "text", "text": "4"},
                ]
            },
            "4",
            "5?",
        ),
        ({"content": '<think>JSON.</think>{"a": 4}'}, '{"a": 4}', "JSON."),
    ],
)
async def test_thoughts_are_reasoning_and_no_part_of_the_answer(
    endpoint: Endpoint, client: ChatClient, message: dict[str, Any], text: str, reasoning: str
) -> None:
    endpoint.answer(whole(message))
    reply = await ask(client)
    assert (reply.text, reply.reasoning) == (text, reasoning)
    endpoint.stream(part(**message), part("stop"), DONE)
    reply = await ask(client, stream=True)
    assert (reply.text, reply.reasoning) == (text, reasoning)


async def test_streamed_thoughts_reach_the_listener_of_reasoning(
    endpoint: Endpoint, client: ChatClient
) -> None:
    told = "<think>Five or four?</think>It is 4, not <5>."
    endpoint.stream(*(event(delta(told[place : place + 3])) for place in range(0, len(told), 3)), DONE)
    texts: list[str] = []
    thoughts: list[str] = []
    reply = await ask(client, on_text=texts.append, on_reasoning=thoughts.append)
    assert "".join(texts) == reply.text == "It is 4, not <5>."
    assert "".join(thoughts) == reply.reasoning == "Five or four?"
    assert len(texts) > 3


@pytest.mark.parametrize("model", ["learned", "deepseek-r1-distill", "Qwen3-4B-Thinking-2507"])
async def test_a_stream_that_begins_inside_a_thought_shows_no_thoughts(
    endpoint: Endpoint, client: ChatClient, model: str
) -> None:
    if model == "learned":
        endpoint.answer(whole({"content": "5?\n</think>\n4"}))
        await ask(client, model=model)
    endpoint.stream(*(event(delta(piece)) for piece in ("5", "?\n</th", "ink>\n", "\n4")), DONE)
    texts: list[str] = []
    reply = await ask(client, model=model, on_text=texts.append)
    assert "".join(texts) == reply.text == "4"


@pytest.mark.parametrize(
    "thought",
    [
        *(
            "Okay, so",
            "The user asks",
            "We need 2 + 2",
            "Maybe 5?",
            "\nHmm, five",
            "Got it, a sum",
            "User asks: 2 + 2",
        ),
        *(
            "Looking at it",
            "This is a sum",
            "1.  **Analyze** it",
            "Here's a thinking process:",
            "嗯，用户问",
            "首先",
        ),
        *("Der Nutzer fragt", "L'utilisateur demande", "Хорошо, сумма", "まず"),
    ],
)
async def test_first_stream_that_begins_like_reasoning_is_held_back(
    endpoint: Endpoint, client: ChatClient, thought: str
) -> None:
    pieces = [*thought, "\n</think>\n\n", "It ", "is ", "4"]
    endpoint.stream(*(event(delta(piece)) for piece in pieces), part("stop"), DONE)
    texts: list[str] = []
    reply = await ask(client, on_text=texts.append)
    assert "".join(texts) == reply.text == "It is 4"
    assert reply.reasoning == thought.strip()


async def test_unrecognised_reasoning_is_streamed_as_text_only_once(
    endpoint: Endpoint, client: ChatClient
) -> None:
    for _ in range(2):
        pieces = ["Two ", "and two?", "\n</think>\n\n", "It ", "is ", "4"]
        endpoint.stream(*(event(delta(piece)) for piece in pieces), part("stop"), DONE)
    texts: list[str] = []
    reply = await ask(client, on_text=texts.append)
    assert reply.text == "It is 4"
    assert not "".join(texts).startswith("It"), "what was passed on is not the answer, which the server tells"
    texts.clear()
    await ask(client, on_text=texts.append)
    assert "".join(texts) == "It is 4"


async def test_model_without_reasoning_streams_every_piece_at_once(
    endpoint: Endpoint, client: ChatClient
) -> None:
    for text in ("It is 4.", "Okay, it is 4."):
        endpoint.stream(*(event(delta(piece)) for piece in text.split(" ")), part("stop"), DONE)
        texts: list[str] = []
        await ask(client, on_text=texts.append)
        assert len(texts) == len(text.split(" "))


async def test_a_thinking_model_behind_a_parser_streams_its_answer_at_once(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(
        part(reasoning_content="5?"), *(event(delta(piece)) for piece in ("It ", "is ", "4")), DONE
    )
    texts: list[str] = []
    await ask(client, model="deepseek-r1", on_text=texts.append)
    assert texts == ["It ", "is ", "4"]


@pytest.mark.parametrize(
    ("message", "finish", "said"),
    [
        ({"content": "", "reasoning_content": "It is 4."}, "stop", "--reasoning-parser"),
        ({"content": "<think>5?"}, "stop", "raise max_tokens"),
        ({"content": "<think>5?"}, "MAX_TOKENS", "it reasoned until then"),
    ],
)
async def test_reply_with_only_reasoning_is_an_error_with_a_remedy(
    endpoint: Endpoint, client: ChatClient, message: dict[str, Any], finish: str, said: str
) -> None:
    endpoint.answer(whole(message, finish))
    error = await failure(client)
    assert (error.kind, error.retryable) == ("protocol", False)
    assert said in str(error)


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("stop", "stop STOP end_turn stop_sequence eos eos_token COMPLETE FINISH_REASON_STOP"),
        (
            "length",
            "length LENGTH max_tokens MAX_TOKENS Max-Tokens model_length max_output_tokens FINISH_REASON_MAX_TOKENS",
        ),
        ("tool_calls", "tool_calls tool_use TOOL_CALL function_call"),
        (
            "content_filter",
            "content_filter SAFETY RECITATION refusal PROHIBITED_CONTENT guardrail_intervened sensitive",
        ),
        ("error", "error MALFORMED_FUNCTION_CALL insufficient_system_resource network_error"),
    ],
)
def test_finish_reason_variants_map_to_one_word(word: str, written: str) -> None:
    assert {read_finish(one) for one in written.split()} == {word}


@pytest.mark.parametrize("written", [None, "", " ", "null", "None", "FINISH_REASON_UNSPECIFIED", 0, {}])
def test_some_finish_reasons_mean_that_the_reply_goes_on(written: object) -> None:
    assert read_finish(written) is None


def test_an_unknown_finish_reason_stays_as_it_is() -> None:
    assert read_finish("Odd") == "Odd"


@pytest.mark.parametrize("early", ["stop", "", "end_turn"])
async def test_text_after_a_finish_reason_belongs_to_the_reply(
    endpoint: Endpoint, client: ChatClient, early: str
) -> None:
    endpoint.stream(
        part(early, content="The "), part(early, content="answer"), part("stop"), event(USAGE), DONE
    )
    reply = await ask(client, stream=True)
    assert (reply.text, reply.finish) == ("The answer", "stop")


async def test_a_stream_that_went_on_after_its_finish_and_broke_is_no_answer(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(part("stop", content="The "), part("stop", content="ans"), cut=True)
    error = await failure(client, stream=True)
    assert (error.kind, error.retryable) == ("connection", True)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
async def test_reply_cut_off_by_the_limit_of_the_caller_is_an_answer(
    endpoint: Endpoint, client: ChatClient, finish: str
) -> None:
    options = OFFERED.model_copy(update={"max_tokens": 9})
    for message in (
        {"content": "Half an"},
        {"content": "<think>Half a"},
        {"content": "", "reasoning": "Half a"},
        {"content": None, "tool_calls": [call("c1", '{"city": "Os')]},
    ):
        endpoint.answer(whole(message, finish))
        reply = await ask(client, options=options, max_tokens=4096)
        assert (reply.finish, reply.tool_calls) == ("length", ())
        assert reply.text in ("Half an", "")


@pytest.mark.parametrize(("finish", "retryable"), [("length", False), ("tool_calls", True), ("stop", True)])
async def test_truncated_tool_call_is_a_protocol_error(
    endpoint: Endpoint, client: ChatClient, finish: str, retryable: bool
) -> None:
    endpoint.answer(whole({"content": None, "tool_calls": [call("c1", '{"city": "Os')]}, finish))
    error = await failure(client, options=OFFERED)
    assert (error.kind, error.retryable) == ("protocol", retryable)
    assert "tool call was cut off" in str(error)


CALLS = [
    ([call("c1", FULL)], [("c1", FULL)]),
    ([call("c1", {"city": "Oslo"})], [("c1", FULL)]),
    ([call("c1", [1, 2])], [("c1", "[1, 2]")]),
    ([call("c1", None)], [("c1", "{}")]),
    ([call("c1", "")], [("c1", "{}")]),
    ([call(None, FULL)], [("call_0", FULL)]),
    ([call("c1", FULL), call("c2", ROME)], [("c1", FULL), ("c2", ROME)]),
    ([call("c1", FULL), call("c1", ROME)], [("c1", FULL), ("c1_1", ROME)]),
    ([call("c1", FULL, index=0), call("c2", ROME, index=0)], [("c1", FULL), ("c2", ROME)]),
    ([call(None, FULL, index=0), call(None, ROME, index=0)], [("call_0", FULL), ("call_1", ROME)]),
]


@pytest.mark.parametrize(("calls", "read"), CALLS)
async def test_tool_calls_are_read_in_every_form(
    endpoint: Endpoint, client: ChatClient, calls: list[dict[str, Any]], read: list[tuple[str, str]]
) -> None:
    endpoint.answer(whole({"content": None, "tool_calls": calls}, "tool_calls"))
    reply = await ask(client, options=OFFERED)
    assert [(one.id, one.arguments) for one in reply.tool_calls] == read
    endpoint.stream(*(part(tool_calls=[one]) for one in calls), part("tool_calls"), DONE)
    reply = await ask(client, options=OFFERED, stream=True)
    assert [(one.id, one.arguments) for one in reply.tool_calls] == read


async def test_pieces_of_parallel_calls_are_put_together(endpoint: Endpoint, client: ChatClient) -> None:
    for begun, then in (({"index": 0}, {"index": 1}), ({}, {})):
        endpoint.stream(
            part(tool_calls=[call("c1", "", **begun)]),
            part(tool_calls=[call(None, '{"city": ', None, **begun)]),
            part(tool_calls=[call("c1", '"Oslo"}', "weather", **begun)]),
            part(tool_calls=[call("c2", '{"city": ', **then)]),
            part(tool_calls=[call(None, '"Rome"}', None, **then)]),
            part("tool_use"),
            DONE,
        )
        reply = await ask(client, options=OFFERED, stream=True)
        assert [(one.id, one.arguments) for one in reply.tool_calls] == [("c1", FULL), ("c2", ROME)]


async def test_the_old_function_call_is_a_tool_call(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.answer(whole({"content": None, "function_call": {"name": "weather", "arguments": FULL}}))
    assert (await ask(client, options=OFFERED)).tool_calls[0].arguments == FULL
    endpoint.stream(
        part(function_call={"name": "weather", "arguments": ""}),
        part(function_call={"arguments": FULL}),
        part("function_call"),
        DONE,
    )
    [called] = (await ask(client, options=OFFERED, stream=True)).tool_calls
    assert (called.name, called.arguments) == ("weather", FULL)


SIGNED = {"google": {"thought_signature": "c2ln"}}


async def test_reply_keeps_provider_state(endpoint: Endpoint, client: ChatClient) -> None:
    details = [{"type": "reasoning.text", "text": "It rains.", "signature": "s1", "index": 0}]
    message = {"content": "", "reasoning_content": "Hm.", "reasoning_details": details}
    endpoint.answer(whole({**message, "tool_calls": [call("c1", FULL, extra_content=SIGNED)]}))
    reply = await ask(client, options=OFFERED)
    assert json.loads(reply.provider_state) == {"reasoning_content": "Hm.", "reasoning_details": details}
    assert json.loads(reply.tool_calls[0].provider_state) == {"extra_content": SIGNED}


async def test_streamed_state_is_put_together(endpoint: Endpoint, client: ChatClient) -> None:
    head = {"type": "reasoning.text", "index": 0}
    endpoint.stream(
        part(reasoning_details=[{**head, "text": "It "}]),
        part(reasoning_details=[{**head, "text": "rains."}]),
        part(reasoning_details=[{**head, "signature": "s1"}]),
        part(content="Rain."),
        part("stop"),
        DONE,
    )
    reply = await ask(client, stream=True)
    assert reply.reasoning == "It rains."
    [detail] = json.loads(reply.provider_state)["reasoning_details"]
    assert detail == {**head, "text": "It rains.", "signature": "s1"}


async def test_gemini_thought_flag_is_not_provider_state(endpoint: Endpoint, client: ChatClient) -> None:
    thinks = {"google": {"thought": True}}
    endpoint.stream(
        part(content="<thought>5?", extra_content=thinks),
        part(content=" No.", extra_content=thinks),
        part(content="</thought>4"),
        part("stop", extra_content=SIGNED),
        DONE,
    )
    reply = await ask(client, stream=True)
    assert (reply.text, reply.reasoning) == ("4", "5? No.")
    assert json.loads(reply.provider_state) == {"extra_content": SIGNED}


async def test_plain_reasoning_is_provider_state_only_with_tool_calls(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer(whole({"content": "4", "reasoning_content": "Hm."}))
    assert (await ask(client)).provider_state == ""


def conversation(worker: str) -> tuple[Message, ...]:
    made = ToolCall(
        id="call_long_one",
        name="weather",
        arguments=FULL,
        provider_id="functions.weather:0",
        provider_state=json.dumps({"extra_content": SIGNED, "role": "no"}),
    )
    fields = json.dumps({"reasoning_content": "Hm.", "model": "no"})
    state = ProviderState(worker=worker, fields=fields)
    return (
        *MESSAGES,
        Message(role="assistant", content="", tool_calls=(made,), provider_state=state),
        Message(role="tool", content="rain", tool_call_id="call_long_one"),
    )


async def test_state_goes_back_to_the_worker_that_gave_it(endpoint: Endpoint, client: ChatClient) -> None:
    await ask(client, conversation("wren"), worker="wren")
    _, said, result = endpoint.bodies[0]["messages"]
    assert said["reasoning_content"] == "Hm."
    assert "model" not in said
    [called] = said["tool_calls"]
    assert (called["id"], called["extra_content"]) == ("functions.weather:0", SIGNED)
    assert "role" not in called
    assert result["tool_call_id"] == "functions.weather:0"


async def test_other_worker_gets_no_provider_state_and_portable_ids(
    endpoint: Endpoint, client: ChatClient
) -> None:
    await ask(client, conversation("wren"), worker="lark")
    _, said, result = endpoint.bodies[0]["messages"]
    assert set(said) == {"role", "content", "tool_calls"}
    [called] = said["tool_calls"]
    assert set(called) == {"id", "type", "function"}
    assert called["id"] == result["tool_call_id"] == short_id("call_long_one")
    assert len(called["id"]) == 9
    assert called["id"].isalnum()


def test_an_id_of_nine_letters_and_digits_stays() -> None:
    assert short_id("a1B2c3D4e") == "a1B2c3D4e"
    assert short_id("toolu_01") != short_id("toolu_02")
