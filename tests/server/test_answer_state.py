"""What a provider wants back with a message, through the three APIs: it comes back whole, to its own worker alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import openai_client
from chat_model import ChatModel, Say, chat_model
from podium.planners import Single
from podium.server.answer_state import CallId, ProviderStates, with_state, worker_letters
from podium.server.keys import ANONYMOUS
from podium.store import TraceStore
from podium.team import Runner
from podium.team.team_worker import TeamWorker
from podium.trace import Plan, Reply, RoundTrace, Span
from podium.types import Message, Profile, ProviderState, ToolCall, Usage
from podium.workers.pool import Pool
from podium.workflow import Step, Workflow
from running_server import Serve
from sample_traces import build_trace

SIGNED = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
DETAILS = [{"type": "reasoning.encrypted", "data": "ZW5j", "id": "r1"}]
ID = "functions.weather:0"
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}


def strict(body: dict[str, Any]) -> Say:
    """As DeepSeek and Gemini: it calls a tool, and refuses the result if the call has lost what it came with."""
    calls = [m for m in body["messages"] if m.get("tool_calls")]
    if not calls:
        return Say(
            calls=[(ID, "weather", '{"town": "Oslo"}')],
            more={"reasoning_content": "I need the weather.", "reasoning_details": DETAILS},
            call_more={"extra_content": SIGNED},
        )
    for message in calls:
        [call] = message["tool_calls"]
        kept = message.get("reasoning_content"), message.get("reasoning_details"), call.get("extra_content")
        if (*kept, call["id"]) != ("I need the weather.", DETAILS, SIGNED, ID):
            return Say(status=400)
    results = [m for m in body["messages"] if m["role"] == "tool"]
    return Say("It rains.") if all(m["tool_call_id"] == ID for m in results) else Say(status=400)


@pytest.fixture
def model() -> Iterator[ChatModel]:
    with chat_model(strict) as running:
        yield running


def chat(url: str, model: str, stream: bool, *, keep: Callable[[Any], Any] = dict, **more: Any) -> str:
    client = openai_client.client(url)
    told: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    while True:
        made: Any = client.chat.completions.create(
            model=model, messages=told, tools=[TOOL], stream=stream, **more
        )
        if stream:
            deltas = [chunk.choices[0].delta.model_dump(exclude_none=True) for chunk in made if chunk.choices]
            calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
            said = {"role": "assistant", "content": "".join(d.get("content", "") for d in deltas)}
            said |= {"tool_calls": calls} if calls else {}
        else:
            said = made.choices[0].message.model_dump(exclude_none=True)
        if not said.get("tool_calls"):
            return str(said["content"])
        results = [{"role": "tool", "tool_call_id": c["id"], "content": "rain"} for c in said["tool_calls"]]
        told += [keep(said), *results]


def responses(url: str, model: str, stream: bool, **more: Any) -> str:
    client = openai_client.client(url)
    items: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA}
    while True:
        made: Any = client.responses.create(model=model, input=items, tools=[tool], stream=stream, **more)
        reply = [event for event in made][-1].response if stream else made  # noqa: C416 - a stream
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return str(reply.output_text)
        items += [{"type": "function_call_output", "call_id": c.call_id, "output": "rain"} for c in calls]


def messages(url: str, model: str, stream: bool, **more: Any) -> str:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    told: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    wanted = {
        "model": model,
        "max_tokens": 4096,
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
        **more,
    }
    while True:
        if stream:
            with client.messages.stream(messages=told, **wanted) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=told, **wanted)
        told.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return str(reply.content[-1].text)
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": "rain"} for c in calls]
        told.append({"role": "user", "content": results})


THINKING: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.mark.parametrize(("asked", "stream"), [("podium", False), ("wren", True)])
@pytest.mark.parametrize(
    ("ask", "more"),
    [
        (chat, {}),
        (chat, {"store": False}),
        (responses, {"store": False}),
        (messages, {}),
        (messages, THINKING),
    ],
)
def test_state_comes_back_through_every_api(  # noqa: PLR0917
    serve: Serve, model: ChatModel, ask: Callable[..., str], more: dict[str, Any], asked: str, stream: bool
) -> None:
    url = serve(Pool([model.worker(calls_tools=True)]), planner="single:wren")
    assert ask(url, asked, stream, **more) == "It rains."


def answered(body: dict[str, Any]) -> Say:
    """As a provider of encrypted reasoning, whose answers call no tools."""
    return Say(f"Answer {len(body['messages'])}.", more={"reasoning_details": DETAILS})


@pytest.mark.parametrize(("asked", "stream"), [("podium", False), ("wren", True)])
@pytest.mark.parametrize("route", ["chat", "responses", "messages"])
def test_provider_state_of_an_answer_without_tool_calls_returns(
    serve: Serve, route: str, asked: str, stream: bool
) -> None:
    more: Any = {"model": asked, "stream": stream}
    told: list[Any] = [{"role": "user", "content": "Why?"}]
    further: Any = {"role": "user", "content": "And then?"}
    with chat_model(answered) as thinker:
        url = serve(Pool([thinker.worker()]), planner="single:wren")
        client = openai_client.client(url)
        for _ in range(2):
            if route == "chat":
                made: Any = client.chat.completions.create(messages=told, **more)
                if stream:
                    deltas = [chunk.choices[0].delta.model_dump(exclude_none=True) for chunk in made]
                    text = "".join(delta.get("content", "") for delta in deltas)
                    [extra] = [delta["extra_content"] for delta in deltas if "extra_content" in delta]
                    said = [{"role": "assistant", "content": text, "extra_content": extra}]
                else:
                    said = [made.choices[0].message.model_dump(exclude_none=True)]
            elif route == "responses":
                made = client.responses.create(input=told, store=False, **more)
                reply = list(made)[-1].response if stream else made
                said = [item.model_dump(exclude_none=True) for item in reply.output]
            else:
                anthropic = pytest.importorskip("anthropic")
                other = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
                with other.messages.stream(model=asked, max_tokens=999, messages=told) as events:
                    blocks = events.get_final_message().content
                said = [{"role": "assistant", "content": [block.model_dump() for block in blocks]}]
            told += [*said, further]
    [first] = [m for m in thinker.bodies[-1]["messages"] if m["role"] == "assistant"]
    assert first["content"].startswith("Answer")
    assert first["reasoning_details"] == DETAILS


def bare(said: dict[str, Any]) -> dict[str, Any]:
    """What a client sends back that keeps no further fields."""
    calls = [{key: call[key] for key in ("id", "type", "function")} for call in said["tool_calls"]]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def test_client_that_returns_only_call_ids_loses_no_provider_state(serve: Serve, model: ChatModel) -> None:
    url = serve(Pool([model.worker(calls_tools=True)]), planner="single:wren")
    assert chat(url, "podium", False, keep=bare) == "It rains."


def test_another_process_finds_the_state_in_the_store(serve: Serve, model: ChatModel, tmp_path: Path) -> None:
    pool = Pool([model.worker(calls_tools=True)])
    urls = [serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite") for _ in range(2)]
    client = openai_client.client(urls[0])
    told: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    made = client.chat.completions.create(model="wren", messages=told, tools=[TOOL])
    said = bare(made.choices[0].message.model_dump())
    told += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "rain"}]
    while not httpx.get(f"{urls[1]}/api/traces").json()["traces"]:
        time.sleep(0.01)  # A trace is written a moment after its answer.
    client = openai_client.client(urls[1])
    reply = client.chat.completions.create(model="wren", messages=told, tools=[TOOL])
    assert reply.choices[0].message.content == "It rains."


async def test_state_is_found_once_another_process_has_written_it(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces.sqlite")
    call = ToolCall(id="call_1", name="weather", arguments="{}")
    called = call.model_copy(update={"id": "c1", "provider_state": "{}"})
    call = call.model_copy(update={"id": str(CallId("a" * 32, worker_letters("ada"), 0))})
    reply = Reply("", Usage(), tool_calls=(called,), provider_state='{"reasoning_content": "Hm."}')
    span = Span(position=0, worker="ada", subtask="x", status="done", messages=(), reply=reply)
    round_ = RoundTrace(plan=Plan("", Workflow((Step(0, "x"),))), spans=(span,), response="")
    trace = build_trace("a" * 32, rounds=(round_,), answer="")
    said = Message(role="assistant", content="", tool_calls=(call,))
    states = ProviderStates(store)
    assert await states.restore(said, ANONYMOUS) == said
    store.add(trace)
    store.flush()
    restored = await states.restore(said, ANONYMOUS)
    store.close()
    assert restored.provider_state == ProviderState(worker="ada", fields=reply.provider_state)
    assert restored.tool_calls[0].provider_id == "c1"


def test_another_worker_gets_neither_state_nor_ids_of_the_first(serve: Serve, model: ChatModel) -> None:
    with chat_model("I do not know.") as other:
        pool = Pool([model.worker(calls_tools=True), other.worker("lark", calls_tools=True)])
        url = serve(pool, planner="single:wren")
        client = openai_client.client(url)
        told: list[Any] = [{"role": "user", "content": "How is the weather?"}]
        said = client.chat.completions.create(model="wren", messages=told, tools=[TOOL]).choices[0].message
        told += [
            said.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "rain"},
        ]
        client.chat.completions.create(model="lark", messages=told, tools=[TOOL])
        [body] = other.bodies
    sent = json.dumps(body)
    assert "c2lnbmF0dXJl" not in sent
    assert "I need the weather." not in sent
    assert ID not in sent


def test_state_passes_through_a_team_within_a_team(serve: Serve, model: ChatModel) -> None:
    inner = Runner(Single("wren"), Pool([model.worker(calls_tools=True)]))
    team = TeamWorker(Profile(name="team", calls_tools=True), inner)
    url = serve(Pool([team]), planner="single:team")
    assert chat(url, "podium", False) == "It rains."


def test_reasoning_items_and_previous_responses_carry_state(
    serve: Serve, model: ChatModel, tmp_path: Path
) -> None:
    url = serve(
        Pool([model.worker(calls_tools=True)]), planner="single:wren", store=tmp_path / "traces.sqlite"
    )
    client = openai_client.client(url)
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA}
    first = client.responses.create(model="wren", input="How is the weather?", tools=[tool])
    [call] = [item for item in first.output if item.type == "function_call"]
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    second = client.responses.create(
        model="wren", input=[result], tools=[tool], previous_response_id=first.id
    )
    assert second.output_text == "It rains."


@pytest.mark.parametrize(
    "text",
    [None, 3, "", "podium-state.", "podium-state.!!", "podium-state.eJyrBQAAdwB4", "sig", {"worker": "wren"}],
)
def test_invalid_provider_state_is_ignored(text: object) -> None:
    said = Message(role="assistant", content="4")
    assert with_state(said, text) is said


def test_answer_without_provider_state_has_no_extra_content(serve: Serve) -> None:
    with chat_model("4") as plain:
        url = serve(Pool([plain.worker()]), planner="single:wren")
        client = openai_client.client(url)
        asked: Any = [{"role": "user", "content": "2 + 2?"}]
        for name in ("podium", "wren"):
            message = client.chat.completions.create(model=name, messages=asked).choices[0].message
            assert "extra_content" not in message.model_dump()
