from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from openai_client import client
from podium.workers.pool import Pool
from podium_testing import Answer, FaultServer
from running_server import Serve, capable_worker

ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]
SEARCH = {"type": "web_search", "search_context_size": "low"}
CHAT_HINTS: list[tuple[dict[str, Any], str]] = [
    ({"reasoning_effort": "high"}, "reasoning_effort"),
    ({"presence_penalty": 1}, "presence_penalty"),
    ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
    ({"prompt_cache_retention": "24h"}, "prompt_cache_retention"),
    ({"chat_template_kwargs": {"enable_thinking": True}}, "chat_template_kwargs"),
    ({"verbosity": "low"}, "verbosity"),
    ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools.*.type"),
    ({"messages": [ASKED[0] | {"name": "Eve"}]}, "messages.*.name"),
    ({"messages": [ASKED[0] | {"cache_control": {"type": "ephemeral"}}]}, "messages.*.cache_control"),
]
RESPONSE_HINTS: list[tuple[dict[str, Any], str]] = [
    ({"reasoning": {"effort": "high", "summary": "auto"}}, "reasoning"),
    ({"include": ["reasoning.encrypted_content"]}, "include"),
    ({"text": {"verbosity": "low"}}, "text.verbosity"),
    ({"truncation": "auto"}, "truncation"),
    ({"client_metadata": {"a": "b"}}, "client_metadata"),
    ({"tools": [SEARCH], "tool_choice": "auto"}, "tools.*.type"),
]
HINTS = [("chat/completions", *hint) for hint in CHAT_HINTS] + [
    ("responses", *hint) for hint in RESPONSE_HINTS
]


@pytest.fixture(scope="module")
def url(endpoint: FaultServer) -> Iterator[str]:
    with Serve() as starting:
        yield starting(Pool([capable_worker(endpoint)]), planner="single:quill")


def body_of(route: str, changed: dict[str, Any], model: str = "podium") -> dict[str, Any]:
    own = {"messages": ASKED} if route == "chat/completions" else {"input": "What is 6 x 7?"}
    return {"model": model, **own, **changed}


@pytest.mark.parametrize(("route", "hint", "name"), HINTS, ids=lambda value: json.dumps(value)[:60])
def test_hint_is_ignored_and_listed(
    url: str, endpoint: FaultServer, route: str, hint: dict[str, Any], name: str
) -> None:
    made = httpx.post(f"{url}/v1/{route}", json=body_of(route, hint))
    assert made.headers["x-podium-ignored"] == name
    assert made.json()["podium"]["ignored"] == [name]
    assert not hint.keys() & endpoint.requests[-1].body.keys() - {"messages", "text"}


@pytest.mark.parametrize(
    ("route", "idle"),
    [
        ("chat/completions", {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}),
        ("chat/completions", {"colour": None, "messages": [ASKED[0] | {"refusal": None}]}),
        ("chat/completions", {"presence_penalty": 0.0, "frequency_penalty": 0, "top_logprobs": None}),
        ("chat/completions", {"logprobs": False, "stream": False, "stream_options": None, "podium": None}),
        ("chat/completions", {"modalities": ["text"], "logit_bias": {}, "functions": None}),
        ("chat/completions", {"n": None, "stop": None, "temperature": None, "metadata": None}),
        ("chat/completions", {"response_format": {"type": "text"}, "service_tier": "auto"}),
        ("chat/completions", {"safety_identifier": "u", "prompt_cache_key": "k"}),
        ("responses", {"tools": [], "tool_choice": "auto", "reasoning": None, "background": False}),
        ("responses", {"truncation": "disabled", "include": [], "colour": []}),
    ],
)
def test_fields_with_default_values_are_not_listed_as_ignored(
    url: str, route: str, idle: dict[str, Any]
) -> None:
    made = httpx.post(f"{url}/v1/{route}", json=body_of(route, idle))
    assert "x-podium-ignored" not in made.headers
    assert "ignored" not in made.json()["podium"]


