"""Conversations that keep their worker: over all APIs against endpoints with prompt caches, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import openai_client
from podium.server.cached_conversations import CachedConversations
from podium.server.keys import ANONYMOUS, Caller
from podium.team.team_file import open_pool
from podium.trace import Plan, Reply, RoundTrace, Span, Trace
from podium.types import NO_USAGE, AnswerOptions, Message, Question, Usage
from podium.workflow import Acceptance
from podium_testing import Answer, FaultServer, PromptCache
from running_server import Serve

POOL = """
[conductor]
plans = "text"
base_url = "{url}"
model = "plans"

[[worker]]
name = "large"
kind = "openai"
model = "large-1"
base_url = "{url}"
price = {{ input = 10.0, output = 30.0, cached_input = 1.0 }}

[[worker]]
name = "medium"
kind = "openai"
model = "medium-1"
base_url = "{url}"
price = {{ input = 3.0, output = 12.0 }}
"""
PLAN = 'model_id = [{}]\nsubtasks = ["Answer."]\naccess_list = [[]]'
LONG = "long " * 10_000  # 12,500 tokens
BEGUN: list[Any] = [
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Go on."},
]
NEXT: list[Any] = [
    *BEGUN,
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "By medium."},
]


def plans(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """The plan that the question asks for."""
    return PLAN.format(int("\nBy medium.\n" in messages[-1]["content"]))


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    answer = PromptCache(Answer("Yes.", output_tokens=10))
    with FaultServer(models={"plans": plans, "large-1": answer, "medium-1": answer}).in_thread() as running:
        yield running


@pytest.fixture
def pool(endpoint: FaultServer, tmp_path: Path) -> str:
    path = tmp_path / "pool.toml"
    path.write_text(POOL.format(url=endpoint.url))
    return str(path)


def by_chat(url: str, messages: list[Any], model: str = "podium", **podium: Any) -> Any:
    client = openai_client.client(url)
    reply: Any = client.chat.completions.create(model=model, messages=messages, extra_body=podium)
    return reply.podium | {"read": reply.usage.prompt_tokens_details.cached_tokens}


def by_responses(url: str, messages: list[Any]) -> Any:
    client = openai_client.client(url)
    reply: Any = client.responses.create(model="podium", input=messages, store=False)
    return reply.podium | {"read": reply.usage.input_tokens_details.cached_tokens}


def by_messages(url: str, messages: list[Any]) -> Any:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    reply = client.messages.create(model="podium", max_tokens=50, messages=messages)
    return reply.podium | {"read": reply.usage.cache_read_input_tokens}


@pytest.mark.parametrize("ask", [by_chat, by_responses, by_messages])
def test_next_turn_stays_with_the_worker_that_holds_its_prompt_cache(
    serve: Serve, pool: str, ask: Callable[[str, list[Any]], Any]
) -> None:
    url = serve(pool)
    assert "reason" not in ask(url, BEGUN)
    kept = ask(url, NEXT)
    assert (
        [step["answered_by"] for step in kept["steps"]]
        == [step["worker"] for step in kept["plan"]]
        == ["large"]
    )
    assert kept["reason"].startswith("Kept with large: its prompt cache holds 12,")
    assert "medium would cost $0.0" in kept["reason"]
    assert kept["read"] == 12_501, "the first two messages"
    used = kept["usage"]["workers"]["large"]
    fresh = used["input_tokens"] - used["cached_tokens"]
    assert used["cost_usd"] == pytest.approx((fresh * 10 + 12_501 * 1 + 10 * 30) / 1e6, abs=1e-12)


def test_conversation_by_response_ids_stays_with_its_worker(serve: Serve, pool: str, tmp_path: Path) -> None:
    url = serve(pool, store=tmp_path / "traces.sqlite")
    client = openai_client.client(url)
    first = client.responses.create(model="podium", input=BEGUN)
    second: Any = client.responses.create(model="podium", input="By medium.", previous_response_id=first.id)
    assert [step["answered_by"] for step in second.podium["steps"]] == ["large"]


def test_the_trace_has_the_planners_own_words_and_the_reason(serve: Serve, pool: str, tmp_path: Path) -> None:
    url = serve(pool, store=tmp_path / "traces.sqlite")
    by_chat(url, BEGUN)
    kept = by_chat(url, NEXT)
    (round_,) = httpx.get(f"{url}/api/traces/{kept['trace_id']}").json()["rounds"]
    assert round_["plan"]["text"] == PLAN.format(1)
    assert round_["plan"]["reason"] == kept["reason"]
    planned = by_chat(url, NEXT, podium={"dry_run": True})
    assert ([step["worker"] for step in planned["plan"]], planned["reason"]) == (["large"], kept["reason"])
    client = openai_client.client(url)
    chunks: Any = client.chat.completions.create(model="podium", messages=NEXT, stream=True)
    thoughts = "".join(
        getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks if chunk.choices
    )
    assert f"Plan of 1 step: large. {kept['reason']}" in thoughts


@pytest.mark.parametrize(
    ("settings", "messages", "asked"),
    [
        ({"prompt_cache_minutes": 0}, NEXT, {}),
        ({}, [{"role": "user", "content": f"{LONG}!"}, *NEXT[1:]], {}),
        ({}, [*NEXT[:-1], {"role": "user", "content": "Go on."}], {}),
        ({}, NEXT, {"podium": {"deny": ["large"]}}),
        ({}, NEXT, {"model": "podium/single:medium"}),
    ],
    ids=["off", "another conversation", "the plan stays", "not allowed", "a baseline"],
)
def test_any_other_question_is_answered_as_it_was_planned(
    serve: Serve, pool: str, settings: dict[str, Any], messages: list[Any], asked: dict[str, Any]
) -> None:
    url = serve(pool, **settings)
    by_chat(url, BEGUN)
    reply = by_chat(url, messages, **asked)
    assert "reason" not in reply
    wanted = "large" if messages[-1]["content"] == "Go on." else "medium"
    assert [step["answered_by"] for step in reply["steps"]] == [wanted]


# --- what is remembered ------------------------------------------------------------------------------------

EVE, BOB = Caller(name="eve"), Caller(name="bob")
SAID = tuple(Message(**message) for message in NEXT)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def turn(length: int, worker: str = "large", *, read: int = 0, **changed: Any) -> Trace:
    """The trace of a turn after `length` messages, answered by `worker` in one call that had twice the estimated
    tokens."""
    question = Question(
        text=SAID[length].content, history=SAID[:length], options=changed.pop("options", AnswerOptions())
    )
    sent = (*SAID[:length], Message(role="user", content="packed"))
    usage = Usage(input_tokens=2 * (12_501 + 2), output_tokens=7, cached_tokens=read)
    span = Span(
        position=0,
        worker=worker,
        answered_by=worker,
        subtask="",
        status="done",
        messages=sent,
        reply=Reply("Yes.", usage),
        **changed,
    )
    return Trace(
        id="0" * 32,
        question=question,
        pool=(),
        planner="conductor",
        seed="0",
        rounds=(RoundTrace(plan=Plan("", Acceptance()), spans=(span,), response="Yes."),),
        answer="Yes.",
        status="ok",
        started_at="2026-01-01T00:00:00.000+00:00",
        seconds=1.0,
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def conversations(pool: str, clock: Clock) -> CachedConversations:
    return CachedConversations(open_pool(pool), 300.0, most=2, clock=clock)


FOLLOWING = turn(4).question


def test_a_turn_is_found_by_its_content_for_its_own_caller(conversations: CachedConversations) -> None:
    conversations.record(turn(2), EVE)
    past = conversations.past_turn(FOLLOWING, EVE)
    assert past is not None
    assert (past.worker, past.output_tokens, past.cached) == ("large", 7, {"large": 25_002})
    assert conversations.past_turn(FOLLOWING, BOB) is None
    assert conversations.past_turn(FOLLOWING, ANONYMOUS) is None
    assert conversations.past_turn(turn(2).question, EVE) is None, "the same turn again is no next one"
    tools = AnswerOptions(tools=({"type": "function", "function": {"name": "look"}},))
    assert conversations.past_turn(turn(4, options=tools).question, EVE) is None


def test_first_turn_cache_is_estimated_from_the_leading_question_text(
    conversations: CachedConversations,
) -> None:
    trace = turn(0)
    sent = (Message(role="user", content=f"{LONG}\n<<<end feed>>>\n\nDo it."),)
    span = trace.spans[0].model_copy(update={"messages": sent})
    rounds = (trace.rounds[0].model_copy(update={"spans": (span,)}),)
    conversations.record(trace.model_copy(update={"rounds": rounds}), EVE)
    past = conversations.past_turn(turn(2).question, EVE)
    assert past is not None
    assert 24_900 < past.cached["large"] < 25_006


def test_a_turn_is_forgotten_with_the_providers_cache(
    conversations: CachedConversations, clock: Clock
) -> None:
    conversations.record(turn(2), EVE)
    clock.now = 299.0
    assert conversations.past_turn(FOLLOWING, EVE) is not None
    clock.now = 300.0
    assert conversations.past_turn(FOLLOWING, EVE) is None


def test_prompt_cache_of_each_worker_is_remembered_unless_reads_are_zero(
    conversations: CachedConversations,
) -> None:
    conversations.record(turn(2), EVE)
    conversations.record(turn(4, "medium"), EVE)
    later = Question(text="And?", history=(*SAID, Message(role="assistant", content="Yes.")))
    past = conversations.past_turn(later, EVE)
    assert past is not None
    assert (past.worker, past.cached) == ("medium", {"large": 25_002}), "medium has no price of cached input"
    conversations.record(turn(4, read=12_501), EVE)
    past = conversations.past_turn(later, EVE)
    assert past is not None
    assert past.cached["large"] > 25_000
    conversations.record(turn(4, read=0), EVE)
    past = conversations.past_turn(later, EVE)
    assert past is not None
    assert past.cached == {"large": 0}


@pytest.mark.parametrize(
    "changed",
    [{"reply": Reply("Yes.", NO_USAGE, cached=True)}, {"status": "failed"}, {"worker": "medium"}],
)
def test_turn_that_warms_no_prompt_cache_is_not_remembered(
    conversations: CachedConversations, changed: dict[str, Any]
) -> None:
    trace = turn(2)
    span = trace.spans[0].model_copy(update={"answered_by": None, **changed})
    rounds = (trace.rounds[0].model_copy(update={"spans": (span,)}),)
    conversations.record(trace.model_copy(update={"rounds": rounds}), EVE)
    assert conversations.past_turn(FOLLOWING, EVE) is None


def test_the_oldest_turns_are_forgotten(conversations: CachedConversations) -> None:
    for caller in (EVE, BOB, ANONYMOUS):
        conversations.record(turn(2), caller)
    remembered = [conversations.past_turn(FOLLOWING, caller) is not None for caller in (EVE, BOB, ANONYMOUS)]
    assert remembered == [False, True, True]
