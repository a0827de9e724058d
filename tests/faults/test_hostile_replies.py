"""Well-formed replies that would take seconds and gigabytes to read: each is refused early, as the worker's failure.

Add a case for every new one that is found. The bodies are just over a limit, so that the test is quick; what larger
ones take is in research/log/2026-11.md.
"""

from __future__ import annotations

import json
from itertools import chain

import pytest

from podium.conductor import Conductor
from podium.conductor.policy import WorkerPolicy
from podium.planners import Single
from podium.team import Runner
from podium.types import Question
from podium_testing import FaultServer, Rule, Verbatim

MANY = 270_000
LONG = 2_200_000


def whole(message: object, **more: object) -> str:
    """A reply with one choice."""
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more})


def stream(*chunks: dict[str, object]) -> str:
    """A stream whose choices have these deltas."""
    finished = {"choices": [{"delta": {"content": "Answer: 4"}, "finish_reason": "stop"}]}
    events = chain(({"choices": [{"delta": delta}]} for delta in chunks), [finished])
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


HOSTILE = {
    "empty tool calls": whole({"content": "Answer: 4", "tool_calls": [{}] * MANY}),
    "numbers as tool calls": whole({"content": "Answer: 4", "tool_calls": [1] * MANY}),
    "tool calls without end": whole({"content": "Answer: 4", "tool_calls": [{"function": {}}] * 1100}),
    "empty choices": json.dumps({"choices": [{}] * MANY}),
    "parts": whole({"content": [{"text": "a"}] * MANY}),
    "an unknown key": whole({"content": "Answer: 4"}, more=[[]] * MANY),
    "a list": json.dumps([{}] * MANY),
    "an error": json.dumps({"error": [{}] * MANY}),
    "a text": whole({"content": "a" * LONG}),
    "reasoning": whole({"content": "Answer: 4", "reasoning_content": "a" * LONG}),
    "half characters": whole({"content": "\ud83d" * (LONG // 2) + "a" * LONG}),
}
HOSTILE_STREAMS = {
    "a tool call in each event": stream(*({"tool_calls": [{"index": index}]} for index in range(1100))),
    "tool calls in one event": stream({"tool_calls": [{"index": index} for index in range(1100)]}),
    "an event of many values": f"data: {whole({'content': 'Answer: 4'}, more=[[]] * MANY)}\n\ndata: [DONE]\n\n",
    "a text in pieces": stream(*[{"content": "a" * (LONG // 4)}] * 4),
}
CASES = [(body, "application/json", "") for body in HOSTILE.values()] + [
    (body, "text/event-stream", "stream = true") for body in HOSTILE_STREAMS.values()
]


@pytest.mark.parametrize(("body", "form", "also"), CASES, ids=[*HOSTILE, *HOSTILE_STREAMS])
async def test_hostile_reply_is_not_read_beyond_the_size_limit(pool_at, body: str, form: str, also: str):
    rule = Rule(fault=Verbatim(body=body, content_type=form))
    async with FaultServer("Answer: 4", rules=[rule]) as server:
        pool = pool_at(server, "a", also=also, limits="timeout = 60, retries = 1")
        asked = Question(text="What is 2 + 2?")
        trace = await Runner(Single("a"), pool).answer(asked)
        assert [attempt.error_kind for attempt in trace.spans[0].attempts] == ["protocol"]
        assert "the reply is over" in str(trace.error)
        await pool.close()


@pytest.mark.parametrize(("body", "form", "also"), [CASES[0], CASES[-1]], ids=["whole", "streamed"])
async def test_hostile_plan_is_not_read_beyond_the_size_limit(pool_at, body: str, form: str, also: str):
    rule = Rule(fault=Verbatim(body=body, content_type=form))
    async with FaultServer("Answer: 4", rules=[rule]) as server:
        pool = pool_at(server, "a", also=also, limits="timeout = 60, retries = 1")
        asked = Question(text="What is 2 + 2?")
        planned = await Runner(Conductor(WorkerPolicy(pool[0])), pool).answer(asked)
        assert planned.rounds[0].error_kind == "planner_failed"
        assert "the reply is over" in str(planned.error)
        await pool.close()