@pytest.mark.parametrize(
    ("route", "changed", "param"),
    [
        ("chat/completions", {"logit_bias": {"50256": -100}}, "logit_bias"),
        ("chat/completions", {"modalities": ["text", "audio"]}, "modalities"),
        ("responses", {"top_logprobs": 3}, "top_logprobs"),
    ],
)
def test_fields_that_change_the_meaning_of_a_team_answer_are_refused(
    url: str, route: str, changed: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client(url).post(f"/{route}", body=body_of(route, changed), cast_to=object)
    assert refused.value.param == param


def test_single_worker_gets_every_chat_field_and_returns_its_reasoning(
    url: str, endpoint: FaultServer
) -> None:
    given: dict[str, Any] = {
        "reasoning_effort": "high",
        "presence_penalty": 1,
        "logit_bias": {"5": 1},
        "top_k": 3,
        "seed": 4,
    }
    messages = [*ASKED, {"role": "system", "content": "Be brief.", "name": "house"}]
    made = client(url).chat.completions.with_raw_response.create(
        model="quill", messages=messages, extra_body=given
    )
    sent = endpoint.requests[-1].body
    assert {name: sent[name] for name in given} == given
    assert sent["messages"] == messages
    assert "x-podium-ignored" not in made.headers
    message: Any = made.parse().choices[0].message
    assert message.reasoning_content.startswith("The user asks: What is 6 x 7?")


@pytest.mark.parametrize("field", [{"max_tokens": 100_000}, {"n": 8}, {"messages": ASKED}, {"seed": 3}])
def test_a_response_of_one_worker_has_no_field_of_a_chat_completion(
    url: str, endpoint: FaultServer, field: dict[str, Any]
) -> None:
    before = len(endpoint.requests)
    refused = httpx.post(f"{url}/v1/responses", json=body_of("responses", field, "quill"))
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (400, "unknown_field")
    assert [error["param"]] == list(field)
    assert len(endpoint.requests) == before


def test_one_workers_thoughts_are_streamed_before_its_text(url: str) -> None:
    asking = client(url)
    stream = asking.chat.completions.create(
        model="quill", messages=ASKED, reasoning_effort="low", stream=True
    )
    deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    thoughts = [getattr(delta, "reasoning_content", None) for delta in deltas]
    assert "".join(filter(None, thoughts)).startswith("The user asks: What is 6 x 7?")
    first_text = next(n for n, delta in enumerate(deltas) if delta.content)
    assert not any(thoughts[first_text:])
    with asking.responses.stream(
        model="quill", input="What is 6 x 7?", reasoning={"effort": "low"}
    ) as events:
        events.until_done()
        response = events.get_final_response()
    reasoning, message = response.output
    assert (reasoning.type, message.type) == ("reasoning", "message")
    assert reasoning.summary[0].text == "".join(filter(None, thoughts))


def test_one_workers_log_probabilities_come_back(serve: Serve) -> None:
    entry = {"token": "42", "logprob": -0.1, "bytes": [52, 50], "top_logprobs": []}

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        assert body["logprobs"] is True
        return Answer("42", logprobs={"content": [entry], "refusal": None})

    with FaultServer(answer).in_thread() as endpoint:
        asking = client(serve(Pool([capable_worker(endpoint)])))
        whole = asking.chat.completions.create(model="quill", messages=ASKED, logprobs=True)
        stream = asking.chat.completions.create(model="quill", messages=ASKED, logprobs=True, stream=True)
        streamed = [one for chunk in stream for one in chunk.choices if one.logprobs]
        response: Any = asking.responses.create(model="quill", input="What is 6 x 7?", top_logprobs=1)
    for choice in (whole.choices[0], *streamed):
        assert [token.model_dump() for token in choice.logprobs.content] == [entry]
    assert len(streamed) == 1
    assert response.output[0].content[0].logprobs[0].token == "42"


def test_a_tool_of_another_kind_leaves_the_functions_to_be_called(url: str) -> None:
    weather = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    response = client(url).responses.create(
        model="podium", input="How is the weather?", tools=[SEARCH, weather]
    )
    assert [item.type for item in response.output] == ["function_call"]
