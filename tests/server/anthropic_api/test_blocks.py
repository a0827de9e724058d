"""What Claude Code and other clients of Anthropic's API send: blocks, tools and fields that only Anthropic knows."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from podium_testing import FaultServer

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
LONG = "mcp__plugin_video-content-strategist_video-analytics__get_video_enhanced_transcript"


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str = "ToolSearch") -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"q": "x"}}


def result(*content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": list(content), **more}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}


def ask(url: str, *messages: Any, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    body = {"model": "quill", "max_tokens": 99, "messages": messages, **more}
    return httpx.post(f"{url}/v1/messages", json=body, headers=headers, timeout=20)


RESULTS: dict[str, tuple[Any, str]] = {
    "a tool that was found": ({"type": "tool_reference", "tool_name": "TaskStop"}, "TaskStop"),
    "a search result": (
        {"type": "search_result", "source": "https://a.example", "title": "T", "content": [text("found it")]},
        "found it",
    ),
    "a PDF": (PDF, "application/pdf"),
    "a document of blocks": (
        {"type": "document", "title": "D", "source": {"type": "content", "content": [text("inside")]}},
        "inside",
    ),
    "the tabs of a browser": ({"type": "browser_state", "tabs": [{"title": "News", "active": True}]}, "News"),
    "a type of next year": ({"type": "hologram", "shows": "a cat"}, "a cat"),
}
EARLIER: dict[str, tuple[list[Any], str]] = {
    "a search of the server's": (
        [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tides"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srv_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "https://a.example",
                        "title": "Tides today",
                        "encrypted_content": "SECRET",
                    }
                ],
            },
        ],
        "Tides today",
    ),
    "a page that was fetched": (
        [
            {
                "type": "web_fetch_tool_result",
                "tool_use_id": "srv_1",
                "content": {
                    "type": "web_fetch_result",
                    "content": {"type": "document", "source": {"type": "text", "data": "high at noon"}},
                },
            }
        ],
        "high at noon",
    ),
    "a tool of an MCP server": (
        [
            {"type": "mcp_tool_use", "id": "m", "name": "list", "server_name": "wiki", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "content": [text("two pages")]},
        ],
        "two pages",
    ),
    "code that the server ran": (
        [
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "s",
                "content": {"type": "bash_code_execution_result", "stdout": "42", "return_code": 0},
            }
        ],
        "42",
    ),
    "an upload": ([{"type": "container_upload", "file_id": "file_7"}], "file_7"),
    "a summary": ([{"type": "compaction", "content": "They spoke of tides."}], "They spoke of tides."),
    "thoughts": (
        [
            {"type": "thinking", "thinking": "hm", "signature": "SECRET"},
            {"type": "redacted_thinking", "data": "SECRET"},
        ],
        "",
    ),
    "a change of models": ([{"type": "fallback", "from": {"model": "a"}, "to": {"model": "SECRET"}}], ""),
}


def sent(endpoint: FaultServer) -> str:
    return json.dumps(endpoint.requests[-1].body["messages"], ensure_ascii=False)


@pytest.mark.parametrize(("block", "word"), RESULTS.values(), ids=RESULTS)
def test_the_result_of_a_tool_is_read_whatever_its_blocks(
    url: str, endpoint: FaultServer, block: Any, word: str
) -> None:
    reply = ask(
        url, user(text("Find a tool")), assistant(use()), user(result(block)), tools=[tool("ToolSearch")]
    )
    assert reply.status_code == 200, reply.text
    roles = [message["role"] for message in endpoint.requests[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert word in endpoint.requests[-1].body["messages"][-1]["content"]
    assert "JVBERi0=" not in sent(endpoint)


@pytest.mark.parametrize(("blocks", "word"), EARLIER.values(), ids=EARLIER)
@pytest.mark.parametrize("streamed", [False, True])
def test_earlier_turns_with_newer_blocks_are_read(
    url: str, endpoint: FaultServer, blocks: list[Any], word: str, streamed: bool
) -> None:
    reply = ask(
        url, user(text("Look")), assistant(*blocks, text("Found.")), user(text("And now?")), stream=streamed
    )
    assert reply.status_code == 200, reply.text
    assert word in sent(endpoint)
    assert "SECRET" not in sent(endpoint)
    assert "x-podium-ignored" not in reply.headers or "hm" not in reply.headers["x-podium-ignored"]


def test_tool_added_later_is_announced_in_a_system_message(url: str, endpoint: FaultServer) -> None:
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "TaskStop"}}
    reply = ask(url, user(text("Hi")), {"role": "system", "content": [added]}, tools=[tool("TaskStop")])
    assert reply.status_code == 200, reply.text
    assert "TaskStop" in sent(endpoint)


def test_an_unreadable_file_is_told_to_the_worker_and_the_caller(url: str, endpoint: FaultServer) -> None:
    reply = ask(url, user(PDF, text("What is in it?")))
    assert reply.headers["x-podium-ignored"] == "messages.*.content.*.source.type"
    assert "application/pdf" in sent(endpoint)
    image = {"type": "image", "source": {"type": "file", "file_id": "file_7"}}
    assert ask(url, user(image, text("What is this?"))).status_code == 200


@pytest.mark.parametrize(
    ("content", "roles"),
    [
        ([text("<reminder>Be brief.</reminder>"), result(text("none"))], ["tool", "user"]),
        ([result(text("none")), text("")], ["tool"]),
        ([{"type": "tool_result", "tool_use_id": "toolu_1"}], ["tool"]),
        ([{"type": "tool_result", "tool_use_id": "toolu_1", "content": None}], ["tool"]),
        ([result({"type": "image", "source": PNG})], ["tool", "user"]),
    ],
)
def test_tool_results_precede_texts_of_the_same_message(
    url: str, endpoint: FaultServer, content: list[Any], roles: list[str]
) -> None:
    reply = ask(url, user(text("Find a tool")), assistant(use()), user(*content), tools=[tool("ToolSearch")])
    assert reply.status_code == 200, reply.text
    assert [m["role"] for m in endpoint.requests[-1].body["messages"]] == ["user", "assistant", *roles]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_long_name_of_a_tool_is_short_for_workers_and_comes_back_whole(
    url: str, endpoint: FaultServer, streamed: bool
) -> None:
    choice = {"type": "tool", "name": LONG}
    reply = ask(
        url,
        user(text("How is the weather in Oslo?")),
        tools=[tool(LONG)],
        tool_choice=choice,
        stream=streamed,
    )
    assert reply.status_code == 200, reply.text
    body = endpoint.requests[-1].body
    short = body["tools"][0]["function"]["name"]
    assert len(short) == 64
    assert body["tool_choice"]["function"]["name"] == short
    assert f'"name":"{LONG}"' in reply.text
    assert short not in reply.text.partition('"podium"')[0]
    again = ask(url, user(text("Hi")), assistant(use(LONG)), user(result(text("warm"))), tools=[tool(LONG)])
    assert again.status_code == 200, again.text
    called = endpoint.requests[-1].body["messages"][1]["tool_calls"][0]["function"]["name"]
    assert called == short


@pytest.mark.parametrize(("name", "status"), [("a" * 128, 200), ("a" * 129, 400), ("a b", 400)])
def test_tool_names_follow_the_rules_of_anthropic(url: str, name: str, status: int) -> None:
    assert ask(url, user(text("Hi")), tools=[tool(name)]).status_code == status


def test_hundreds_of_tools_and_deferred_loading_fields_are_accepted(url: str, endpoint: FaultServer) -> None:
    marks = {"defer_loading": True, "eager_input_streaming": True, "cache_control": {"type": "ephemeral"}}
    tools = [tool(f"tool_{number}", **marks) for number in range(500)]
    server = {"type": "web_search_20260318", "name": "web_search", "max_uses": 8}
    reply = ask(url, user(text("Hi")), tools=[*tools, server])
    assert reply.status_code == 200, reply.text
    assert len(endpoint.requests[-1].body["tools"]) == 500
    chosen = ask(url, user(text("Hi")), tools=[server], tool_choice={"type": "tool", "name": "web_search"})
    assert chosen.status_code == 200, "a tool that is ignored is ignored as a choice too"


BETA = {
    "betas": ["context-management-2025-06-27"],
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "diagnostics": {"previous_message_id": None},
    "speed": "fast",
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "xhigh"},
    "metadata": {"user_id": "u", "device": "d"},
    "system": [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "scope": "global"}}
    ],
}


def test_fields_of_betas_are_ignored_and_named(url: str) -> None:
    reply = ask(url, user(text("Hi")), **BETA)
    assert reply.status_code == 200, reply.text
    assert {"diagnostics", "context_management"} <= set(reply.headers["x-podium-ignored"].split(", "))
    counted = httpx.post(
        f"{url}/v1/messages/count_tokens", json={"model": "quill", "messages": [user(text("Hi"))], **BETA}
    )
    assert counted.json()["input_tokens"] > 0


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/messages?beta=true", {}, 200),
        ("/v1/messages", {"anthropic-beta": "hologram-2027-01-01"}, 200),
        ("/v1/messages", {}, 400),
    ],
)
def test_unknown_field_is_accepted_only_in_beta_requests(
    url: str, path: str, headers: dict[str, str], status: int
) -> None:
    body = {"model": "quill", "max_tokens": 9, "messages": [user(text("Hi"))], "hologram": {"depth": 3}}
    assert httpx.post(url + path, json=body, headers=headers, timeout=20).status_code == status


@pytest.mark.parametrize("more", [{}, {"output_config": {"effort": "low"}}])
def test_schema_in_the_older_output_format_field_is_read(
    url: str, endpoint: FaultServer, more: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    reply = ask(url, user(text("Hi")), output_format={"type": "json_schema", "schema": schema}, **more)
    assert reply.status_code == 200, reply.text
    assert endpoint.requests[-1].body["response_format"]["json_schema"]["schema"] == schema
