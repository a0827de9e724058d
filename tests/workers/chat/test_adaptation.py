"""An endpoint that refuses part of a request is asked again at once without it, and is not asked for it again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from chat_worker import ChatClient, chat_worker
from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import AnswerOptions, Limits, Message, Profile
from podium.workers.base import Request
from podium.workers.openai import OpenAIWorker
from podium_testing import Fault, FaultServer, RefusedParameters, Rule, Status, StrictTemplate, Verbatim

ASKED = (Message(role="user", content="What is 2 + 2?"),)
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def worker(server: FaultServer, *, context_tokens: int | None = None, **settings: Any) -> OpenAIWorker:
    profile = Profile(name="m", context_tokens=context_tokens)
    limits = settings.pop("limits", Limits(max_tokens=100))
    return chat_worker(profile, ChatClient(server.url), "m", limits=limits, **settings)


async def ask(
    asked: OpenAIWorker, messages: tuple[Message, ...] = ASKED, *, streamed: bool = False, **options: Any
) -> Reply:
    pieces: list[str] = []
    request = Request(
        messages, seed="", options=AnswerOptions(**options), on_text=pieces.append if streamed else None
    )
    reply = await asked.answer(request)
    assert not streamed or "".join(pieces) == reply.text
    return reply


def rules(*faults: Fault, times: int | None = None) -> list[Rule]:
    return [Rule(fault=fault, times=times) for fault in faults]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("options", "settings", "dropped"),
    [
        ({"temperature": 0.7}, {}, ("temperature",)),
        ({}, {"temperature": 0.2}, ("temperature",)),
        ({"top_p": 0.9, "stop": ("END",)}, {}, ("stop", "top_p")),
        ({"extra": {"seed": 1, "presence_penalty": 0.1}}, {}, ("presence_penalty", "seed")),
        ({"extra": {"logprobs": True, "top_logprobs": 2}}, {}, ("logprobs", "top_logprobs")),
        ({"tools": (TOOL,), "parallel_tool_calls": False}, {}, ("parallel_tool_calls",)),
        ({}, {"extra": {"top_k": 5, "reasoning_effort": "low"}}, ("reasoning_effort", "top_k")),
    ],
)
async def test_refused_parameters_are_dropped_and_stay_dropped(
    options: dict[str, Any], settings: dict[str, Any], dropped: tuple[str, ...], streamed: bool
) -> None:
    refuses = RefusedParameters(names=dropped)
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server, **settings)
        first = await ask(asked, streamed=streamed, **options)
        before = len(server.requests)
        second = await ask(asked, streamed=streamed, **options)
        plain = await ask(asked)
        await asked.close()
        assert [request.status for request in server.requests[before:]] == [200, 200]
        assert before > 1
    assert (first.text, first.dropped, second.dropped) == ("4", dropped, dropped)
    assert not set(dropped) & set(first.parameters or {})
    assert plain.dropped == (dropped if settings else ())


@pytest.mark.parametrize(
    "keys", [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
async def test_refused_token_limit_is_renamed_and_kept(keys: tuple[str, str]) -> None:
    old, new = keys
    async with FaultServer("4", rules=rules(RefusedParameters(names=(old,)))) as server:
        asked = chat_worker(
            Profile(name="m"),
            ChatClient(server.url, max_tokens_key=old),  # type: ignore[arg-type]
            "m",
            limits=Limits(max_tokens=100),
        )
        for options in ({}, {"max_tokens": 7}):
            reply = await ask(asked, **options)
            assert (old in server.requests[-1].body, reply.dropped) == (False, ())
            assert server.requests[-1].body[new] == options.get("max_tokens", 100)
        await asked.close()
        assert len(server.requests) == 3


async def test_endpoint_that_refuses_every_token_limit_name_is_an_error() -> None:
    refuses = RefusedParameters(names=("max_tokens", "max_completion_tokens"))
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server)
        with pytest.raises(WorkerError, match="max_completion_tokens"):
            await ask(asked)
        await asked.close()
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tools": (TOOL,)}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": (TOOL,), "tool_choice": "required"}, "tool_choice"),
        ({"extra": {"store": False}}, "store"),
    ],
)
async def test_parameters_that_change_the_answer_are_not_dropped(options: dict[str, Any], name: str) -> None:
    async with FaultServer("4", rules=rules(RefusedParameters(names=(name,)))) as server:
        asked = worker(server)
        with pytest.raises(WorkerError, match=f"'{name}' is not supported") as caught:
            await ask(asked, **options)
        await asked.close()
        assert (caught.value.retryable, len(server.requests)) == (False, 1)


async def test_only_one_of_two_exclusive_parameters_is_dropped() -> None:
    said = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    refuses = RefusedParameters(names=("top_p",), message=said)
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server)
        both = await ask(asked, temperature=0.5, top_p=0.9)
        server.rules = []
        alone = await ask(asked, top_p=0.9)
        again = await ask(asked, temperature=0.5, top_p=0.9)
        await asked.close()
        assert [("temperature" in r.body, "top_p" in r.body) for r in server.requests] == [
            (True, True),
            (True, False),
            (False, True),
            (True, False),
        ]
    assert (both.dropped, alone.dropped, again.dropped) == (("top_p",), (), ("top_p",))


async def test_a_value_out_of_range_stays_the_callers_error() -> None:
    said = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 9 instead."
    refuses = RefusedParameters(names=("temperature",), message=said)
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server)
        with pytest.raises(WorkerError, match="above maximum"):
            await ask(asked, temperature=9.0)
        await asked.close()
        assert len(server.requests) == 1


async def test_dropping_a_parameter_without_success_is_not_remembered() -> None:
    # The endpoint blames temperature, and refuses without it too.
    blames = Status(code=400, message="Unsupported parameter: 'temperature'.")
    async with FaultServer("4", rules=rules(blames, times=2)) as server:
        asked = worker(server)
        with pytest.raises(WorkerError):
            await ask(asked, temperature=0.5)
        reply = await ask(asked, temperature=0.5)
        await asked.close()
        assert (len(server.requests), reply.dropped) == (3, ())


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
async def test_refusal_inside_a_200_reply_counts_if_no_text_came_before(streamed: bool, begun: bool) -> None:
    refusal: dict[str, Any] = {"error": {"message": "Unsupported parameter: 'temperature'.", "code": 400}}
    if begun:
        refusal["choices"] = [{"delta": {"content": "It is"}, "message": {"content": "It is"}}]
        said = {"choices": refusal.pop("choices")}
        events = [said, refusal] if streamed else [said | refusal]
    else:
        events = [refusal]
    body = (
        "".join(f"data: {json.dumps(event)}\n\n" for event in events) if streamed else json.dumps(events[0])
    )
    kind = "text/event-stream" if streamed else "application/json"
    inside = Verbatim(body=body, content_type=kind)
    async with FaultServer("4", rules=rules(inside, times=1)) as server:
        asked = worker(server)
        if begun and streamed:
            with pytest.raises(WorkerError, match="Unsupported parameter"):
                await ask(asked, streamed=True, temperature=0.5)
        else:
            assert (await ask(asked, streamed=streamed, temperature=0.5)).dropped == ("temperature",)
        await asked.close()
        assert len(server.requests) == (1 if begun and streamed else 2)


@pytest.mark.parametrize("code", [401, 402, 403, 413])
async def test_an_error_that_is_not_about_the_request_changes_nothing(code: int) -> None:
    refuses = Status(code=code, message="temperature is not supported; roles must alternate")
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server)
        with pytest.raises(WorkerError):
            await ask(asked, ASKED + ASKED, temperature=0.5)
        await asked.close()
        assert len(server.requests) == 1


async def test_concurrent_calls_all_succeed_after_refused_parameters() -> None:
    refuses = RefusedParameters(names=("temperature", "top_p"))
    async with FaultServer("4", rules=rules(refuses)) as server:
        asked = worker(server)
        replies = await asyncio.gather(
            *(ask(asked, temperature=0.5) for _ in range(5)), *(ask(asked, top_p=0.5) for _ in range(5))
        )
        before = len(server.requests)
        both = await ask(asked, temperature=0.5, top_p=0.5)
        await asked.close()
        assert len(server.requests) == before + 1
    assert {reply.dropped for reply in replies} == {("temperature",), ("top_p",)}
    assert both.dropped == ("temperature", "top_p")


LATE = (*ASKED, Message(role="assistant", content="4"), Message(role="system", content="Be brief."), *ASKED)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "messages"),
    [
        (StrictTemplate(), ASKED + ASKED),
        (StrictTemplate(), (Message(role="assistant", content="Hello."), *ASKED)),
        (StrictTemplate(system=False), LATE),
        (StrictTemplate(code=500, message="Error rendering prompt with jinja template"), LATE),
        (StrictTemplate(system=False, code=500, message="jinja2.exceptions.TemplateError"), LATE),
        (StrictTemplate(ends_with_user=True), (*LATE, LATE[1])),
    ],
    ids=[
        "two users",
        "assistant first",
        "late system",
        "late system, 500",
        "no system, 500",
        "assistant last",
    ],
)
async def test_a_strict_template_gets_folded_messages(
    fault: StrictTemplate, messages: tuple[Message, ...], streamed: bool
) -> None:
    async with FaultServer("4", rules=rules(fault)) as server:
        asked = worker(server, system="You are a clerk.")
        reply = await ask(asked, messages, streamed=streamed)
        before = len(server.requests)
        again = await ask(asked, messages, streamed=streamed)
        await asked.close()
        assert len(server.requests) == before + 1
        assert all(each.content in server.requests[-1].text for each in messages)
    assert (reply.text, reply.folded, again.folded) == ("4", True, True)


async def test_messages_that_nobody_refuses_are_sent_as_they_are() -> None:
    async with FaultServer("4") as server:
        asked = worker(server)
        reply = await ask(asked, LATE + ASKED)
        await asked.close()
        assert [each["role"] for each in server.requests[0].body["messages"]] == [
            m.role for m in LATE + ASKED
        ]
    assert not reply.folded


async def test_parameters_and_messages_may_both_be_refused() -> None:
    faults = RefusedParameters(names=("temperature",)), StrictTemplate()
    async with FaultServer("4", rules=rules(*faults, times=1)) as server:
        asked = worker(server)
        reply = await ask(asked, ASKED + ASKED, temperature=0.5)
        await asked.close()
        assert len(server.requests) == 3
    assert (reply.dropped, reply.folded) == (("temperature",), True)


@pytest.mark.parametrize(("written", "limit"), [(10, 400), (900, 100), (950, 50)])
async def test_token_limit_is_reduced_to_the_room_left_in_the_context(written: int, limit: int) -> None:
    async with FaultServer("4") as server:
        asked = worker(server, context_tokens=1000, limits=Limits(max_tokens=400))
        await ask(asked, (Message(role="user", content="word" * written),))
        await asked.close()
        assert server.requests[0].body["max_tokens"] == limit


async def test_a_server_that_says_its_context_gets_a_limit_that_fits() -> None:
    said = (
        "This model's maximum context length is 2048 tokens. However, you requested 4126 tokens (30 in the messages, "
        "4096 in the completion)."
    )
    async with FaultServer("4", rules=rules(Status(code=400, message=said), times=1)) as server:
        asked = worker(server, limits=Limits(max_tokens=4096))
        first = await ask(asked)
        await ask(asked)
        await asked.close()
        assert [request.body["max_tokens"] for request in server.requests] == [4096, 2018, 2044]
    assert first.context_tokens == 2048


async def test_token_limit_is_reduced_to_the_maximum_named_by_the_server() -> None:
    said = "max_tokens: 4096 > 1024, which is the maximum allowed number of output tokens for m"
    async with FaultServer("4", rules=rules(Status(code=400, message=said), times=1)) as server:
        asked = worker(server, limits=Limits(max_tokens=4096))
        await ask(asked)
        await ask(asked, max_tokens=5)
        await asked.close()
        assert [request.body["max_tokens"] for request in server.requests] == [4096, 1024, 5]
